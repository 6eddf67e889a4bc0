"""`paramcalc flops`: the floating-point operations of one or several models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.option_groups import MODELS, OUTPUT, takes
from paramcalc.cli.options import FLAG
from paramcalc.cli.output import Output, warn
from paramcalc.cli.workload_options import WORKLOAD_GROUP
from paramcalc.model import Model
from paramcalc.tree.workload import Workload

if TYPE_CHECKING:
    from paramcalc.render.answer import View


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc flops --preset llama3-8b --context 8k --causal")(flops)


@takes(models=MODELS, workload=WORKLOAD_GROUP, out=OUTPUT)
def flops(
    models: list[Model],
    workload: Workload,
    out: Output,
    by_part: Annotated[
        bool,
        typer.Option("--by-part", metavar=FLAG, help="One line for each matrix and product instead of each category."),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", "-e", metavar=FLAG, help="Show published rules of thumb next to the figures.")
    ] = False,
) -> None:
    """Count the floating-point operations of one or several models, forward and backward."""
    from paramcalc.compute.flops import flops_figures

    def view() -> View:
        from paramcalc.render.flops import flops_view

        return flops_view(answers, by_part=by_part, explain=explain)

    answers = [flops_figures(model, workload) for model in models]
    warn(warning for answer in answers for warning in answer["warnings"])
    out.show(answers, view)
