"""Config schemas as data: two files for each file of recipes.

`schemas/<folder>/<file>.json` is written by hand, `defaults/<folder>/<file>.json` by tests/goldens/defaults.py from the
config classes of transformers. README.md explains each part of an entry.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from paramcalc.base.errors import UnknownFamilyError
from paramcalc.config.schema import ConfigSchema


def place(module: str) -> str:
    """The folder and file of a module of recipes: `text/llama`."""
    return module.removeprefix("paramcalc.families.").replace(".", "/")


@cache
def schema_entries(module: str) -> dict[str, dict[str, Any]]:
    """The entries written by hand for the recipes of one module. Raises FileNotFoundError."""
    return _read("schemas", module)


@cache
def class_defaults(module: str) -> dict[str, Any]:
    """The generated defaults for the recipes of one module, by the name of the entry. Raises FileNotFoundError."""
    return _read("defaults", module)


def _read(folder: str, module: str) -> dict[str, Any]:
    path = Path(__file__).parent / folder / f"{place(module)}.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))


def schema_entry(module: str, name: str) -> dict[str, Any]:
    """The entry of a family or tower, with a default for each of its fields.

    Raises UnknownFamilyError if a recipe has no entry, or a field no default.
    """
    try:
        entry = schema_entries(module)[name]
    except (KeyError, FileNotFoundError):
        at = place(module)
        raise UnknownFamilyError(f"{name} has a recipe in {at}.py and no entry in schemas/{at}.json") from None
    if "fields" not in entry:
        return entry
    stated = entry.get("defaults", {})
    try:
        generated = class_defaults(module).get(name, {})
        return entry | {
            "defaults": {field: stated[field] if field in stated else generated[field] for field in entry["fields"]}
        }
    except (KeyError, FileNotFoundError):
        at = place(module)
        raise UnknownFamilyError(
            f"{name} has fields in schemas/{at}.json without a default there or in defaults/{at}.json",
            "python -m tests.goldens.defaults fills in those of transformers; state others in the schema",
        ) from None


def config_schema(entry: Mapping[str, Any]) -> ConfigSchema:
    """The entry as a ConfigSchema."""
    return ConfigSchema(
        defaults=entry.get("defaults", {}),
        names=entry.get("names", {}),
        fixed=entry.get("fixed", {}),
        nullable=frozenset(entry.get("nullable", ())),
        unused=frozenset(entry.get("unused", ())),
        ignored=frozenset(entry.get("ignored", ())),
        sections={name: config_schema(section) for name, section in entry.get("sections", {}).items()},
        kind=entry.get("kind", ""),
        spellings=entry.get("spellings", {}),
        free=entry.get("free", False),
    )
