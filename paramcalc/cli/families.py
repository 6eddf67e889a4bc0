"""`paramcalc families`: what is understood, and how it was verified."""

from __future__ import annotations

from typing import Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.options import FormatOpt, JsonOpt, OutputOpt
from paramcalc.cli.output import Output, dumped

RANKS = {"verified_by": 4, "architecture": 3, "mixers": 2, "goldens": 1}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc families deepseek_v3")(families)


def families(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show one family and the fields it reads.")] = None,
    fmt: FormatOpt = "table",
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """List the model_types that are understood, and how each was verified."""
    from paramcalc import catalog
    from paramcalc.render.rows import family_row
    from paramcalc.render.table import WIDE, family_table, listing

    out = Output(fmt, as_json, output)
    if name is not None:
        info = catalog.family_info(name)
        out.emit(answers=lambda: dumped([info]), rows=lambda: [family_row(info)], table=lambda _: family_table(info))
        return
    infos = catalog.family_infos()
    listed = [family_row(info) for info in infos]
    out.emit(
        answers=lambda: dumped(infos),
        rows=lambda: listed,
        table=lambda width: listing(listed, RANKS, width or WIDE),
        always_list=True,
    )
