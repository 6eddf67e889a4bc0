"""Tables of `scale` and `design`: one row per model; a narrow terminal omits columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from paramcalc.base.units import exact, human_bytes, human_count, human_flops, number_of
from paramcalc.render.answer import View, validated
from paramcalc.render.table import WIDE, Column, fit_columns, heading, with_rest
from paramcalc.render.text import RowData

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

    from paramcalc.reports.scaling import DesignPoint, DesignReport, Point, Reference, ScaleReport
    from paramcalc.reports.shapes.scaling import DesignReportDict, ScaleReportDict

NO_FIGURE = "-"


Under = Callable[["RenderableType", "ScaleReport | DesignReport", "int | None"], "RenderableType"]


def scale_view(answer: ScaleReportDict, under: Under) -> View:
    """The output of `scale`; `under` adds a plot below the table."""
    from paramcalc.reports.scaling import ScaleReport

    (report,) = validated(ScaleReport, [answer])
    return View(lambda: report_rows(report), lambda width: under(scale_table(report, width), report, width))


def design_view(answer: DesignReportDict, under: Under) -> View:
    """The output of `design`; `under` adds a plot below the table."""
    from paramcalc.reports.scaling import DesignReport

    (report,) = validated(DesignReport, [answer])
    return View(lambda: report_rows(report), lambda width: under(design_table(report, width), report, width))


def scale_table(report: ScaleReport, width: int | None) -> Group:
    """Every point of a grid; impossible points with the reason."""
    base = report.base.parameters
    more = [
        _ratios("x base", [row.parameters.total if row.parameters else None for row in report.rows], base.total, 3),
        _ratios(
            "x non-emb.",
            [row.parameters.non_embedding if row.parameters else None for row in report.rows],
            base.non_embedding,
            4,
        ),
    ]
    table = with_rest(points_columns(report.rows, more=more), width or WIDE)
    return _page(report, width, table, _notes(report))


def _ratios(name: str, figures: Sequence[int | None], base: int, rank: int) -> Column:
    """A ratio to the base's figure."""
    cells = [NO_FIGURE if figure is None or not base else f"{Decimal(figure) / base:.2f}" for figure in figures]
    return Column(name, cells, right=True, rank=rank)


def design_table(report: DesignReport, width: int | None) -> Group:
    """A model for each depth, the closest one marked."""
    goal = report.goal
    lines = [
        f"goal     {goal.match} {_budget(report)}" if goal.budget else "goal     largest model that fits on the device"
    ]
    if goal.at_most_bytes:
        lines.append(f"at most  {human_bytes(goal.at_most_bytes)} on {report.assumptions.gpu}, caches included")
    marks = ["*" if i == report.best else "" for i in range(len(report.rows))]
    columns = points_columns(report.rows, first=[Column("", marks)], more=_design_columns(report.rows))
    table = with_rest(columns, width or WIDE)
    return _page(report, width, table, [*lines, *_notes(report)])


def _budget(report: DesignReport) -> str:
    budget = report.goal.budget or 0
    if report.goal.match == "weight-bytes":
        return human_bytes(budget)
    return f"{human_flops(budget) if report.goal.match == 'flops' else human_count(budget)} ({exact(budget)})"


def _page(report: ScaleReport | DesignReport, width: int | None, table: RenderableType, notes: Sequence[str]) -> Group:
    from rich.console import Group
    from rich.text import Text

    reasons = [Text(f"! {reason}") for reason in report.warnings if width is None]  # a terminal shows them anyway
    problems = [Text(line) for line in _problems(report.rows)]
    blank = [Text("")] if problems else []
    references: list[RenderableType] = (
        [Text(""), references_table(report.overlay, width or WIDE)] if report.overlay else []
    )
    lines = [*(Text(note) for note in notes), *reasons, Text("")]
    return Group(heading(report.model), *lines, table, *blank, *problems[:MOST_TABLE_POINTS], *references)


MOST_TABLE_POINTS = 20  # reasons for impossible points in the table; JSON has all


def _problems(rows: Sequence[Point]) -> list[str]:
    """The reasons for impossible points, each once with its first point."""
    places: dict[str, list[str]] = {}
    for row in rows:
        if not row.valid:
            places.setdefault(row.problem or "", []).append(_place(row))
    return [
        f"{first}{f' and {len(more):,} more' if more else ''}: {problem}" for problem, (first, *more) in places.items()
    ]


def _place(row: Point) -> str:
    return ", ".join(f"{name} {at}" for name, at in row.at.items())


def _notes(report: ScaleReport | DesignReport) -> list[str]:
    assumed = report.assumptions
    trained = (
        "20 tokens per active parameter"
        if assumed.training_tokens is None
        else f"{human_count(assumed.training_tokens)} tokens"
    )
    stored = assumed.dtype or "as in the checkpoint"
    words = [f"context  {number_of(assumed.context, 'token')}  weights {stored}  trained on {trained}"]
    if any(row.latency and row.latency.step_ns for row in report.rows):
        sequences = "one sequence" if assumed.batch == 1 else f"each of {exact(assumed.batch)} sequences"
        words.append(f"step     estimated time of one token for {sequences} on {assumed.gpu}")
    return words


