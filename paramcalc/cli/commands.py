"""A group of commands that knows what an unknown one may have meant."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from typer.core import TyperGroup  # noqa: TID253  (only the command line imports this module)

from paramcalc.errors import ParamcalcError


class CommandGroup(TyperGroup):
    """A group whose unknown commands are our errors."""

    @abstractmethod
    def meant(self, word: str) -> str:
        """The hint for a word that is no command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command named by the first argument. Raises ParamcalcError where there is none of that name."""
        word = args[0]
        if self.get_command(ctx, word) is None and not ctx.resilient_parsing and not word.startswith("-"):
            raise ParamcalcError(f"no such command {word!r}", self.meant(word))
        return super().resolve_command(ctx, args)
