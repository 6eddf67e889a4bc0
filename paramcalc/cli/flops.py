"""`paramcalc flops`: what one or several models compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.groups import MODELS, OUTPUT, takes
from paramcalc.cli.options import FLAG
from paramcalc.cli.output import Output, warn
from paramcalc.cli.setting import SETTING
from paramcalc.compute.setting import Setting
from paramcalc.count import Figures
from paramcalc.model import Model

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paramcalc.compute.report import FlopsReport
    from paramcalc.render.text import Row


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc flops --preset llama3-8b --context 8k --causal")(flops)


@takes(models=MODELS, asked=SETTING, out=OUTPUT)
def flops(
    models: list[Model],
    asked: Setting,
    out: Output,
    by_part: Annotated[
        bool, typer.Option("--by-part", metavar=FLAG, help="One line for each matrix and product, not each category.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", "-e", metavar=FLAG, help="Set the published rules beside the figures.")
    ] = False,
) -> None:
    """Count the floating-point operations of one or several models, forward and backward."""
    from paramcalc.compute.flops import figures

    answers = [figures(model, asked) for model in models]
    warn(warning for answer in answers for warning in answer["warnings"])
    out.emit(
        answers=lambda: answers,
        rows=lambda: _rows(_reports(answers), by_part),
        table=lambda width: _table(_reports(answers), width, by_part, explain),
    )


def _reports(answers: list[Figures]) -> list[FlopsReport]:
    from paramcalc.compute.report import FlopsReport

    return [FlopsReport.model_validate(answer) for answer in answers]


def _rows(reports: list[FlopsReport], by_part: bool) -> list[Row]:
    from paramcalc.render.flops import flops_row, term_rows

    return [row for report in reports for row in term_rows(report)] if by_part else list(map(flops_row, reports))


def _table(
    reports: list[FlopsReport],
    width: int | None,
    by_part: bool,
    explain: bool,
) -> RenderableType:
    from paramcalc.render.flops import flops_table, models_table
    from paramcalc.render.table import WIDE

    if len(reports) == 1:
        return flops_table(reports[0], width, by_part=by_part, explain=explain)
    return models_table(reports, width or WIDE)