def points_columns(rows: Sequence[Point], *, first: Sequence[Column] = (), more: Sequence[Column] = ()) -> list[Column]:
    """The position of each point on the axes, and its figures."""
    axes = list(dict.fromkeys(name for row in rows for name in row.at))
    columns = [*first, *(Column(name, [str(row.at.get(name, NO_FIGURE)) for row in rows], right=True) for name in axes)]

    def column(name: str, cell: Callable[[Any], str], *, rank: int = 0) -> None:
        cells = [cell(row) if row.valid else NO_FIGURE for row in rows]
        columns.append(Column(name, cells, right=True, rank=rank))

    if any(row.valid and row.depth != row.at.get("depth") for row in rows):
        column(
            "steps", lambda row: exact(row.depth), rank=10
        )  # layers that a token passes through, not those of a stack
    column("total", lambda row: exact(row.parameters.total))
    column("", lambda row: human_count(row.parameters.total), rank=6)
    if any(row.valid and row.parameters and row.parameters.active != row.parameters.total for row in rows):
        column("active", lambda row: human_count(row.parameters.active), rank=3)
    columns += more
    column("non-embedding", lambda row: human_count(row.parameters.non_embedding), rank=7)
    column("embeddings", lambda row: _percent(row.embedding_share), rank=8)
    column("FLOPs/token", lambda row: human_flops(row.flops.forward_per_token), rank=4)
    column("training FLOPs", lambda row: _power(row.flops.training), rank=9)
    column("weights", lambda row: human_bytes(row.weights.bytes), rank=1)
    column("cache/token", lambda row: human_bytes(row.kv_cache.bytes_per_token), rank=5)
    if any(row.latency and row.latency.step_ns for row in rows):
        column("step", lambda row: _milliseconds(row.latency.step_ns), rank=2)
    return columns


def references_table(references: Sequence[Reference], room: int) -> Table:
    """Published models, in the columns of the points."""
    names = Column("published", [one.name for one in references])
    points = [as_point(one, {"depth": one.depth, "width": one.width}) for one in references]
    ratios = _aspects([one.aspect_ratio for one in references])
    return fit_columns(points_columns(points, first=[names], more=[ratios]), room)


def as_point(reference: Reference, at: dict[str, Any]) -> Point:
    """A published model as a point of a sweep."""
    from paramcalc.reports.scaling import Point

    figures = reference.model_dump(exclude={"ladder", "name", "width", "aspect_ratio"})
    return Point(at=at, valid=True, problem=None, fields={}, **figures)


def _aspects(ratios: Sequence[float | None]) -> Column:
    return Column("d/L", [NO_FIGURE if ratio is None else f"{ratio:.1f}" for ratio in ratios], right=True, rank=2)


def _design_columns(rows: Sequence[DesignPoint]) -> list[Column]:
    deviations = [NO_FIGURE if row.deviation is None else f"{row.deviation:+,}" for row in rows]
    found = [Column("deviation", deviations, right=True)] if any(d != NO_FIGURE for d in deviations) else []
    return [*found, _aspects([row.aspect_ratio for row in rows])]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _power(number: int) -> str:
    """A number of FLOPs in scientific notation: 1.35e+19."""
    return f"{Decimal(number):.2e}"


def _milliseconds(nanoseconds: int | None) -> str:
    return NO_FIGURE if nanoseconds is None else f"{Decimal(nanoseconds) / 10**6:.2f} ms"


def point_row(row: Point) -> RowData:
    """A point for CSV and Markdown; figures of an impossible model are empty."""
    flat: dict[str, Any] = {name: at if isinstance(at, int | str) else str(at) for name, at in row.at.items()}
    flat |= {"valid": str(row.valid).lower(), "problem": row.problem or ""}
    p, f, latency = row.parameters, row.flops, row.latency
    return flat | {
        "total": p.total if p else "",
        "active": p.active if p else "",
        "non_embedding": p.non_embedding if p else "",
        "embedding": p.embedding if p else "",
        "embedding_share": f"{row.embedding_share:.6f}" if row.embedding_share is not None else "",
        "layers": row.depth or "",
        "forward_flops_per_token": f.forward_per_token if f else "",
        "training_flops": f.training if f else "",
        "training_tokens": f.training_tokens if f else "",
        "weights_bytes": row.weights.bytes if row.weights else "",
        "kv_cache_bytes_per_token": row.kv_cache.bytes_per_token if row.kv_cache else "",
        "state_bytes": row.state.bytes if row.state else "",
        "step_ns_estimate": latency.step_ns or "" if latency else "",
    }


def design_row(row: DesignPoint) -> RowData:
    """A point with its deviation."""
    return point_row(row) | {"deviation": "" if row.deviation is None else row.deviation, **_aspect(row.aspect_ratio)}


def _aspect(ratio: float | None) -> RowData:
    return {"aspect_ratio": "" if ratio is None else f"{ratio:.3f}"}


def report_rows(report: ScaleReport | DesignReport) -> list[RowData]:
    """Every point; with published models, columns for their names, widths and aspect ratios too."""
    from paramcalc.reports.scaling import DesignPoint

    rows = [design_row(row) if isinstance(row, DesignPoint) else point_row(row) for row in report.rows]
    if not report.overlay:
        return rows
    empty: RowData = dict.fromkeys(("name", *rows[0], "width", "aspect_ratio"), "")
    references = [reference_row(one) for one in report.overlay]
    return [empty | row for row in rows] + [empty | {key: row.get(key, "") for key in empty} for row in references]


def reference_row(one: Reference) -> RowData:
    """A published model, with the keys of a point."""
    place = {"depth": one.depth, "width": one.width}
    return {"name": one.name} | point_row(as_point(one, place)) | _aspect(one.aspect_ratio)
