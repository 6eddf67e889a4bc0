"""Fill in the class defaults in paramcalc/families/schemas/*.json from the config classes of transformers.

    python -m tests.goldens.readings [--check]

Prints what changed. A default that is null on either side stays: there the recipe, or the class, works it out from
other fields. What transformers does not have (families of the Hub, fields of old files) stays as it was written. Part
of the routine for a new release.
"""

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

READINGS = Path(__file__).parents[2] / "paramcalc" / "families" / "schemas"

Entry = dict[str, Any]


def text(entries: dict[str, Entry]) -> str:
    """The file: one part of an entry a line, so that a change is a line."""
    lines = [
        f" {json.dumps(name)}: {{\n"
        + ",\n".join(f"  {json.dumps(part)}: {json.dumps(value, ensure_ascii=False)}" for part, value in entry.items())
        + "\n }"
        for name, entry in entries.items()
    ]
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


def changes(model_type: str, entry: Entry) -> Iterator[tuple[str, Any, Any]]:
    """(field, our default, the class's) where the two differ."""
    theirs = class_defaults(model_type)
    for field, ours in entry.get("defaults", {}).items():
        default = theirs.get(entry.get("names", {}).get(field, field), theirs.get(field))
        if None not in (ours, default) and (type(default), default) != (type(ours), ours):
            yield field, ours, default


def main() -> int:
    """Compare, and write unless only asked to check."""
    differs = False
    for path in sorted(READINGS.rglob("*.json")):
        entries = json.loads(path.read_text())
        for name, entry in entries.items():
            for field, ours, theirs in list(changes(name, entry)):
                print(f"{name}: {field} is {json.dumps(theirs)}, was {json.dumps(ours)}")
                entry["defaults"][field] = theirs
                differs = True
        if "--check" not in sys.argv:
            path.write_text(text(entries))
    return int(differs and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
