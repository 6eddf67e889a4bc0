"""Tables of `compare`: figures are rows, models are columns; then the effect of each changed field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from paramcalc.base.errors import printable
from paramcalc.base.units import exact, human_count, number_of
from paramcalc.render.answer import View, validated
from paramcalc.render.table import COLUMN_GAP, WIDE, Column, fit_columns, heading, with_rest
from paramcalc.render.text import RowData
from paramcalc.reports.compare import CompareReport
from paramcalc.scaling.compare import model_labels

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

    from paramcalc.reports.base import ModelInfo
    from paramcalc.reports.compare import Change, ChangeStep, Compared
    from paramcalc.reports.shapes.compare import CompareReportDict

Lines = Sequence["Compared | None"]  # None: an empty line
LONGEST_VALUE = 20  # characters of a model's name or of a value in a column
LABELS = {
    "parameters.total": "total",
    "parameters.active": "active",
    "parameters.active_without_input_embedding": "active, no input emb.",
    "parameters.non_embedding": "non-embedding",
    "parameters.buffers": "buffers",
    "parameters.mtp": "mtp",
    "encoder_layers": "  encoder",
    "decoder_layers": "  decoder",
    "sequential_steps": "sequential steps",
    "aspect_ratio": "d_model / steps",
    "kv_heads": "kv heads",
    "experts_per_token": "experts per token",
    "expert_d_ff": "expert d_ff",
    "shared_expert_d_ff": "shared expert d_ff",
    "ffn_ratio": "d_ff / d_model",
    "working.logits.vocabulary": "vocabulary",
    "weights.bytes": "weights, bytes",
    "kv_cache.bytes_per_token": "cache per token, bytes",
    "kv_cache.per_sequence.bytes": "cache, bytes",
    "state.per_sequence": "state, bytes",
    "per_token.total": "FLOPs per token",
    "per_token.attention": "  attention",
}


def compare_view(answer: CompareReportDict) -> View:
    """The output of `compare`."""
    [report] = validated(CompareReport, [answer])
    return View(lambda: compare_rows(report), lambda width: compare_table(report, width))


def compare_table(report: CompareReport, width: int | None) -> Group:
    """The models, their figures in as many tables as the width requires, and the review of a change."""
    from rich.console import Group
    from rich.text import Text

    room, blank = width or WIDE, Text("")
    names = model_labels(report.models)
    parts: list[RenderableType] = [heading_of(*pair) for pair in zip(names, report.models, strict=True)]
    parts.append(Text(f"context {number_of(report.assumptions.context, 'token')}  batch 1  full attention"))
    parts += [Text(f"! {reason}") for reason in report.warnings if width is None]  # a terminal shows them anyway
    for table in figures_tables(report, names, room):
        parts += [blank, table]
    if not report.rows:
        parts += [blank, Text("no figure differs")]
    if report.change is not None:
        parts += [blank, *change_parts(report.change, room)]
    if report.notes:
        parts += [blank, *(Text(f"note: {note}") for note in report.notes)]
    return Group(*parts)


def heading_of(label: str, model: ModelInfo) -> RenderableType:
    """The model of a column, under the column's name."""
    return heading(model.model_copy(update={"name": label}))


# -- figures -----------------------------------------------------------------------------------------------------


def figures_tables(report: CompareReport, names: Sequence[str], room: int) -> Iterator[RenderableType]:
    """One table; if it is too wide even without ratios, several tables that each start with the first model."""
    if not report.rows:
        return
    rows = list(spaced(report.rows))
    first, group = figure_column(rows), [1]
    for other in range(2, len(names)):
        if width_of([first, *figure_columns(rows, names, [*group, other], least=True)]) > room:
            yield with_rest([first, *figure_columns(rows, names, group)], room)
            group = []
        group.append(other)
    yield with_rest([first, *figure_columns(rows, names, group)], room)


def spaced(rows: Sequence[Compared]) -> Iterator[Compared | None]:
    """The rows, with an empty line before the categories and before the rows of another report."""
    for i, (_, group) in enumerate(groupby(rows, lambda row: (row.report, row.name.startswith("components.")))):
        yield from [None, *group] if i else group


def width_of(columns: Sequence[Column]) -> int:
    """Characters of a line of these columns."""
    return sum(column.width for column in columns) - COLUMN_GAP


def figure_column(rows: Lines) -> Column:
    """The names of the figures."""
    return Column("", [label(row) if row else "" for row in rows])


def label(row: Compared) -> str:
    """A figure's name for people; categories are indented below the totals they add up to."""
    if row.name.startswith("components."):
        return "  " + row.name.split(".")[1].replace("_", " ")
    return LABELS.get(row.name, row.name)


def figure_columns(
    rows: Lines, names: Sequence[str], others: Sequence[int], *, least: bool = False
) -> Iterator[Column]:
    """The first model's figures, and those of others with differences and ratios to it; `least` omits these."""
    for i in [0, *others]:
        yield Column(short(names[i]), [value_text(row.values[i]) if row else "" for row in rows], right=True)
        if i and not least:
            if len(names) == 2:
                yield Column(
                    "difference", [signed(row.differences[i]) if row else "" for row in rows], right=True, rank=2
                )
            yield Column("ratio", [times(row.ratios[i]) if row else "" for row in rows], right=True, rank=1)


