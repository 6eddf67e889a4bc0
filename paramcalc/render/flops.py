"""Tables of `flops`: forward by category or part, forward and backward, and published rules of thumb."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paramcalc.base.units import exact, human_flops, number_of, percent
from paramcalc.render.answer import View, validated
from paramcalc.render.table import BAR, COLUMN_GAP, LEAST_BAR, WIDE, Column, bar, fit_columns, heading
from paramcalc.render.text import RowData
from paramcalc.reports.flops import FlopsReport
from paramcalc.tree.ops import TERM_KINDS

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

    from paramcalc.reports.shapes.flops import FlopsReportDict


NARAYANAN = "Narayanan et al. 2021 count 4 x forward for GPT layers, which are recomputed, and 3 x for the head."
# The kinds of term that a narrow terminal omits; the highest rank goes first.
FLOP_COLUMN_RANKS = {"attention": 2, "recurrence": 3, "matmul": 4, "convolution": 5}


def flops_view(answers: Sequence[FlopsReportDict], *, by_part: bool, explain: bool) -> View:
    """The output of `flops`; `by_part` has a line for each matrix, `explain` adds published rules of thumb."""
    reports = validated(FlopsReport, answers)

    def rows() -> list[RowData]:
        return [row for report in reports for row in (term_rows(report) if by_part else [flops_row(report)])]

    def table(width: int | None) -> RenderableType:
        if len(reports) == 1:
            return flops_table(reports[0], width, by_part=by_part, explain=explain)
        return flops_models_table(reports, width or WIDE)

    return View(rows, table)


def flops_table(report: FlopsReport, width: int | None, *, by_part: bool = False, explain: bool = False) -> Group:
    """One model. A narrow terminal omits columns instead of cutting them."""
    from rich.console import Group
    from rich.text import Text

    reasons = [Text(f"! {reason}") for reason in report.warnings if width is None]  # a terminal shows them anyway
    room, blank = width or WIDE, Text("")
    body = flops_parts_table(report, room) if by_part else categories_table(report, room)
    parts: list[RenderableType] = [
        heading(report.model),
        Text(workload_text(report)),
        *reasons,
        blank,
        body,
        blank,
        passes_table(report, room),
    ]
    if explain:
        parts += [blank, rules_table(report, room), blank, Text(NARAYANAN)]
    if report.notes:
        parts += [blank, *(Text(f"note: {note}") for note in report.notes)]
    return Group(*parts)


def workload_text(report: FlopsReport) -> str:
    """The workload of the figures in one line."""
    a = report.assumptions
    words = [number_of(a.tokens, "new token"), f"context {exact(a.context)}", f"batch {exact(a.batch)}"]
    if any(term.name.partition(".")[0] == "encoder" or "cross" in term.name for term in report.terms):
        words.append(f"source {exact(a.source)}")
    words.append("causal attention" if a.causal else "full attention")
    if a.counting == "reference":
        words.append("counted as in the reference")
    return "  ".join(words)


def categories_table(report: FlopsReport, room: int) -> Table:
    """The forward pass by category; the columns add up to the total."""
    shares, forward = report.components, report.forward
    totals = [share.total for share in shares.values()]
    columns = [
        Column("forward", [name.replace("_", " ") for name in shares], "total"),
        Column("FLOPs", [exact(n) for n in totals], exact(forward.total), right=True),
        Column("", [human_flops(n) for n in totals], human_flops(forward.total), right=True, rank=1),
        Column("share", [percent(n, forward.total) for n in totals], percent(forward.total, forward.total), right=True),
    ]
    for term in TERM_KINDS:
        whole = getattr(forward, term)
        if whole and whole != forward.total:
            cells = [exact(getattr(share, term)) for share in shares.values()]
            columns.append(Column(term, cells, exact(whole), right=True, rank=FLOP_COLUMN_RANKS[term]))
    spare = room - sum(column.width for column in columns) - COLUMN_GAP
    if spare >= LEAST_BAR:
        cells = [bar(n, max(totals, default=0), min(spare, BAR)) for n in totals]
        columns.append(Column("", cells, " " * min(spare, BAR), style="cyan"))
    return fit_columns(columns, room)


def flops_parts_table(report: FlopsReport, room: int) -> Table:
    """The forward pass by part of the tree."""
    total, terms = report.forward.total, report.terms
    columns = [
        Column("forward", [term.name for term in terms], "total"),
        Column("term", [term.term for term in terms], rank=2),
        Column("times", [exact(term.copies) for term in terms], right=True, rank=3),
        Column("FLOPs", [exact(term.flops) for term in terms], exact(total), right=True),
        Column("", [human_flops(term.flops) for term in terms], human_flops(total), right=True, rank=4),
        Column("share", [percent(term.flops, total) for term in terms], percent(total, total), right=True, rank=1),
    ]
    return fit_columns(columns, room)


def passes_table(report: FlopsReport, room: int) -> Table:
    """Forward for each token, forward, backward, and both."""
    lines = [
        ("forward per token", report.per_token.total, "mean over the new tokens"),
        ("forward", report.forward.total, ""),
        ("backward", report.backward.total, "2 x forward"),
        ("forward + backward", report.training.total, "3 x forward"),
        ("with recomputation", report.training.with_recomputation, "4 x forward: every activation is computed twice"),
    ]
    columns = [
        Column("", [name for name, _, _ in lines]),
        Column("", [exact(figure) for _, figure, _ in lines], right=True),
        Column("", [human_flops(figure) for _, figure, _ in lines], right=True, rank=1),
        Column("", [note for _, _, note in lines], rank=2, wraps=True),
    ]
    return fit_columns(columns, room, bare=True)


def rules_table(report: FlopsReport, room: int) -> Table:
    """Published rules of thumb for forward and backward, with their differences from the figures above."""
    total, rules = report.training.total, report.rules
    idle = rules.six_nd - 3 * report.forward.matmul
    lines = [
        ("6ND, all parameters", rules.six_nd, f"no attention; includes {exact(idle)} for lookups, norms, biases"),
        ("6ND, non-embedding", rules.six_nd_non_embedding, "no attention, no head (Kaplan et al. 2020)"),
        ("PaLM: 6N + 12 L H Q T per token", rules.palm, "as the first, plus full attention"),
    ]
    columns = [
        Column("published rules", [name for name, _, _ in lines]),
        Column("FLOPs", [exact(figure) for _, figure, _ in lines], right=True),
        Column("of total", [percent(figure, total) for _, figure, _ in lines], right=True),
        Column("", [why for _, _, why in lines], rank=1, wraps=True),
    ]
    return fit_columns(columns, room)


def flops_models_table(reports: Sequence[FlopsReport], room: int) -> Table:
    """One row per model."""
    totals = [report.forward.total for report in reports]
    columns = [
        Column("model", [report.model.name for report in reports]),
        Column("per token", [human_flops(report.per_token.total) for report in reports], right=True, rank=1),
        Column("matmul", [human_flops(report.forward.matmul) for report in reports], right=True, rank=4),
        Column("attention", [human_flops(report.forward.attention) for report in reports], right=True, rank=3),
        Column("forward", [exact(n) for n in totals], right=True),
        Column("", [human_flops(n) for n in totals], right=True, rank=2),
    ]
    return fit_columns(columns, room)


def flops_row(report: FlopsReport) -> RowData:
    """The figures of one model, for CSV and Markdown."""
    a = report.assumptions
    return {
        "name": report.model.name,
        "status": report.model.status,
        "tokens": a.tokens,
        "context": a.context,
        "batch": a.batch,
        "attention": "causal" if a.causal else "full",
        **{f"forward_{term}": getattr(report.forward, term) for term in ("total", *TERM_KINDS)},
        "forward_per_token": report.per_token.total,
        "backward": report.backward.total,
        "training": report.training.total,
        "training_with_recomputation": report.training.with_recomputation,
        "warnings": "; ".join(report.warnings),
    }


def term_rows(report: FlopsReport) -> list[RowData]:
    """The parts of one model, for CSV and Markdown."""
    return [
        {
            "model": report.model.name,
            "part": term.name,
            "category": term.category,
            "term": term.term,
            "copies": term.copies,
            "flops": term.flops,
        }
        for term in report.terms
    ]
