"""The application: every command has a module of its own, which registers it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer  # noqa: TID253  (only `main` imports this module)

from paramcalc.base.errors import nearest
from paramcalc.base.version import __version__
from paramcalc.cli.options import FLAG, HELP
from paramcalc.cli.streams import colored
from paramcalc.cli.typer_classes import CommandGroup

# In the order in which --help lists them.
COMMANDS = (
    "count",
    "memory",
    "fit",
    "flops",
    "trace",
    "scale",
    "design",
    "compare",
    "presets",
    "gpus",
    "families",
    "dtypes",
    "schema",
)
HELP_TEXT = "Exact parameter counts of transformer and hybrid models, by arithmetic, from a config alone."


class Commands(CommandGroup):
    """The group of commands. A model in place of a command gets a hint to `count`."""

    def suggestion(self, word: str) -> str:
        from paramcalc.sources import files

        if files.source_exists(word):
            return f"to count it: paramcalc count {word}"
        return nearest(word, COMMANDS, fallback="commands: " + ", ".join(COMMANDS))


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The application with only the command in the arguments, or with all commands if they name none."""
    app = typer.Typer(
        name="paramcalc",
        cls=Commands,
        help=HELP_TEXT,
        rich_markup_mode="rich" if colored() else None,  # without colours, without rich
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings=HELP,
    )
    app.callback()(common)
    command = arguments[0] if arguments and arguments[0] in COMMANDS else None
    for name in [command] if command else COMMANDS:
        import_module(f"paramcalc.cli.{name}").register(app)
    return app


def requests_json(arguments: Sequence[str]) -> bool:
    """True if a command line, valid or not, requests JSON.

    The parser itself reads it and skips unknown options, so values and arguments after `--` are not taken for options.
    """
    command: Any = typer.main.get_command(app_for(arguments))
    name, rest, context = "paramcalc", list(arguments), None
    while command is not None:
        context = command.make_context(
            name, rest, parent=context, resilient_parsing=True, ignore_unknown_options=True, allow_extra_args=True
        )
        if context.params.get("as_json") or str(context.params.get("fmt")).lower() == "json":
            return True
        unread = [*context._protected_args, *context.args]
        if not unread or not hasattr(command, "resolve_command"):
            return False
        name, command, rest = command.resolve_command(context, unread)
    return False


def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=lambda context, wanted: _version(context, wanted),
            is_eager=True,
            metavar=FLAG,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Exact parameter counts of transformer and hybrid models, by arithmetic, from a config alone."""


def _version(context: typer.Context, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        typer.echo(f"paramcalc {__version__}")
        raise typer.Exit