def short(text: str) -> str:
    """A text that fits into a column; its middle is omitted if it is too long."""
    if len(text) <= LONGEST_VALUE:
        return text
    half = (LONGEST_VALUE - 1) // 2
    return f"{text[: LONGEST_VALUE - 1 - half]}…{text[-half:]}"


def value_text(value: int | float | tuple[int | float, ...] | None) -> str:
    """A figure; both values, or the range, if layers differ."""
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return (" / " if len(value) == 2 else "-").join(value_text(one) for one in (value[0], value[-1]))
    return f"{value:,.2f}" if isinstance(value, float) else exact(value)


def signed(value: int | float | None) -> str:
    """A difference."""
    if not value:
        return "" if value is None else "0"
    return f"{value:+,.2f}" if isinstance(value, float) else f"{value:+,}"


def times(ratio: float | None) -> str:
    """A ratio to the first model: three decimals, or two significant digits if they would all be zero."""
    if ratio is None:
        return ""
    if 0 < ratio < 0.001:
        return f"{ratio:.2g} x"
    return f"{ratio:,.3f} x" if ratio < 100 else f"{ratio:,.1f} x"


# -- the review of a change --------------------------------------------------------------------------------------


def change_parts(change: Change, room: int) -> Iterator[RenderableType]:
    """The effect of each field in turn, and the fields without effect."""
    from rich.text import Text

    steps = [step for step in change.steps if step.components]
    others = [field for step in change.steps if not step.components for field in step.fields]
    if steps:
        yield steps_table(change, steps, room)
    if steps and others:
        yield Text("")
    if others:
        text = ", ".join(f"{field.name} {stated_text(field.old)} -> {stated_text(field.new)}" for field in others)
        yield Text(printable(f"without effect on the count: {text}"))
    if not change.steps:
        yield Text("no config field differs")


def steps_table(change: Change, steps: Sequence[ChangeStep], room: int) -> Table:
    """The fields in order; fields changed together have one difference, in the row of the first."""
    lines = [(field, step if field is step.fields[0] else None) for step in steps for field in step.fields]
    columns = [
        Column("changed", [field.name for field, _ in lines], "difference"),
        Column("from", [short(stated_text(field.old)) for field, _ in lines], right=True),
        Column("to", [short(stated_text(field.new)) for field, _ in lines], right=True),
        Column(
            "parameters",
            [signed(step.difference) if step else "together" for _, step in lines],
            signed(change.difference),
            right=True,
        ),
        Column("components", [component_differences(step.components) if step else "" for _, step in lines], rank=1),
    ]
    return fit_columns(columns, room)


def component_differences(components: dict[str, int]) -> str:
    """The categories that changed, largest difference first."""
    largest = sorted(components.items(), key=lambda one: -abs(one[1]))
    return ", ".join(f"{name.replace('_', ' ')} {'+' if n > 0 else ''}{human_count(n)}" for name, n in largest)


def stated_text(stated: object) -> str:
    """A field's value as JSON; "unstated" for a file without the field."""
    return "unstated" if stated is None else stated if isinstance(stated, str) else json.dumps(stated)


# -- rows for other programs -------------------------------------------------------------------------------------


def compare_rows(report: CompareReport) -> list[RowData]:
    """One row for each figure and each changed field, for CSV and Markdown."""
    names = model_labels(report.models)
    rows = [figure_row(row, names) for row in report.rows]
    if report.change is not None:
        rows += change_rows(report.change, names)
    return rows


def figure_row(row: Compared, names: Sequence[str]) -> RowData:
    """A figure of every model, differences and ratios to the first."""
    result: RowData = {"figure": f"{row.report}.{row.name}"}
    result |= {name: cell(value) for name, value in zip(names, row.values, strict=True)}
    result |= {f"{names[i]} difference": cell(row.differences[i]) for i in range(1, len(names))}
    return result | {f"{names[i]} ratio": cell(row.ratios[i]) for i in range(1, len(names))}


def cell(value: int | float | tuple[int | float, ...] | None) -> str | int:
    """An integer as it is; anything else as text, several values separated by slashes."""
    if isinstance(value, int):
        return value
    if isinstance(value, tuple):
        return " / ".join(str(one) for one in value)
    return "" if value is None else str(value)


def change_rows(change: Change, names: Sequence[str]) -> Iterator[RowData]:
    """A row for each changed field, with its effect on the total; the first field of a step has that of all."""
    old, new = names
    for step in change.steps:
        for field in step.fields:
            yield {
                "figure": f"config.{field.name}",
                old: stated_text(field.old),
                new: stated_text(field.new),
                f"{new} difference": step.difference if field is step.fields[0] else "",
                f"{new} ratio": "",
            }
