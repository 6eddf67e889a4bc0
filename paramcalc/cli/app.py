"""The application: every command has a module of its own, which registers it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer  # noqa: TID253  (only `main` imports this module)

from paramcalc.cli.options import FLAG, HELP
from paramcalc.version import __version__

COMMANDS = ("count", "memory", "presets", "families", "schema")  # in the order in which --help lists them
ABOUT = "Exact parameter counts of transformer and hybrid models, by arithmetic, from a config alone."


def print_version(wanted: bool) -> None:
    """Print the version and leave, if that is what was asked for."""
    if wanted:
        typer.echo(f"paramcalc {__version__}")
        raise typer.Exit


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The application with the command that is asked for, or with all of them where that is not clear yet."""
    app = typer.Typer(
        name="paramcalc",
        help=ABOUT,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings=HELP,
    )
    app.callback()(common)
    asked = arguments[0] if arguments and arguments[0] in COMMANDS else None
    for name in [asked] if asked else COMMANDS:
        import_module(f"paramcalc.cli.{name}").register(app)
    return app


def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=lambda wanted: _version(wanted),
            is_eager=True,
            metavar=FLAG,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Exact parameter counts of transformer and hybrid models, by arithmetic, from a config alone."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"paramcalc {__version__}")
        raise typer.Exit
