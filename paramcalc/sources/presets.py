"""Presets: the models that ship with paramcalc, one YAML file each."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from paramcalc.base.errors import SourceError, nearest


def _folder() -> Path:
    """The folder of the YAML files: inside an installed package, or at the top of a checkout."""
    inside = Path(__file__).parents[1] / "presets"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "presets"


@cache
def _index() -> dict[str, dict[str, Any]]:
    """The fields of every preset, by name. tests/tools/index.py writes the file; JSON loads faster than YAML."""
    return dict(json.loads(Path(__file__).with_name("presets.json").read_text(encoding="utf-8")))


def preset_names() -> list[str]:
    """The names of all presets, sorted."""
    return list(_index())


def looks_like_path(text: str) -> bool:
    """True if a text has the form of a path, so that it is no preset name."""
    return "/" in text or "\\" in text or text.lower().endswith((".json", ".yaml", ".yml")) or text.startswith("~")


def preset_fields(name: str) -> dict[str, Any]:
    """The fields of a preset; its name is case-insensitive. Raises SourceError with the nearest names."""
    return dict(_index()[_preset_key(name)])


def preset_text(name: str) -> str:
    """The YAML text of a preset. Raises SourceError with the nearest names."""
    return (_folder() / f"{_preset_key(name)}.yaml").read_text(encoding="utf-8")


def _preset_key(name: str) -> str:
    """The name of an existing preset, in lower case. Raises SourceError."""
    key = name.lower()
    if key in _index():  # so that a name never leads outside the folder
        return key
    if looks_like_path(name):
        hint = f"give a path without --preset: paramcalc count {name}"
        raise SourceError(f"no preset {name!r}: that looks like a path", hint)
    raise SourceError(
        f"no preset {name!r}", nearest(key, preset_names(), fallback="`paramcalc presets` lists all presets")
    )
