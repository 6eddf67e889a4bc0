"""Typer classes: a group with did-you-mean hints, and a command that keeps MODEL and --preset in the order given."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from typer.core import TyperCommand, TyperGroup  # noqa: TID253  (only the command line imports this module)

from paramcalc.base.errors import ParamcalcError


class CommandGroup(TyperGroup):
    """A group that raises our two-line errors for unknown commands."""

    @abstractmethod
    def suggestion(self, word: str) -> str:
        """The hint for a word that is no command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command named by the first argument. Raises ParamcalcError for an unknown one."""
        word = args[0]
        if self.get_command(ctx, word) is None and not ctx.resilient_parsing and not word.startswith("-"):
            raise ParamcalcError(f"no such command {word!r}", self.suggestion(word))
        return super().resolve_command(ctx, args)


class Preset(str):
    """A preset's name among the models of a command line."""

    __slots__ = ()


class InOrder(TyperCommand):
    """A command with models and presets in one list, in the order given.

    The parser separates options and arguments; the class records the number of arguments before each preset.
    """

    def make_parser(self, ctx: Any) -> Any:
        """A parser that records the positions of the presets."""
        parser: Any = super().make_parser(ctx)
        option = parser._long_opt["--preset"]
        noted: list[tuple[int, str]] = []
        process, ctx.meta[Preset] = option.process, noted

        def noting(value: str, state: Any) -> None:
            noted.append((len(state.largs), value))
            process(value, state)

        option.process = noting
        return parser

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The parameters, with presets among the models."""
        rest = super().parse_args(ctx, args)
        models = list(ctx.params.get("models") or ())
        for already, (before, name) in enumerate(ctx.meta[Preset]):
            models.insert(before + already, Preset(name))
        ctx.params |= {"models": models, "preset": None}
        return rest
