"""Every error that bad input can cause; `main` prints them as two lines and never shows a traceback."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class ParamcalcError(Exception):
    """Base of every error raised for bad input: what is wrong and where, plus what to do about it.

    `exit_code` is what the command line returns: 2, could not run; 1, ran and the answer is no.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class SourceError(ParamcalcError):
    """The input cannot be read: no such file or preset, not JSON or YAML, or not a model config."""


class ConfigError(ParamcalcError):
    """The config was read, but a field is missing, has an impossible value, or contradicts another."""


class UnknownFamilyError(ParamcalcError):
    """No recipe is known for this `model_type` or class."""


class StrictError(ParamcalcError):
    """`strict` was asked for and the count would carry warnings."""

    exit_code = 1


def nearest(word: str, choices: Iterable[str], *, fallback: str) -> str:
    """A hint that names the closest choices, or `fallback` when nothing is close."""
    import difflib

    close = difflib.get_close_matches(word, list(choices), n=3, cutoff=0.6)
    if not close:
        return fallback
    return "did you mean " + " or ".join(repr(name) for name in close) + "?"


def choices(word: str, known: Sequence[str], *, shown: Sequence[str] = ()) -> str:
    """A hint that names the closest and all that are known, or those of them that are `shown`."""
    close = nearest(word, known, fallback="")
    return f"{close} known: {', '.join(shown or known)}".strip()


def one_line(text: str, most: int = 1_000) -> str:
    """`text` as one printable line of at most `most` characters."""
    return printable(text if len(text) <= most else text[: most - 3] + "...")


def printable(text: str) -> str:
    """`text` with what would break a line or steer a terminal escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
