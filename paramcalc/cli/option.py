"""An option as data: its flags, its help and its parser; and the options that several groups share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.base.errors import ParamcalcError
from paramcalc.base.units import parse_tokens
from paramcalc.cli.options import FLAG

DEFAULT_CONTEXT = "8k"  # the default; printed with the result


class Option(NamedTuple):
    """An option: its flags, the placeholder of its value, its help and its parser."""

    flags: tuple[str, ...]
    metavar: str
    help: str
    read: Callable[[Any], Any] = str
    many: bool = False

    def annotation(self) -> Any:
        """The annotation for Typer."""
        kind = bool if self.metavar == FLAG else list[str] if self.many else str
        return Annotated[kind | None, typer.Option(*self.flags, metavar=self.metavar, help=self.help)]

    def value(self, text: Any) -> Any:
        """The value of a string, a flag or a list of strings."""
        return tuple(map(self.read, text)) if self.many else self.read(text)


def whole_number(text: str) -> int:
    """A whole number. Raises ParamcalcError for anything else."""
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ParamcalcError(f"{text!r} is not a whole number", "write it like 8")
    return int(text)


def context(description: str) -> Option:
    """The option for the tokens of a sequence, with its default."""
    return Option(("--context", "-c", "--max-model-len"), "TOKENS", description, parse_tokens)


BATCH = Option(("--batch", "-b", "--max-num-seqs"), "N", "Sequences in a batch.", whole_number)
SOURCE = Option(("--source",), "TOKENS", "Tokens of the encoder; as many as --context if not given.", parse_tokens)
INCLUDE_MTP = Option(
    ("--include-mtp",), FLAG, "Add the modules for multi-token prediction that the checkpoint ships.", bool
)


def values(options: dict[str, Option], texts: dict[str, Any]) -> dict[str, Any]:
    """The values of the given options; omitted options are absent."""
    return {name: options[name].value(text) for name, text in texts.items() if text is not None and text != []}
