"""Scatter plots: width against depth, total against active parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, log10

from paramcalc.base.errors import ParamcalcError
from paramcalc.base.units import human_bytes, short_count
from paramcalc.plots.data import AXIS_LABELS, DEPTH, WIDTH, Dot, NumberAxis, Scatter, Series, axis_label, varying
from paramcalc.plots.heatmap import rounds
from paramcalc.reports.scaling import DesignReport, Reference, ScaleReport

MOST_LABELS = 24  # points with labels
MOST_SERIES = 6  # distinguishable lines next to those of published models
NEAR = 2  # published models up to this factor larger or smaller have labels
LABELLED_RATIO = 10  # those up to this factor are shown: others would stretch the axes
FAR = 8  # ratio of the largest to the smallest value above which an axis is logarithmic
NEARLY_EQUAL = 0.1  # values within this share of the largest count as one


def frontier_plot(report: DesignReport) -> Scatter:
    """The width (or the solved field) that meets the budget at each depth, with published models."""
    field = report.goal.solve
    rows = [(i, row) for i, row in enumerate(report.rows) if row.valid]
    dots = tuple(Dot(row.depth or 0, row.at[field], str(row.at[field])) for _, row in rows)
    best = next((place for place, (i, _) in enumerate(rows) if i == report.best), None)
    sizes = [row.parameters.total for _, row in rows if row.parameters]
    references = [] if field != WIDTH else ladder_series(report, sizes, lambda one: (one.depth, one.width))
    word = "largest" if report.goal.budget is None else "closest"
    series = (Series(goal_text(report), dots, joined=True, best=best, distinction=word), *references)
    shown = [dot for one in series for dot in one.dots]
    return Scatter(
        f"{report.model.name}: {axis_label(field).split(' (')[0]} at each depth, {goal_text(report)}",
        number_axis(AXIS_LABELS[DEPTH], [dot.x for dot in shown]),
        number_axis(axis_label(field), [dot.y for dot in shown]),
        series,
    )


def goal_text(report: DesignReport) -> str:
    """The goal of a design in a few words."""
    return (
        f"largest on {report.assumptions.gpu}"
        if report.goal.budget is None
        else f"{report.goal.match} {budget_text(report)}"
    )


def budget_text(report: DesignReport) -> str:
    """The budget in a readable unit."""
    size = report.goal.budget or 0
    return human_bytes(size) if report.goal.match == "weight-bytes" else short_count(size)


def active_plot(report: ScaleReport | DesignReport) -> Scatter:
    """Total against active parameters. Raises ParamcalcError for a model without experts."""
    if not has_experts(report):
        raise ParamcalcError(f"--plot-kind moe: {report.model.name} has no experts", "all of its parameters are active")
    own = point_series(report)
    sizes = [dot.y for one in own for dot in one.dots]
    series = (*own, *ladder_series(report, sizes, lambda one: (one.parameters.active, one.parameters.total)))
    x, y = [dot.x for one in series for dot in one.dots], [dot.y for one in series for dot in one.dots]
    both = far(x) or far(y)  # the same scale on both axes, so that the diagonal is a straight line
    return Scatter(
        f"{report.model.name}: total against active parameters",
        number_axis("active parameters per token", x, written=short_count, logarithmic=both),
        number_axis("total parameters", y, written=short_count, logarithmic=both),
        series,
        diagonal="dense",
    )


def point_series(report: ScaleReport | DesignReport) -> list[Series]:
    """A series for each position on all axes but the last, or one series if these are too many."""
    names, _ = varying(report.rows)
    *outer, inner = names
    few = len(report.rows) <= MOST_LABELS
    groups: dict[str, list[Dot]] = {}
    for row in report.rows:
        if row.parameters:
            group = ", ".join(f"{name} {row.at.get(name)}" for name in outer) or inner
            dot = Dot(row.parameters.active, row.parameters.total, str(row.at.get(inner)) if few else "")
            groups.setdefault(group, []).append(dot)
    if len(groups) > MOST_SERIES:
        dots = tuple(dot._replace(name="") for dots in groups.values() for dot in dots)
        return [Series(" x ".join(names), dots, joined=False)]
    return [Series(name, tuple(dots), joined=True) for name, dots in groups.items()]


def has_experts(report: ScaleReport | DesignReport) -> bool:
    """True if a token leaves some parameters of any point unused."""
    return any(row.parameters and row.parameters.active != row.parameters.total for row in report.rows)


def ladder_series(
    report: ScaleReport | DesignReport, sizes: Sequence[int], place: Callable[[Reference], tuple[int, int]]
) -> list[Series]:
    """A series for each ladder of published models: those near the sizes of the sweep, the nearest with labels."""
    found = []
    for ladder in dict.fromkeys(one.ladder for one in report.overlay):
        rungs = [one for one in report.overlay if one.ladder == ladder]
        shown = [one for one in rungs if near(one, sizes, LABELLED_RATIO)]
        dots = tuple(Dot(*place(one), one.name if near(one, sizes, NEAR) else "") for one in shown)
        name = ladder if len(shown) == len(rungs) else f"{ladder} ({len(shown)} of {len(rungs)})"
        found.append(Series(name, dots, joined=False))
    return [one for one in found if one.dots]


def near(one: Reference, sizes: Sequence[int], times: int) -> bool:
    """True if a published model has between 1/`times` and `times` times the parameters of these sizes."""
    return min(sizes) <= one.parameters.total * times and one.parameters.total <= max(sizes) * times


def far(values: Sequence[int]) -> bool:
    """True if the values need a logarithmic axis."""
    return max(values) > FAR * max(1, min(values))


def number_axis(
    label: str, values: Sequence[int], *, written: Callable[[int], str] = str, logarithmic: bool | None = None
) -> NumberAxis:
    """An axis with a margin at both ends; by default logarithmic if the values differ much."""
    low, high = max(1, min(values)), max(1, *values)
    if far(values) if logarithmic is None else logarithmic:
        room = (high / low) ** 0.06 if high > low else 2.0
        ends: tuple[float, float] = low / room, high * room
        steps = (1, 2, 5) if high < 1000 * low else (1,)
        return NumberAxis(label, *ends, logarithmic=True, ticks=rounds(*ends, steps), written=written)
    nearly_equal = high - low < NEARLY_EQUAL * high  # on a narrower axis all tick labels would round to the same text
    room = 0.1 * high if nearly_equal else 0.08 * (high - low)
    ends = low - room, high + room
    return NumberAxis(label, *ends, logarithmic=False, ticks=evenly(*ends), written=written)


def evenly(low: float, high: float) -> tuple[int, ...]:
    """About five round numbers between two, equally spaced."""
    power = 10 ** floor(log10((high - low) / 5)) if high - low >= 5 else 1
    step = next(many * power for many in (1, 2, 5, 10) if (high - low) / (many * power) <= 7)
    return tuple(range(ceil(low / step) * step, floor(high) + 1, step))
