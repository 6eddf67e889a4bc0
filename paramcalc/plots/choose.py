"""Which plots suit a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from paramcalc.base.errors import ParamcalcError
from paramcalc.plots.data import Plot
from paramcalc.plots.heatmap import bars, heat_map, swept
from paramcalc.plots.scatter import active, frontier, has_experts
from paramcalc.reports.scaling import DesignReport, ScaleReport

if TYPE_CHECKING:
    from paramcalc.model import Model

Kind = Literal["heatmap", "categories", "frontier", "moe"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def plots(report: ScaleReport | DesignReport, base: Model, kinds: Sequence[str] = ()) -> list[Plot]:
    """The plots that suit a report, or those of these kinds. Raises ParamcalcError where a kind does not suit it."""
    return [drawn(report, base, kind) for kind in kinds or suited(report)]


def suited(report: ScaleReport | DesignReport) -> list[Kind]:
    """Of two axes a heat map, of one the categories, of a design its frontier; of experts what is active, too."""
    first: Kind = "categories"
    if isinstance(report, DesignReport):
        first = "frontier"
    elif len(swept(report)) == 2:
        first = "heatmap"
    return [first, "moe"] if has_experts(report) else [first]


def known(kind: str) -> None:
    """Raises ParamcalcError where there is no such kind of plot."""
    if kind not in KINDS:
        raise ParamcalcError(f"unknown kind of plot {kind!r}", "known: " + ", ".join(KINDS))


def drawn(report: ScaleReport | DesignReport, base: Model, kind: str) -> Plot:
    """One plot. Raises ParamcalcError where the kind is unknown or does not suit the report."""
    known(kind)
    if not any(row.valid for row in report.rows):
        raise ParamcalcError(f"nothing to plot: {report.rows[0].problem}", "no point of the sweep is a model")
    if kind == "categories":
        return bars(report, base)
    if kind == "moe":
        return active(report)
    if kind == "frontier" and isinstance(report, DesignReport):
        return frontier(report)
    if kind == "heatmap" and isinstance(report, ScaleReport):
        return heat_map(report)
    other = "paramcalc design" if kind == "frontier" else "paramcalc scale"
    raise ParamcalcError(f"--plot-kind {kind} is a plot of `{other}`", "others: categories, moe")
