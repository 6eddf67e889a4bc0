"""Errors for bad input, and hints that name the nearest valid choices. `main` prints an error as two lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class ParamcalcError(Exception):
    """Base of all errors for bad input, with a message (the problem and its place) and a hint (the remedy).

    `exit_code` is the command's exit code: 2 if it could not run, 1 if it ran and the answer is no.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class SourceError(ParamcalcError):
    """The input cannot be read: no such file or preset, not JSON or YAML, or not a model config."""


class ConfigError(ParamcalcError):
    """A config field is missing, has an impossible value, or contradicts another."""


class UnknownFamilyError(ParamcalcError):
    """There is no recipe for this `model_type` or class."""


class StrictError(ParamcalcError):
    """The count has warnings, and `strict` forbids them."""

    exit_code = 1


def nearest(word: str, choices: Iterable[str], *, fallback: str) -> str:
    """A hint that names the closest choices, or `fallback` if none is close."""
    import difflib

    close = difflib.get_close_matches(word, list(choices), n=3, cutoff=0.6)
    if not close:
        return fallback
    return "did you mean " + " or ".join(repr(name) for name in close) + "?"


def choices(word: str, known: Sequence[str], *, shown: Sequence[str] = ()) -> str:
    """A hint that names the closest choices, and all known ones, or only the `shown` ones."""
    close = nearest(word, known, fallback="")
    return f"{close} known: {', '.join(shown or known)}".strip()


def one_line(text: str, most: int = 1_000) -> str:
    """`text` as one printable line, cut at `most` characters."""
    return printable(text if len(text) <= most else text[: most - 3] + "...")


def printable(text: str) -> str:
    """`text` with line breaks and terminal control characters escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
