"""`paramcalc trace`: the shapes on a token's path, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.groups import MODELS, OUTPUT, takes
from paramcalc.cli.output import Output, warn
from paramcalc.cli.setting import SETTING
from paramcalc.compute.setting import Setting
from paramcalc.count import Figures
from paramcalc.model import Model

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paramcalc.compute.report import TraceReport
    from paramcalc.render.text import Row


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc trace --preset llama3-8b --batch 2 --tokens 5")(trace)


@takes(models=MODELS, asked=SETTING, out=OUTPUT)
def trace(models: list[Model], asked: Setting, out: Output) -> None:
    """Walk through one layer of each kind: shapes, parameters, FLOPs and bytes kept, step by step."""
    from paramcalc.compute.trace import figures

    answers = [figures(model, asked) for model in models]
    warn(warning for answer in answers for warning in answer["warnings"])
    out.emit(
        answers=lambda: answers,
        rows=lambda: _rows(_reports(answers)),
        table=lambda width: _tables(_reports(answers), width),
    )


def _reports(answers: list[Figures]) -> list[TraceReport]:
    from paramcalc.compute.report import TraceReport

    return [TraceReport.model_validate(answer) for answer in answers]


def _rows(reports: list[TraceReport]) -> list[Row]:
    from paramcalc.render.trace import trace_rows

    return [row for report in reports for row in trace_rows(report)]


def _tables(reports: list[TraceReport], width: int | None) -> RenderableType:
    from rich.console import Group

    from paramcalc.render.trace import trace_table

    return Group(*(trace_table(report, width) for report in reports))
