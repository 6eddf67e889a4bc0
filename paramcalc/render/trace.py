"""The table of `trace`, one block after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from paramcalc.base.units import exact, human_bytes, human_flops, number_of
from paramcalc.render.answer import View, validated
from paramcalc.render.table import WIDE, Column, fit_columns, heading
from paramcalc.render.text import RowData
from paramcalc.reports.trace import TraceReport

if TYPE_CHECKING:
    from rich.console import Group

    from paramcalc.reports.shapes.trace import TraceReportDict
    from paramcalc.reports.trace import TraceBlock


def trace_view(answers: Sequence[TraceReportDict]) -> View:
    """The output of `trace`."""
    reports = validated(TraceReport, answers)

    def table(width: int | None) -> Group:
        from rich.console import Group

        return Group(*(trace_table(report, width) for report in reports))

    return View(lambda: [row for report in reports for row in trace_rows(report)], table)


def trace_table(report: TraceReport, width: int | None) -> Group:
    """One model. A narrow terminal omits columns instead of cutting them."""
    from rich.console import Group
    from rich.text import Text

    a, lines = report.assumptions, [line for block in report.blocks for line in block_lines(block)]
    words = f"batch {exact(a.batch)}  {number_of(a.tokens, 'new token')}  context {exact(a.context)}"
    reasons = [Text(f"! {reason}") for reason in report.warnings if width is None]
    names, shapes, parameters, flops, cached, notes = (list(column) for column in zip(*lines, strict=True))
    columns = [
        Column("step", names),
        Column("shape", shapes),
        Column("parameters", parameters, right=True),
        Column("FLOPs", flops, right=True, rank=1),
        Column("cached", cached, right=True, rank=2),
        Column("", notes, rank=3, wraps=True),
    ]
    return Group(heading(report.model), Text(words), *reasons, Text(""), fit_columns(columns, width or WIDE), Text(""))


def block_lines(block: TraceBlock) -> Iterator[tuple[str, str, str, str, str, str]]:
    """The lines of a block: its name, kind and input shape, then its steps."""
    if block.layers:
        times = f"1 of {block.layers} x {block.kind}" if block.layers > 1 else block.kind
        times += f", {block.passes} passes" if block.passes > block.layers else ""
        times += f", {block.caches} caches" if block.caches not in (0, block.passes) else ""
        yield block.name, shape_text(block.shape_in), "", "", "", f"in: {times}"
    for step in block.steps:
        name = f"  {step.name}" if block.layers else block.name if len(block.steps) == 1 else step.name
        yield (
            "  + residual" if step.add else name,
            "" if step.shape is None else shape_text(step.shape),
            exact(step.parameters) if step.parameters else "",
            human_flops(step.flops) if step.flops else "",
            human_bytes(step.kept_bytes) if step.kept_bytes else "",
            step.note,
        )


def shape_text(shape: tuple[int, ...]) -> str:
    """`(2, 5, 32)`."""
    return f"({', '.join(map(str, shape))})"


def trace_rows(report: TraceReport) -> list[RowData]:
    """Every step, for CSV and Markdown."""
    return [
        {
            "model": report.model.name,
            "block": block.name,
            "layers": block.layers,
            "step": step.name,
            "shape": "" if step.shape is None else shape_text(step.shape),
            "parameters": step.parameters,
            "flops": step.flops,
            "kept_bytes": step.kept_bytes,
            "note": "residual" if step.add else step.note,
        }
        for block in report.blocks
        for step in block.steps
    ]
