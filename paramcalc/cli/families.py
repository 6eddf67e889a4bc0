"""`paramcalc families`: the known model types and how each was verified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.option_groups import OUTPUT, takes
from paramcalc.cli.output import Output, report_data

if TYPE_CHECKING:
    from paramcalc.render.answer import View


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc families deepseek_v3")(families)


@takes(out=OUTPUT)
def families(
    out: Output,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show one family and the fields it reads.")] = None,
) -> None:
    """List the known model types and how each was verified."""
    from paramcalc import catalog

    def view() -> View:
        from paramcalc.render.answer import View
        from paramcalc.render.listings import family_row, family_table, list_view

        rows, table = list_view("families", infos, family_row)
        return View(rows, (lambda _: family_table(infos[0])) if name else table)

    infos = catalog.family_infos() if name is None else [catalog.family_info(name)]
    out.show(report_data(infos), view, always_list=name is None)
