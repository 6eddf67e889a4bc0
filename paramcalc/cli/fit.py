"""`paramcalc fit`: whether a model fits on a GPU, and what would make it fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.assumed import ASSUMED
from paramcalc.cli.groups import MODELS, OUTPUT, takes
from paramcalc.cli.output import Output, warn
from paramcalc.count import Figures
from paramcalc.errors import ParamcalcError
from paramcalc.footprint.assumptions import Assumptions
from paramcalc.model import Model

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paramcalc.footprint.fit_report import FitReport
    from paramcalc.render.text import Row


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc fit --preset llama3-70b --gpu h100 --tp 4 --context 32k --batch 8")(fit)


@takes(models=MODELS, assumed=ASSUMED, out=OUTPUT)
def fit(
    models: list[Model],
    assumed: Assumptions,
    out: Output,
    gpu: Annotated[
        str | None, typer.Option("--gpu", "-g", metavar="NAME", help="A name that `paramcalc gpus` lists, or 24GiB.")
    ] = None,
    utilization: Annotated[
        str | None,
        typer.Option(
            "--gpu-memory-utilization", metavar="SHARE", help="Share of its memory that may be used; 0.9 if not given."
        ),
    ] = None,
) -> None:
    """Say whether a model fits on a GPU; exit with 1 where it does not."""
    from paramcalc.footprint import fit as verdict
    from paramcalc.footprint.devices import device

    if gpu is None:
        raise ParamcalcError("no GPU given", "--gpu h100, or --gpu 24GiB; `paramcalc gpus` lists them")
    one, share = device(gpu), verdict.utilization(utilization or verdict.UTILIZATION)
    answers = [verdict.figures(model, assumed, one, share) for model in models]
    warn(warning for answer in answers for warning in answer["warnings"])
    out.emit(
        answers=lambda: answers,
        rows=lambda: _rows(_reports(answers)),
        table=lambda width: _table(_reports(answers), width),
    )
    if not all(answer["fits"] for answer in answers):
        raise typer.Exit(1)


def _reports(answers: list[Figures]) -> list[FitReport]:
    from paramcalc.footprint.fit_report import FitReport

    return [FitReport.model_validate(answer) for answer in answers]


def _rows(reports: list[FitReport]) -> list[Row]:
    from paramcalc.render.fit import fit_row

    return [fit_row(report) for report in reports]


def _table(reports: list[FitReport], width: int | None) -> RenderableType:
    from rich.console import Group

    from paramcalc.render.fit import fit_table

    tables = [fit_table(report, width) for report in reports]
    return Group(*(part for table in tables for part in (table, "")[: 1 if table is tables[-1] else 2]))
