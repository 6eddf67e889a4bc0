"""The models that ship with paramcalc: one YAML file each, read when asked for."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from paramcalc.base.errors import SourceError, nearest


def _folder() -> Path:
    """Inside an installed package the presets lie beside the code; in a checkout, at the top of the repository."""
    inside = Path(__file__).parents[1] / "presets"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "presets"


@cache
def _index() -> dict[str, dict[str, Any]]:
    """The fields of every preset as JSON, which loads in no time. Written by tests/tools/index.py."""
    return dict(json.loads(Path(__file__).with_name("presets.json").read_text(encoding="utf-8")))


def preset_names() -> list[str]:
    """The names of all presets, sorted."""
    return list(_index())


def looks_like_path(text: str) -> bool:
    """Whether a text is meant as a path rather than as a preset's name."""
    return "/" in text or "\\" in text or text.lower().endswith((".json", ".yaml", ".yml")) or text.startswith("~")


def preset_fields(name: str) -> dict[str, Any]:
    """The fields of a preset, in any case of its name. Raises SourceError with the nearest names."""
    return dict(_index()[_known(name)])


def preset_text(name: str) -> str:
    """A preset's file as it is."""
    return (_folder() / f"{_known(name)}.yaml").read_text(encoding="utf-8")


def _known(name: str) -> str:
    key = name.lower()
    if key in _index():  # and so it never reaches outside the folder
        return key
    if looks_like_path(name):
        hint = f"give a file without --preset: paramcalc count {name}"
        raise SourceError(f"no preset {name!r}: that looks like a path", hint)
    raise SourceError(
        f"no preset {name!r}", nearest(key, preset_names(), fallback="`paramcalc presets` lists them all")
    )
