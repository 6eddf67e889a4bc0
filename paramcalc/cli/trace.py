"""`paramcalc trace`: the shapes on a token's path, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.option_groups import MODELS, OUTPUT, takes
from paramcalc.cli.output import Output, warn
from paramcalc.cli.workload_options import WORKLOAD_GROUP
from paramcalc.model import Model
from paramcalc.tree.workload import Workload

if TYPE_CHECKING:
    from paramcalc.render.answer import View


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc trace --preset llama3-8b --batch 2 --tokens 5")(trace)


@takes(models=MODELS, workload=WORKLOAD_GROUP, out=OUTPUT)
def trace(models: list[Model], workload: Workload, out: Output) -> None:
    """Walk through one layer of each kind: shapes, parameters, FLOPs and cached bytes, step by step."""
    from paramcalc.compute.trace import trace_figures

    def view() -> View:
        from paramcalc.render.trace import trace_view

        return trace_view(answers)

    answers = [trace_figures(model, workload) for model in models]
    warn(warning for answer in answers for warning in answer["warnings"])
    out.show(answers, view)
