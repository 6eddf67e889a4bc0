"""Phrases of error messages."""

from __future__ import annotations

from reprlib import Repr
from typing import Any


def out_of_range(value: int, most: int) -> str:
    """The complaint about an implausibly large size."""
    size = f"{value:,}" if value < 10**24 else "absurdly large"
    return f"is {size}, above the limit of {most:,}"


class _Brief(Repr):
    """Values in JSON notation, shortened."""

    def repr_bool(self, x: bool, _level: int) -> str:
        return "true" if x else "false"

    def repr_NoneType(self, _x: None, _level: int) -> str:  # noqa: N802  (reprlib looks the method up by the type's name)
        return "null"


_BRIEF = _Brief()
_BRIEF.maxlevel, _BRIEF.maxstring, _BRIEF.maxother, _BRIEF.maxlong = 3, 60, 60, 60


def short_repr(value: Any) -> str:
    """A value, shortened for a message."""
    text = _BRIEF.repr(value)  # bounded depth: YAML aliases can make a short file an endless value
    return text if len(text) <= 40 else text[:37] + "..."
