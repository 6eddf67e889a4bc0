"""The choice of plots for a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from paramcalc.base.errors import ParamcalcError
from paramcalc.plots.data import Plot
from paramcalc.plots.heatmap import bars_of, heat_map_of, swept
from paramcalc.plots.scatter import active_plot, frontier_plot, has_experts
from paramcalc.reports.scaling import DesignReport, ScaleReport

if TYPE_CHECKING:
    from paramcalc.model import Model

PlotKind = Literal["heatmap", "categories", "frontier", "moe"]
PLOT_KINDS: tuple[PlotKind, ...] = get_args(PlotKind)


def choose_plots(report: ScaleReport | DesignReport, base: Model, kinds: Sequence[str] = ()) -> list[Plot]:
    """The plots that suit a report, or those of these kinds. Raises ParamcalcError if a kind does not suit it."""
    return [make_plot(report, base, kind) for kind in kinds or suitable_plots(report)]


def suitable_plots(report: ScaleReport | DesignReport) -> list[PlotKind]:
    """A heat map for two axes, categories for one, the frontier for a design; for experts the active parameters too."""
    first: PlotKind = "categories"
    if isinstance(report, DesignReport):
        first = "frontier"
    elif len(swept(report)) == 2:
        first = "heatmap"
    return [first, "moe"] if has_experts(report) else [first]


def check_plot_kind(kind: str) -> None:
    """Check the name of a kind of plot. Raises ParamcalcError with the known names."""
    if kind not in PLOT_KINDS:
        raise ParamcalcError(f"unknown kind of plot {kind!r}", "known: " + ", ".join(PLOT_KINDS))


def make_plot(report: ScaleReport | DesignReport, base: Model, kind: str) -> Plot:
    """One plot. Raises ParamcalcError for an unknown kind, and for one that does not suit the report."""
    check_plot_kind(kind)
    if not any(row.valid for row in report.rows):
        raise ParamcalcError(f"nothing to plot: {report.rows[0].problem}", "no point of the sweep is a valid model")
    if kind == "categories":
        return bars_of(report, base)
    if kind == "moe":
        return active_plot(report)
    if kind == "frontier" and isinstance(report, DesignReport):
        return frontier_plot(report)
    if kind == "heatmap" and isinstance(report, ScaleReport):
        return heat_map_of(report)
    other = "paramcalc design" if kind == "frontier" else "paramcalc scale"
    raise ParamcalcError(f"--plot-kind {kind} is only for `{other}`", "use categories or moe")
