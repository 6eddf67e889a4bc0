"""`paramcalc dtypes`: the formats of weights and caches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.option_groups import OUTPUT, takes
from paramcalc.cli.output import Output, report_data

if TYPE_CHECKING:
    from paramcalc.render.answer import View


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc dtypes gptq-int4-g32")(dtypes)


@takes(out=OUTPUT)
def dtypes(
    out: Output,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show one format.")] = None,
) -> None:
    """List the formats of weights and caches: bits per weight, layout, tensors they do not convert."""
    from paramcalc.storage.listing import dtype_info, dtype_infos

    def view() -> View:
        from paramcalc.render.listings import dtype_row, list_view

        return list_view("dtypes", infos, dtype_row)

    infos = dtype_infos() if name is None else [dtype_info(name)]
    out.show(report_data(infos), view, always_list=name is None)
