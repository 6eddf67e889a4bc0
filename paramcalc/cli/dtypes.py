"""`paramcalc dtypes`: the formats of weights and caches."""

from __future__ import annotations

from typing import Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.options import FormatOpt, JsonOpt, OutputOpt
from paramcalc.cli.output import Output, dumped

RANKS = {"source": 4, "use": 3, "leaves": 2, "layout": 1}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc dtypes gptq-int4-g32")(dtypes)


def dtypes(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show one format.")] = None,
    fmt: FormatOpt = "table",
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """List the formats that weights and caches can have: bits per weight, layout, what they leave as it is."""
    from paramcalc.footprint.listing import dtype_info, dtype_infos
    from paramcalc.render.rows import dtype_row
    from paramcalc.render.table import WIDE, listing

    infos = dtype_infos() if name is None else [dtype_info(name)]
    listed = [dtype_row(info) for info in infos]
    Output(fmt, as_json, output).emit(
        answers=lambda: dumped(infos),
        rows=lambda: listed,
        table=lambda width: listing(listed, RANKS, width or WIDE),
        always_list=name is None,
    )
