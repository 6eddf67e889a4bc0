"""`paramcalc fit`: does a model fit on a GPU, and which changes would make it fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.assumptions import Assumptions
from paramcalc.base.errors import ParamcalcError
from paramcalc.cli.memory_options import MEMORY_GROUP
from paramcalc.cli.option_groups import MODELS, OUTPUT, takes
from paramcalc.cli.options import GpuOpt, UtilizationOpt
from paramcalc.cli.output import Output, warn, warning_lines
from paramcalc.model import Model

if TYPE_CHECKING:
    from paramcalc.render.answer import View


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc fit --preset llama3-70b --gpu h100 --tp 4 --context 32k --batch 8")(fit)


@takes(models=MODELS, assumed=MEMORY_GROUP, out=OUTPUT)
def fit(
    models: list[Model],
    assumed: Assumptions,
    out: Output,
    gpu: GpuOpt = None,
    utilization: UtilizationOpt = None,
) -> None:
    """Check if a model fits on a GPU; exit with 1 if it does not."""
    from paramcalc.footprint import fit as verdict
    from paramcalc.footprint.devices import find_device

    def view() -> View:
        from paramcalc.render.fit import fit_view

        return fit_view(answers)

    if gpu is None:
        raise ParamcalcError("no GPU given", "use --gpu h100, or --gpu 24GiB; `paramcalc gpus` lists the names")
    device, share = find_device(gpu), verdict.utilization(utilization or verdict.DEFAULT_UTILIZATION)
    answers = [verdict.fit_figures(model, assumed, device, share) for model in models]
    warn(warning_lines([(answer["model"]["name"], answer["warnings"]) for answer in answers]))
    out.show(answers, view)
    if not all(answer["fits"] for answer in answers):
        raise typer.Exit(1)
