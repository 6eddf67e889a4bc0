"""Parameters at every point of a sweep: a heat map over two axes, or bars by category over any axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from paramcalc.base.errors import ParamcalcError
from paramcalc.plots.data import DEPTH, WIDTH, Bars, CategoryAxis, HeatMap, Mark, axis_label, varying
from paramcalc.reports.scaling import DesignReport, Reference, ScaleReport
from paramcalc.tree.component import Component
from paramcalc.tree.weights import CATEGORIES

if TYPE_CHECKING:
    from paramcalc.model import Model

MOST_BARS = 200
MOST_LEVELS = 6  # contour lines of equal parameters; more are clutter


def swept(report: ScaleReport) -> dict[str, list[Any]]:
    """The axes with several values."""
    return {name: values for name, values in report.axes.items() if len(values) > 1}


def heat_map_of(report: ScaleReport) -> HeatMap:
    """Parameters over two axes; the first is vertical. Raises ParamcalcError for more or fewer axes."""
    axes = swept(report)
    if len(axes) != 2:
        hint = "sweep two, like --depth 12,24 --width 768,1536, or use --plot-kind categories"
        raise ParamcalcError(f"a heat map needs two axes with several values, not {len(axes)}", hint)
    (outer, rows), (inner, columns) = axes.items()
    found = {
        (i, j): row.parameters.total if row.parameters else None
        for (i, j), row in zip(product(range(len(rows)), range(len(columns))), report.rows, strict=True)
    }
    up, across = in_order(rows), in_order(columns)
    totals = tuple(tuple(found[i, j] for j in across) for i in up)
    known = [total for row in totals for total in row if total is not None]
    y, x = category_axis(outer, [rows[i] for i in up]), category_axis(inner, [columns[j] for j in across])
    marks = tuple(marks_on_grid(report.overlay, x, y)) if (outer, inner) == (DEPTH, WIDTH) else ()
    title = f"{report.model.name}: total parameters"
    return HeatMap(title, x, y, totals, contour_levels(min(known), max(known)), marks)


def category_axis(name: str, values: Sequence[Any]) -> CategoryAxis:
    """The places of an axis with its unit."""
    return CategoryAxis(axis_label(name), tuple(values))


def in_order(values: Sequence[Any]) -> list[int]:
    """Indices of numbers in ascending order; other values keep their order."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return sorted(range(len(values)), key=values.__getitem__) if numbers else list(range(len(values)))


def marks_on_grid(references: Sequence[Reference], x: CategoryAxis, y: CategoryAxis) -> list[Mark]:
    """Published models that lie on the grid."""
    places = [(one.name, between(x.values, one.width), between(y.values, one.depth)) for one in references]
    return [Mark(name, across, up) for name, across, up in places if across is not None and up is not None]


def between(values: Sequence[int], value: int) -> float | None:
    """The position of a value among increasing ones, in fractions of a step; None outside their range."""
    for i, (low, high) in enumerate(pairwise(values)):
        if low <= value <= high:
            return i + (value - low) / (high - low)
    return None


def contour_levels(low: int, high: int) -> tuple[int, ...]:
    """Round numbers between two: 1, 2 and 5 times powers of ten, or fewer if these are too many."""
    found: tuple[int, ...] = ()
    for steps in ((1, 2, 5), (1, 5), (1,)):
        found = rounds(low, high, steps)
        if len(found) <= MOST_LEVELS:
            return found
    return found[:: ceil(len(found) / MOST_LEVELS)]


def rounds(low: float, high: float, steps: Sequence[int]) -> tuple[int, ...]:
    """These multiples of powers of ten that lie strictly between two numbers."""
    powers = range(max(0, floor(log10(low))), ceil(log10(high)) + 1)
    return tuple(step * 10**power for power in powers for step in steps if low < step * 10**power < high)


# -- categories ---------------------------------------------------------------------------------------------------


def bars_of(report: ScaleReport | DesignReport, base: Model) -> Bars:
    """Parameters by category at every point. Raises ParamcalcError for too many points."""
    if len(report.rows) > MOST_BARS:
        problem = f"{len(report.rows):,} points are too many for bars; the limit is {MOST_BARS}"
        raise ParamcalcError(problem, "sweep fewer values, or use --plot-kind heatmap with two axes")
    found = [category_totals(base.variants.tree(row.fields)) if row.valid else {} for row in report.rows]
    present = [str(category) for category in CATEGORIES if any(category in one for one in found)]
    parts = {category: tuple(one.get(category, 0) for one in found) for category in present}
    names, places = varying(report.rows)
    return Bars(
        f"{report.model.name}: parameters by category", CategoryAxis(" x ".join(map(axis_label, names)), places), parts
    )


def category_totals(tree: Component) -> dict[str, int]:
    """The parameters of each category, as `count` reports them."""
    found: dict[str, int] = {}
    for tally in tree.totals():
        if tally.role == "parameter" and tally.total:
            found[tally.category] = found.get(tally.category, 0) + tally.total
    return found
