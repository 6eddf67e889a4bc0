"""Plots as data: axes, series and labels with units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log
from typing import Any, NamedTuple

from paramcalc.reports.scaling import Point

DEPTH, WIDTH = "depth", "width"
AXIS_LABELS = {
    DEPTH: "depth (layers)",
    WIDTH: "width (channels)",
    "d_ff": "FFN width (channels)",
    "intermediate_size": "FFN width (channels)",
    "moe_intermediate_size": "expert width (channels)",
    "head_dim": "head_dim (channels)",
    "vocab_size": "vocabulary (tokens)",
}


class CategoryAxis(NamedTuple):
    """An axis of categories: evenly spaced places."""

    label: str
    values: tuple[Any, ...]


class Mark(NamedTuple):
    """A published model on a grid; its position is in fractions of cells."""

    name: str
    x: float
    y: float


class HeatMap(NamedTuple):
    """Parameters over a grid, one row for each y from the lowest up; None for an impossible model."""

    title: str
    x: CategoryAxis
    y: CategoryAxis
    totals: tuple[tuple[int | None, ...], ...]
    levels: tuple[int, ...]  # parameters along each contour line
    marks: tuple[Mark, ...]


class Bars(NamedTuple):
    """Parameters by category, stacked; empty for an impossible model."""

    title: str
    x: CategoryAxis
    parts: Mapping[str, tuple[int, ...]]

    @property
    def totals(self) -> list[int]:
        """The height of each bar."""
        return [sum(values) for values in zip(*self.parts.values(), strict=True)]


class Dot(NamedTuple):
    """A model as a point, with its name if it gets a label."""

    x: int
    y: int
    name: str = ""


class Series(NamedTuple):
    """The points of one series. A line joins the points of a sweep, but not published models."""

    name: str
    dots: tuple[Dot, ...]
    joined: bool
    best: int | None = None
    distinction: str = ""  # label of the best point


class NumberAxis(NamedTuple):
    """An axis of numbers, with its ends and ticks."""

    label: str
    low: float
    high: float
    logarithmic: bool
    ticks: tuple[int, ...]
    written: Callable[[int], str]

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high one."""
        if self.logarithmic:
            return log(value / self.low) / log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


class Scatter(NamedTuple):
    """A scatter plot of models by two figures."""

    title: str
    x: NumberAxis
    y: NumberAxis
    series: tuple[Series, ...]
    diagonal: str = ""  # label of the line on which both figures are equal


Plot = HeatMap | Bars | Scatter


def axis_label(name: str) -> str:
    """The label of a field, with its unit."""
    return AXIS_LABELS.get(name, name)


def varying(rows: Sequence[Point]) -> tuple[list[str], tuple[str, ...]]:
    """The axes on which the points differ, and the position of each point on them."""
    names = list(dict.fromkeys(name for row in rows for name in row.at))
    several = [name for name in names if len({str(row.at.get(name)) for row in rows}) > 1] or names
    return several, tuple(" x ".join(str(row.at.get(name, "-")) for name in several) for row in rows)
