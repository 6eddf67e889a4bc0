"""Plots in a terminal: heat map, stacked bars, scatter plot. The colours are safe for colour-blind readers.

With colour, cells are filled; without, they have shades. Numbers are printed in both cases.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING

from paramcalc.base.errors import printable
from paramcalc.base.units import human_count, percent, short_count
from paramcalc.plots.data import Bars, HeatMap, Plot
from paramcalc.render.colors import LIGHT, OKABE_ITO, VIRIDIS
from paramcalc.render.text_plots import items_in_lines, scatter_text

if TYPE_CHECKING:
    from rich.text import Text

SHADES = " ·:░▒▓█"
FILLS = "█▓▒░▞#=+:"
NO_MODEL = "-"  # text of an impossible model
WIDEST = 100  # columns of a chart, however wide the terminal
TALLEST = 40  # rows of a heat map


def chart(plot: Plot, width: int | None, *, color: bool) -> Text:
    """A plot as text for a terminal of this width; None for a pipe or a file."""
    from rich.text import Text

    room = min(width or WIDEST, WIDEST)
    lines = [Text(printable(plot.title), style="bold")]
    if isinstance(plot, HeatMap):
        lines += heat_map_text(plot, room, color=color)
    elif isinstance(plot, Bars):
        lines += bars_text(plot, room, color=color)
    else:
        lines += scatter_text(plot, room)
    return Text("\n").join(lines)


# -- heat map -----------------------------------------------------------------------------------------------------


def heat_map_text(plot: HeatMap, room: int, *, color: bool) -> Iterator[Text]:
    """The totals in cells; one colour for all totals between two levels."""
    from rich.text import Text

    names = [printable(str(value)) for value in plot.y.values]
    left = max(map(len, names))
    numbers = [[NO_MODEL if total is None else short_count(total) for total in row] for row in plot.totals]
    heads = [printable(str(value)) for value in plot.x.values]
    cell = max(len(text) for row in [heads, *numbers] for text in row) + (2 if color else 4)
    written = left + 1 + cell * len(heads) <= room
    across = 1 if written else ceil(len(heads) / ((room - left - 1) // 2))
    cell = cell if written else 2
    up = ceil(len(names) / TALLEST)
    yield Text(f"{plot.y.label}")
    for i in reversed(range(0, len(names), up)):
        line = Text(f"{names[i]:>{left}} ")
        for total, number in zip(plot.totals[i][::across], numbers[i][::across], strict=True):
            line.append_text(heat_map_cell(plot, total, number if written else "", cell=cell, color=color))
        yield line
    yield Text(" " * (left + 1) + ruler(heads[::across], cell))
    yield Text(" " * (left + 2) + plot.x.label)
    yield Text("")
    yield from items_in_lines(bands(plot, color=color), room)
    if across > 1 or up > 1:
        shown = [f"every {ordinal(n)} {what}" for n, what in ((across, "column"), (up, "row")) if n > 1]
        yield Text(f"{' and '.join(shown)}; --plot FILE shows all")


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd and so on."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number // 10 % 10 != 1 else "th"
    return f"{number}{ending}"


def heat_map_cell(plot: HeatMap, total: int | None, number: str, *, cell: int, color: bool) -> Text:
    """One cell with its number, if it fits, and its colour or shade."""
    from rich.text import Text

    if total is None:
        return Text(f"{NO_MODEL:^{cell}}", style="dim")
    band = bisect_right(plot.levels, total)
    if color:
        return Text(f"{number:^{cell}}", style=fill(band, plot))
    return Text(f" {shade(band, plot)}{number:>{cell - 3}} " if number else shade(band, plot) * cell)


def fill(band: int, plot: HeatMap) -> str:
    """The colours of a band, from dark to light."""
    step = round(band * (len(VIRIDIS) - 1) / max(1, len(plot.levels)))
    return f"{'#000000' if step >= LIGHT else '#ffffff'} on {VIRIDIS[step]}"


def shade(band: int, plot: HeatMap) -> str:
    """The shade of a band."""
    return SHADES[round(band * (len(SHADES) - 1) / max(1, len(plot.levels)))]


def ruler(heads: Sequence[str], cell: int) -> str:
    """The values of the columns below their cells; those that do not fit are omitted."""
    line = ""
    for i, head in enumerate(heads):
        start = max(0, i * cell + (cell - len(head)) // 2)
        if not line or start > len(line):
            line = f"{line:<{start}}{head}"
    return line


def bands(plot: HeatMap, *, color: bool) -> Iterator[Text]:
    """The legend of colours or shades."""
    from rich.text import Text

    if not plot.levels:
        return
    names = [f"< {short_count(level)}" for level in plot.levels] + [f">= {short_count(plot.levels[-1])}"]
    for band, name in enumerate(names):
        square = Text("  ", style=fill(band, plot)) if color else Text(f"[{shade(band, plot)}]")
        yield Text().append_text(square).append(f" {name}")


# -- bars ---------------------------------------------------------------------------------------------------------


def bars_text(plot: Bars, room: int, *, color: bool) -> Iterator[Text]:
    """A bar for each model: its length is the total, divided by category."""
    from rich.text import Text

    names, totals = [printable(name) for name in plot.x.values], plot.totals
    written = [human_count(total) if total else NO_MODEL for total in totals]
    left, right = max(map(len, names)), max(map(len, written))
    cells = max(8, room - left - right - 4)
    visible: set[int] = set()
    yield Text(plot.x.label)
    for i, total in enumerate(totals):
        line = Text(f"{names[i]:>{left}}  ")
        parts = cells_in_proportion([values[i] for values in plot.parts.values()], round(cells * total / max(totals)))
        for number, part in enumerate(parts):
            line.append_text(piece(number, color=color, cells=part))
        visible |= {number for number, part in enumerate(parts) if part}
        yield line.append(f"  {written[i]}")
    yield Text("")
    legend, hidden = [], []
    for number, (name, values) in enumerate(plot.parts.items()):
        share = f"{name.replace('_', ' ')} {share_text(values, totals)}"
        if number in visible:
            legend.append(Text().append_text(piece(number, color=color, cells=2)).append(f" {share}"))
        else:
            hidden.append(Text(share))
    yield from items_in_lines(legend, room)
    if hidden:
        yield from items_in_lines([Text("too small to draw:"), *hidden], room)


def piece(number: int, *, color: bool, cells: int) -> Text:
    """A piece of a bar."""
    from rich.text import Text

    if color:
        return Text("█" * cells, style=OKABE_ITO[number % len(OKABE_ITO)])
    return Text(FILLS[number % len(FILLS)] * cells)


def share_text(values: Sequence[int], totals: Sequence[int]) -> str:
    """The share of a category in the first model and in the last."""
    found = [percent(value, total) for value, total in zip(values, totals, strict=True) if total]
    return found[0] if found[0] == found[-1] else f"{found[0]} to {found[-1]}"


def cells_in_proportion(values: Sequence[int], cells: int) -> list[int]:
    """Cells in proportion to values, by the largest-remainder method."""
    total = sum(values)
    if not total:
        return [0 for _ in values]
    whole = [value * cells // total for value in values]
    lost = sorted(range(len(values)), key=lambda i: -(values[i] * cells % total))
    for i in lost[: cells - sum(whole)]:
        whole[i] += 1
    return whole
