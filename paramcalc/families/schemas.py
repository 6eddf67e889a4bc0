"""How configs are read, as data: the fields of each family and of each section, in `schemas/<module of recipes>.json`.

An entry has the parts of a Reading; that of a family names its main class too. README.md says what each part means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from paramcalc.config.schema import ConfigSchema


@cache
def schema_entries(module: str) -> dict[str, dict[str, Any]]:
    """What is stated for the recipes of one module: one count opens the file of one module."""
    place = module.removeprefix("paramcalc.families.").replace(".", "/")
    path = Path(__file__).parent / "schemas" / f"{place}.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))


def config_schema(entry: Mapping[str, Any]) -> ConfigSchema:
    """The entry, as the view of a config takes it."""
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
