"""`paramcalc memory`: what one or several models take in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.assumed import ASSUMED
from paramcalc.cli.groups import MODELS, OUTPUT, takes
from paramcalc.cli.output import Output, warn, warnings_of
from paramcalc.count import Figures
from paramcalc.footprint.assumptions import Assumptions
from paramcalc.model import Model

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paramcalc.footprint.report import MemoryReport
    from paramcalc.render.text import Row


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc memory --preset llama3-8b --context 128k --batch 4 --kv-cache-dtype fp8")(
        memory
    )


@takes(models=MODELS, assumed=ASSUMED, out=OUTPUT)
def memory(models: list[Model], assumed: Assumptions, out: Output) -> None:
    """Say what one or several models take in bytes: weights, caches, states."""
    from paramcalc.footprint.memory import figures

    answers = [figures(model, assumed) for model in models]
    warn(warnings_of(models))
    out.emit(
        answers=lambda: answers,
        rows=lambda: _rows(_reports(answers)),
        table=lambda width: _table(_reports(answers), width),
    )


def _reports(answers: list[Figures]) -> list[MemoryReport]:
    from paramcalc.footprint.report import MemoryReport

    return [MemoryReport.model_validate(answer) for answer in answers]


def _rows(reports: list[MemoryReport]) -> list[Row]:
    from paramcalc.render.memory import memory_row

    return [memory_row(report) for report in reports]


def _table(reports: list[MemoryReport], width: int | None) -> RenderableType:
    from paramcalc.render.memory import memory_table, models_table
    from paramcalc.render.table import WIDE

    return memory_table(reports[0], width) if len(reports) == 1 else models_table(reports, width or WIDE)
