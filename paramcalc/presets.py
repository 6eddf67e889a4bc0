"""The models that ship with paramcalc: one YAML file each, read when asked for."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from paramcalc.errors import SourceError, nearest

NAME = re.compile(r"[a-z0-9][a-z0-9.\-]*")


@cache
def _folder() -> Path:
    """Inside an installed package the presets lie beside the code; in a checkout, at the top of the repository."""
    package = Path(__file__).parent
    inside = package / "presets"
    return inside if inside.is_dir() else package.parent / "presets"


def names() -> list[str]:
    """The names of all presets, sorted."""
    return sorted(path.stem for path in _folder().glob("*.yaml"))


def looks_like_path(text: str) -> bool:
    """Whether a text is meant as a path rather than as a preset's name."""
    return "/" in text or "\\" in text or text.lower().endswith((".json", ".yaml", ".yml")) or text.startswith("~")


def read(name: str) -> bytes:
    """The bytes of a preset. Raises SourceError with the nearest names; a name never reaches outside the folder."""
    key = name.lower()
    if NAME.fullmatch(key) and ".." not in key:
        path = _folder() / f"{key}.yaml"
        if path.is_file():
            return path.read_bytes()
    if looks_like_path(name):
        raise SourceError(
            f"no preset {name!r}: that looks like a path", f"give a file without --preset: paramcalc count {name}"
        )
    raise SourceError(f"no preset {name!r}", nearest(key, names(), fallback="`paramcalc presets` lists them all"))
