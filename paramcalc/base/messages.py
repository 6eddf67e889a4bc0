"""What errors say of a value."""

from __future__ import annotations

from reprlib import Repr
from typing import Any


def out_of_range(value: int, most: int) -> str:
    """What is said of a size that is a slip."""
    size = f"{value:,}" if value < 10**24 else "absurdly large"
    return f"is {size}; more than {most:,} cannot be meant"


class _Brief(Repr):
    """Values as their files write them, cut short."""

    def repr_bool(self, x: bool, _level: int) -> str:
        return "true" if x else "false"

    def repr_NoneType(self, _x: None, _level: int) -> str:  # noqa: N802  (reprlib goes by the type's name)
        return "null"


_BRIEF = _Brief()
_BRIEF.maxlevel, _BRIEF.maxstring, _BRIEF.maxother, _BRIEF.maxlong = 3, 60, 60, 60


def short_repr(value: Any) -> str:
    """A value for a message, cut short."""
    text = _BRIEF.repr(value)  # never the whole of it: aliases make a short YAML file a value without end
    return text if len(text) <= 40 else text[:37] + "..."
