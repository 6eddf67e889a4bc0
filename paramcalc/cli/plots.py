"""The options of plots: below the table, as a file, and their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.base.errors import ParamcalcError
from paramcalc.cli.option_groups import OptionGroup
from paramcalc.cli.options import FLAG
from paramcalc.cli.output import Output, write_file
from paramcalc.cli.streams import colored

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paramcalc.model import Model
    from paramcalc.reports.scaling import DesignReport, ScaleReport

ChartOpt = Annotated[bool, typer.Option("--chart", metavar=FLAG, help="Draw the plot below the table.")]
PlotOpt = Annotated[
    str | None,
    typer.Option("--plot", metavar="FILE", help="Write the plot to a file: .svg, .png or .html (needs matplotlib)."),
]
KindOpt = Annotated[
    str | None,
    typer.Option(
        "--plot-kind",
        metavar="KIND",
        help="heatmap, categories, frontier or moe, or several of them; chosen by the axes if not given.",
    ),
]


class Drawing(NamedTuple):
    """The requested plots and their destinations."""

    chart: bool
    path: str | None
    kinds: tuple[str, ...]

    def check(self, out: Output) -> None:
        """Check before anything is computed. Raises ParamcalcError for a plot that cannot be drawn."""
        if self.chart and out.format != "table":
            raise ParamcalcError(
                f"--chart needs --format table, not {out.format}", "--plot FILE works with every format"
            )
        if self.kinds and not (self.chart or self.path):
            raise ParamcalcError("--plot-kind without a plot", "add --chart, or --plot FILE")
        if self.kinds:
            from paramcalc.plots.choose import check_plot_kind

            for kind in self.kinds:
                check_plot_kind(kind)
        if self.path is not None:
            from paramcalc.render.matplotlib_plots import needs_matplotlib, suffix

            suffix(self.path)
            needs_matplotlib()

    def to_file(self, report: ScaleReport | DesignReport, base: Model) -> None:
        """Write the file, if one was requested."""
        if self.path is None:
            return
        from paramcalc.plots.choose import choose_plots
        from paramcalc.render.matplotlib_plots import plot_file

        write_file(self.path, plot_file(choose_plots(report, base, self.kinds), self.path))

    def under(
        self, table: RenderableType, report: ScaleReport | DesignReport, base: Model, width: int | None
    ) -> RenderableType:
        """The table, with plots below it if requested."""
        if not self.chart:
            return table
        from rich.console import Group
        from rich.text import Text

        from paramcalc.plots.choose import choose_plots
        from paramcalc.render.charts import chart

        drawn = choose_plots(report, base, self.kinds)
        color = width is not None and colored()
        return Group(table, *(Text("\n").append_text(chart(plot, width, color=color)) for plot in drawn))


def drawing(*, chart: bool, plot: str | None, plot_kind: str | None) -> Drawing:
    """The plots that the options request."""
    kinds = tuple(kind.strip().lower() for kind in (plot_kind or "").split(",") if kind.strip())
    return Drawing(chart, plot, kinds)


PLOTS = OptionGroup(dict(chart=(ChartOpt, False), plot=PlotOpt, plot_kind=KindOpt), drawing)
