"""Plots as files, drawn by matplotlib: SVG, PNG, or an HTML page with the SVG. Nothing else needs matplotlib."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from paramcalc.base.errors import ParamcalcError, printable
from paramcalc.base.units import short_count
from paramcalc.plots.data import Bars, HeatMap, NumberAxis, Plot, Scatter
from paramcalc.render.colors import OKABE_ITO
from paramcalc.render.point_labels import label_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png", ".html")
PANEL = (5.6, 4.0)  # inches
DPI = 200
NO_MODEL_COLOR = "#e8e8e8"  # cells without a model
MOST_NUMBERS = (8, 10)  # most columns and rows of a heat map with numbers in its cells
MOST_TICKS, LINE = 16, 44  # most labels of a vertical axis, and characters below a horizontal one
MOST_VECTORS = 2_500  # cells drawn as vectors; more of them become an image
STYLE = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text remains searchable and editable
    "svg.hashsalt": "paramcalc",  # deterministic files
    "text.parse_math": False,  # no formulas: a model's name may contain a dollar sign
}


def suffix(path: str) -> str:
    """The file type of a path, by its suffix. Raises ParamcalcError for an unknown one."""
    found = PurePath(path).suffix.lower()
    if found not in SUFFIXES:
        raise ParamcalcError(f"--plot {path}: unknown file type", "use .svg, .png or .html")
    return found


def needs_matplotlib() -> None:
    """Check that matplotlib is installed. Raises ParamcalcError if it is not."""
    try:
        import matplotlib  # noqa: F401  (only checks that it is installed)
    except ImportError as error:
        raise ParamcalcError("plots as files need matplotlib", "pip install 'paramcalc[plot]'") from error


def plot_file(plots: Sequence[Plot], path: str) -> str | bytes:
    """The content of the file: the plots side by side. Raises ParamcalcError for unknown file types."""
    kind = suffix(path)
    needs_matplotlib()
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", STYLE]):
        figure = Figure(figsize=(PANEL[0] * len(plots), PANEL[1]), layout="constrained")
        for plot, axes in zip(plots, figure.subplots(1, len(plots), squeeze=False)[0], strict=True):
            draw_plot(plot, figure, axes)
        if kind == ".png":
            return figure_bytes(figure, "png", {"Software": None})
        svg = figure_bytes(figure, "svg", {"Date": None, "Creator": "paramcalc"}).decode("utf-8")
    return svg if kind == ".svg" else page([plot.title for plot in plots], svg)


def figure_bytes(figure: Figure, kind: str, metadata: Mapping[str, str | None]) -> bytes:
    """A figure as the bytes of a file."""
    import warnings

    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about glyphs that the font lacks
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
    return buffer.getvalue()


def page(titles: Sequence[str], svg: str) -> str:
    """A self-contained HTML page with the drawing."""
    title = escape("; ".join(map(printable, titles)))
    drawing = svg[svg.index("<svg") :]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        "<style>body { margin: 2em; text-align: center; } svg { max-width: 100%; height: auto; }</style>\n"
        f'</head>\n<body>\n<figure role="img" aria-label="{title}">\n{drawing}</figure>\n</body>\n</html>\n'
    )


def draw_plot(plot: Plot, figure: Figure, axes: Axes) -> None:
    """Draw one plot into its panel."""
    axes.set_title(printable(plot.title), loc="left")
    if isinstance(plot, HeatMap):
        draw_heat_map(plot, figure, axes)
    elif isinstance(plot, Bars):
        draw_bars(plot, axes)
    else:
        draw_scatter(plot, axes)


# -- heat map -----------------------------------------------------------------------------------------------------


def draw_heat_map(plot: HeatMap, figure: Figure, axes: Axes) -> None:
    """Cells in viridis with lines of equal parameters; numbers in the cells, or a colour bar."""
    import numpy as np
    from matplotlib.colors import LogNorm

    totals = np.ma.masked_invalid([[np.nan if one is None else float(one) for one in row] for row in plot.totals])
    rows, columns = totals.shape
    norm = LogNorm(totals.min() * 0.98, totals.max() * 1.02)
    edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    cells = axes.pcolormesh(*edges, totals, cmap="viridis", norm=norm, rasterized=totals.size > MOST_VECTORS)
    axes.set_facecolor(NO_MODEL_COLOR)
    numbered = columns <= MOST_NUMBERS[0] and rows <= MOST_NUMBERS[1] and not plot.marks
    if numbered:
        draw_numbers(plot, axes, cells)
    else:
        note = "; grey: no model" if totals.mask.any() else ""
        axes.set_title(printable(plot.title) + note, loc="left")
        bar = figure.colorbar(cells, ax=axes, label="parameters")
        bar.ax.minorticks_off()
        bar.set_ticks(plot.levels or [totals.min()], labels=list(map(short_count, plot.levels or [totals.min()])))
    if min(rows, columns) > 1 and plot.levels:
        draw_lines(plot, axes, totals, numbered=numbered)
    places = [mark.x for mark in plot.marks], [mark.y for mark in plot.marks]
    axes.plot(*places, "o", markerfacecolor="white", markeredgecolor="black", markersize=5, linestyle="none")
    marked(axes.set_xticks, plot.x.values, LINE // (longest(plot.x.values) + 2))
    marked(axes.set_yticks, plot.y.values, MOST_TICKS)
    axes.set_xlabel(plot.x.label)
    axes.set_ylabel(plot.y.label)
    label_points(axes, [(mark.x, mark.y, mark.name) for mark in plot.marks])


def draw_numbers(plot: HeatMap, axes: Axes, cells: Any) -> None:
    """The total of each cell in black or white, whichever has more contrast, in front of the lines."""
    for y, row in enumerate(plot.totals):
        for x, total in enumerate(row):
            text, size = ("no model", 7) if total is None else (short_count(total), 8)
            behind = NO_MODEL_COLOR if total is None else cells.cmap(cells.norm(total))
            color = "#606060" if total is None else "black" if cells.norm(total) > 0.55 else "white"
            box = {"facecolor": behind, "edgecolor": "none", "pad": 1.5}
            axes.text(x, y, text, ha="center", va="center", color=color, fontsize=size, bbox=box, zorder=3)


def draw_lines(plot: HeatMap, axes: Axes, totals: Any, *, numbered: bool) -> None:
    """Lines of equal parameters, from edge to edge, with their labels between the numbers."""
    import numpy as np
    from matplotlib.patheffects import withStroke

    grid = with_margin(across(np.log10(np.ma.filled(totals, np.nan))))
    x, y = (np.array([-0.5, *range(many), many - 0.5]) for many in (grid.shape[1] - 2, grid.shape[0] - 2))
    found = axes.contour(x, y, grid, levels=[np.log10(level) for level in plot.levels], colors="white", linewidths=1.2)
    found.set_path_effects([withStroke(linewidth=2.4, foreground="#00000090")])
    written = dict(zip(found.levels, map(short_count, plot.levels), strict=True))
    height = PANEL[1] / PANEL[0] * grid.shape[1] / grid.shape[0]  # height of a cell of width 1
    spots = [spot for path in found.get_paths() if (spot := free(path, x[-1], y[-1], height)) is not None]
    labels = axes.clabel(found, fmt=written, fontsize=8, colors="white", manual=spots if numbered else False)
    for label in labels:
        label.set_path_effects([withStroke(linewidth=2.0, foreground="#000000c0")])


def across(grid: Any) -> Any:
    """A grid with gaps interpolated from both sides, row by row."""
    import numpy as np

    columns = np.arange(grid.shape[1])
    for row in grid:
        known = ~np.isnan(row)
        if known.any():
            row[:] = np.interp(columns, columns[known], row[known], left=np.nan, right=np.nan)
    return grid


def with_margin(grid: Any) -> Any:
    """A grid with an extrapolated margin of half a cell on each side."""
    import numpy as np

    for _ in range(2):
        grid = np.vstack([1.5 * grid[0] - 0.5 * grid[1], grid, 1.5 * grid[-1] - 0.5 * grid[-2]]).T
    return grid


def free(path: Any, right: float, top: float, height: float) -> tuple[float, float] | None:
    """The place on a line that is farthest from the numbers in the middle of the cells, and not at the edge."""
    import numpy as np

    vertices = path.interpolated(20).vertices if len(path.vertices) else path.vertices
    inner = [(x, y) for x, y in vertices if 0 < x < right - 0.5 and 0 < y < top - 0.5]
    return max(inner, key=lambda at: np.hypot(at[0] - round(at[0]), height * (at[1] - round(at[1]))), default=None)


def longest(values: Sequence[Any]) -> int:
    """Characters of the longest value."""
    return max(len(str(value)) for value in values)


def marked(set_ticks: Callable[..., Any], values: Sequence[Any], most: int) -> None:
    """Tick labels of the cells, as many as are readable."""
    every = -(-len(values) // max(1, most))
    shown = range(0, len(values), every)
    set_ticks(list(shown), labels=[printable(str(values[i])) for i in shown])


# -- bars ---------------------------------------------------------------------------------------------------------


def draw_bars(plot: Bars, axes: Axes) -> None:
    """Stacked bars, the first category at the bottom, with the totals on top."""
    largest = max(plot.totals)
    unit, word = next((unit, word) for unit, word in COLORBAR_UNITS if largest >= unit)
    bottoms = [0] * len(plot.totals)
    for (name, values), color in zip(plot.parts.items(), OKABE_ITO * 2, strict=False):
        label = name.replace("_", " ")
        heights = [value / unit for value in values]
        axes.bar(range(len(values)), heights, bottom=[b / unit for b in bottoms], color=color, width=0.7, label=label)
        bottoms = [b + value for b, value in zip(bottoms, values, strict=True)]
    if len(plot.totals) <= MOST_NUMBERS[0] + 2:
        for x, total in enumerate(plot.totals):
            text = short_count(total) if total else "no model"
            axes.text(x, total / unit + largest / unit / 100, text, ha="center", va="bottom", fontsize=8)
    upright = longest(plot.x.values) > LINE // MOST_NUMBERS[0]
    marked(axes.set_xticks, plot.x.values, 2 * MOST_TICKS if upright else LINE // (longest(plot.x.values) + 1))
    if upright:
        axes.tick_params(axis="x", labelrotation=90)
    axes.set_xlabel(plot.x.label)
    axes.set_ylabel(f"parameters{word}")
    handles, names = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], names[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5))


COLORBAR_UNITS = ((10**9, " (billions)"), (10**6, " (millions)"), (10**3, " (thousands)"), (1, ""))


# -- points -------------------------------------------------------------------------------------------------------


def draw_scatter(plot: Scatter, axes: Axes) -> None:
    """Points, those of a sweep joined by lines; published ones hollow, in a marker for each ladder."""
    set_axis(axes.set_xscale, axes.set_xlim, axes.set_xticks, plot.x)
    set_axis(axes.set_yscale, axes.set_ylim, axes.set_yticks, plot.y)
    axes.minorticks_off()
    axes.grid(color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    if plot.diagonal:
        ends = [max(plot.x.low, plot.y.low), min(plot.x.high, plot.y.high)]
        axes.plot(ends, ends, "--", color="#808080", linewidth=1, label=plot.diagonal)
    for number, one in enumerate(plot.series):
        x, y = [dot.x for dot in one.dots], [dot.y for dot in one.dots]
        look = SWEEP_STYLE if one.joined else LADDER_STYLE
        color, marker = OKABE_ITO[number % len(OKABE_ITO)], LADDER_MARKERS[number % len(LADDER_MARKERS)]
        axes.plot(x, y, color=color, marker=marker, label=printable(one.name), **look)
        if one.best is not None:
            axes.plot(x[one.best], y[one.best], "*", color="black", markersize=11, label=one.distinction, zorder=4)
    axes.set_xlabel(plot.x.label)
    axes.set_ylabel(plot.y.label)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    label_points(axes, [(dot.x, dot.y, dot.name) for one in plot.series for dot in one.dots if dot.name])


LADDER_MARKERS = "osD^vPX<"
SWEEP_STYLE = {"linestyle": "-", "linewidth": 1.4, "markersize": 5, "zorder": 3}
LADDER_STYLE = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 1.4, "markersize": 5.5}


def set_axis(
    set_scale: Callable[..., Any], set_ends: Callable[..., Any], set_ticks: Callable[..., Any], of: NumberAxis
) -> None:
    """Apply scale, ends and ticks to an axis."""
    set_scale("log" if of.logarithmic else "linear")
    set_ticks(of.ticks, labels=list(map(of.written, of.ticks)))
    set_ends(of.low, of.high)
