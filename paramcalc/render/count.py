"""Tables of `count`: one model by category or as a tree, or several models side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paramcalc.base.dtypes import dtype
from paramcalc.base.units import exact, human_bytes, human_count, percent
from paramcalc.counting.tree_rows import TreeRow as Outlined
from paramcalc.render.answer import View, validated
from paramcalc.render.pattern import patterns
from paramcalc.render.table import BAR, COLUMN_GAP, LEAST_BAR, WIDE, Column, bar, fit_columns, heading
from paramcalc.render.text import RowData
from paramcalc.reports.count import CountReport

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

    from paramcalc.reports.shapes.count import CountReportDict

BYTE_DTYPES = ("float32", "bfloat16", "float8_e4m3fn")
SHORT = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float8_e4m3fn": "fp8"}


def count_view(
    answers: Sequence[CountReportDict], *, tree: Sequence[Outlined] | None = None, include_mtp: bool = False
) -> View:
    """The output of `count`; with `tree`, the component tree in place of the categories for a single model."""
    reports = validated(CountReport, answers)

    def table(width: int | None) -> RenderableType:
        if len(reports) == 1:
            return count_table(reports[0], tree, width=width, include_mtp=include_mtp)
        return count_models_table(reports, width or WIDE)

    return View(lambda: [count_row(report) for report in reports], table)


# -- one model ---------------------------------------------------------------------------------------------------


def count_table(
    report: CountReport, rows: Sequence[Outlined] | None = None, *, width: int | None = None, include_mtp: bool = False
) -> Group:
    """One model: header, layer pattern, parameters by category (or the tree, if `rows` are given), and bytes.

    A narrow terminal omits columns instead of cutting them: bars first, then rounded figures and notes.
    """
    from rich.console import Group
    from rich.text import Text

    room = width or WIDE
    middle = tree_table(rows, report.parameters.total, room) if rows else category_table(report, room)
    reasons = [Text(f"! {reason}") for reason in report.warnings if width is None]  # a terminal shows them anyway
    named = summary_table(report, room, include_mtp)
    return Group(_header(report), *reasons, Text(""), middle, Text(""), named, Text(""), weights(report))


def _header(report: CountReport) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    return Group(heading(report.model), *(Text(line) for line in patterns(report.layers)))


def category_table(report: CountReport, room: int) -> Table:
    """Parameters by category: exact, human, share and a bar; the column adds up to the total."""
    p, shares = report.parameters, list(report.components.items())
    totals = [share.total for _, share in shares]
    columns = [
        Column("component", [name.replace("_", " ") for name, _ in shares], "total"),
        Column("parameters", [exact(n) for n in totals], exact(p.total), right=True),
        Column("", [human_count(n) for n in totals], human_count(p.total), right=True, rank=3),
        Column("share", [percent(n, p.total) for n in totals], percent(p.total, p.total), right=True, rank=2),
    ]
    active = Column("active", [exact(share.active) for _, share in shares], exact(p.active), right=True, rank=1)
    columns += [active] if p.active != p.total else []
    spare = room - sum(column.width for column in columns) - COLUMN_GAP
    if spare >= LEAST_BAR:
        cells = min(spare, BAR)
        columns.append(Column("", [bar(n, max(totals), cells) for n in totals], " " * cells, style="cyan"))
    return fit_columns(columns, room)


def tree_table(rows: Sequence[Outlined], total: int, room: int) -> Table:
    """The component tree: indented parts with shapes, exact counts and shares."""
    totals = [row.total for row in rows]
    columns = [
        Column("part", ["  " * row.level + row.name for row in rows], "total"),
        Column("shape or pattern", [row.detail for row in rows], rank=4),
        Column("parameters", [exact(n) for n in totals], exact(total), right=True),
        Column("", [human_count(n) for n in totals], human_count(total), right=True, rank=3),
        Column("share", [percent(n, total) for n in totals], percent(total, total), right=True, rank=2),
    ]
    return fit_columns(columns, room)


def summary_table(report: CountReport, room: int, include_mtp: bool) -> Table:
    """The named figures next to the total: active, non-embedding, and figures outside the total."""
    p = report.parameters
    rows: list[tuple[str, int, str]] = []
    if p.active != p.total:
        rows.append(("active", p.active, "per token, including input and output embeddings"))
    if p.active_without_input_embedding != p.active:
        rows.append(
            (
                "active without input embedding",
                p.active_without_input_embedding,
                "excluding the lookup in the input embedding",
            )
        )
    rows.append(("non-embedding", p.non_embedding, "without embeddings and output head"))
    if p.buffers:
        rows.append(("buffers", p.buffers, "saved with the model, not trained, not in the total"))
    if p.mtp:
        where = "included in the total" if include_mtp else "not in the total (--include-mtp adds it)"
        rows.append(("mtp", p.mtp, f"multi-token prediction: in the checkpoint, not built by the class, {where}"))
    ties = [f"{tie} to {owner}, counted once" for tie, owner in report.tied]
    blank = [""] * len(ties)
    columns = [
        Column("", [name for name, _, _ in rows] + ["tied"] * len(ties)),
        Column("", [exact(figure) for _, figure, _ in rows] + blank, right=True),
        Column("", [human_count(figure) for _, figure, _ in rows] + blank, right=True, rank=1),
        Column("", [note for _, _, note in rows] + ties, rank=2, wraps=True),
    ]
    return fit_columns(columns, room, bare=True)


def weights(report: CountReport) -> RenderableType:
    """Bytes of the parameters in the config's dtype and in other plain dtypes; `memory` reports block formats."""
    from rich.text import Text

    own, total = report.weights, report.parameters.total
    others = [name for name in BYTE_DTYPES if name != own.dtype]
    line = f"weights  {own.dtype} {human_bytes(own.bytes)} ({exact(own.bytes)} bytes)"
    rest = "  ".join(f"{SHORT.get(name, name)} {human_bytes(dtype(name).bytes(total))}" for name in others)
    return Text(f"{line}\n         {rest}")


# -- several models ----------------------------------------------------------------------------------------------


def count_models_table(reports: Sequence[CountReport], room: int) -> Table:
    """One row per model."""
    totals = [report.parameters.total for report in reports]
    sizes = [f"{SHORT.get(r.weights.dtype, r.weights.dtype)} {human_bytes(r.weights.bytes)}" for r in reports]
    columns = [
        Column("model", [report.model.name for report in reports]),
        Column("family", [report.model.family for report in reports], rank=6),
        Column("status", [report.model.status for report in reports], rank=1),
        Column("total", [exact(n) for n in totals], right=True),
        Column("", [human_count(n) for n in totals], right=True, rank=5),
        Column("active", [exact(report.parameters.active) for report in reports], right=True, rank=2),
        Column("non-embedding", [exact(report.parameters.non_embedding) for report in reports], right=True, rank=4),
        Column("weights", sizes, right=True, rank=3),
    ]
    return fit_columns(columns, room)


# -- rows ---------------------------------------------------------------------------------------------------------


def count_row(report: CountReport) -> RowData:
    """The figures of one model."""
    p, m = report.parameters, report.model
    return {
        "name": m.name,
        "family": m.family,
        "architecture": m.architecture,
        "status": m.status,
        "total": p.total,
        "active": p.active,
        "active_without_input_embedding": p.active_without_input_embedding,
        "non_embedding": p.non_embedding,
        "buffers": p.buffers,
        "mtp": p.mtp,
        "dtype": report.weights.dtype,
        "bytes": report.weights.bytes,
        "warnings": "; ".join(report.warnings),
    }
