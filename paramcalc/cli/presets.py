"""`paramcalc presets`: what ships."""

from __future__ import annotations

from typing import Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.options import HELP, FormatOpt, JsonOpt, OutputOpt
from paramcalc.cli.output import Output, dumped

RANKS = {"source": 4, "family": 3, "status": 2, "active": 1}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="The models that ship with paramcalc.", invoke_without_command=True, context_settings=HELP)
    group.callback()(presets)
    group.command("list")(list_presets)
    group.command("show", epilog="Example: paramcalc presets show llama3-8b")(show_preset)
    app.add_typer(group, name="presets")


def presets(
    context: typer.Context,
    fmt: FormatOpt = "table",
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """The models that ship with paramcalc: list them, or show one's file."""
    if context.invoked_subcommand is None:
        list_presets(fmt, as_json, output)


def list_presets(fmt: FormatOpt = "table", as_json: JsonOpt = False, output: OutputOpt = None) -> None:
    """List the presets with total, active and source."""
    from paramcalc.catalog import preset_infos
    from paramcalc.render.rows import preset_row
    from paramcalc.render.table import WIDE, listing

    infos = preset_infos()
    listed = [preset_row(info) for info in infos]
    Output(fmt, as_json, output).emit(
        answers=lambda: dumped(infos),
        rows=lambda: listed,
        table=lambda width: listing(listed, RANKS, width or WIDE),
        always_list=True,
    )


def show_preset(
    name: Annotated[str, typer.Argument(help="The preset's name.")],
    fmt: FormatOpt = "table",
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """Show a preset's file, ready to be copied and changed."""
    from paramcalc import presets as shipped
    from paramcalc.catalog import preset_info
    from paramcalc.render.rows import preset_row

    text = shipped.text(name)
    info = preset_info(name)
    Output(fmt, as_json, output).emit(
        answers=lambda: dumped([info]), rows=lambda: [preset_row(info)], table=lambda _: text
    )
