"""Write paramcalc/families/defaults/: the class defaults of the fields that recipes read, from transformers.

    python -m tests.goldens.defaults [--check]

Prints what changed. A schema states the fields of a family and, by hand, the defaults that no class has as a plain
value: null where the recipe works the value out, and those of families that transformers does not have. All others
are written here. Part of the routine for a new release.
"""

import dataclasses
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FAMILIES = Path(__file__).parents[2] / "paramcalc" / "families"
SCHEMAS, DEFAULTS = FAMILIES / "schemas", FAMILIES / "defaults"

Entry = dict[str, Any]


def schema_text(entries: dict[str, Entry]) -> str:
    """A file of schemas: one part of an entry a line, so that a change is a line."""
    lines = [
        f" {json.dumps(name)}: {{\n"
        + ",\n".join(f"  {json.dumps(part)}: {json.dumps(value, ensure_ascii=False)}" for part, value in entry.items())
        + "\n }"
        for name, entry in entries.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def defaults_text(entries: Mapping[str, Any]) -> str:
    """A file of defaults: the version of transformers, then one family a line."""
    lines = [f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def class_defaults(model_type: str) -> dict[str, Any]:
    """The default of every field that the config class declares, under all of its names, lists excepted."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if model_type not in CONFIG_MAPPING:
        return {}
    config_class = CONFIG_MAPPING[model_type]
    declared = {field.name: field.default for field in dataclasses.fields(config_class)}
    declared |= {name: declared[own] for name, own in config_class.attribute_map.items() if own in declared}
    return {name: value for name, value in declared.items() if isinstance(value, int | float | str)}


def read_defaults(model_type: str, entry: Entry) -> dict[str, Any]:
    """The class defaults of the fields that a schema lists and states no default for; None where the class has none."""
    theirs, names, stated = class_defaults(model_type), entry.get("names", {}), entry.get("defaults", {})
    fields = [field for field in entry.get("fields", ()) if field not in stated]
    return {field: theirs.get(names.get(field, field), theirs.get(field)) for field in fields}


def problems(model_type: str, entry: Entry) -> Iterator[str]:
    """Defaults that only a person can set right in the schema."""
    for field, default in read_defaults(model_type, entry).items():
        if default is None:
            yield f"{model_type}: the class has no default for {field}; state one in the schema"
    theirs, names = class_defaults(model_type), entry.get("names", {})
    for field, ours in entry.get("defaults", {}).items():
        default = theirs.get(names.get(field, field), theirs.get(field))
        if None not in (ours, default):
            yield f"{model_type}: the default of {field} is the class's own; list it in the schema's fields instead"


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """What differs between two files of defaults, field by field."""
    for name, fields in after.items():
        old = before.get(name, {})
        for field, value in fields.items() if isinstance(fields, dict) else ():
            if field not in old or (type(old[field]), old[field]) != (type(value), value):
                yield f"{name}: {field} is {json.dumps(value)}, was {json.dumps(old.get(field))}"


def main() -> int:
    """Write what differs, or only say so with --check."""
    import transformers

    found, differs = False, False
    for path in sorted(SCHEMAS.rglob("*.json")):
        entries = json.loads(path.read_text(encoding="utf-8"))
        for line in (line for name, entry in entries.items() for line in problems(name, entry)):
            print(line)
            found = True
        made = {name: read_defaults(name, entry) for name, entry in entries.items() if "fields" in entry}
        target = DEFAULTS / path.relative_to(SCHEMAS)
        before = target.read_text(encoding="utf-8") if target.exists() else "{}"
        for line in changes(json.loads(before), made):
            print(line)
        text = defaults_text({"transformers": transformers.__version__, **made})
        differs |= text != before
        if "--check" not in sys.argv and text != before:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
    return int(found or (differs and "--check" in sys.argv))


if __name__ == "__main__":
    sys.exit(main())
