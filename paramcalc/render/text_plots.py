"""Scatter plots in characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from paramcalc.base.errors import printable
from paramcalc.plots.data import NumberAxis, Scatter, Series
from paramcalc.render.colors import OKABE_ITO

if TYPE_CHECKING:
    from rich.text import Text

SERIES_SIGNS = "ox+#@%&$"
BEST = "*"
HEIGHT = 16  # rows
LEGEND_GAP = 3  # columns between items of a legend


class Canvas:
    """A grid of characters with colours; the first row is the top."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.cells = [[(" ", "")] * columns for _ in range(rows)]

    def put(self, column: int, row: int, text: str, style: str = "") -> None:
        """Overwrite the characters at a position."""
        for i, character in enumerate(text):
            self.cells[row][column + i] = (character, style)

    def has_room(self, column: int, row: int, length: int) -> bool:
        """True if a text fits with a blank on both sides."""
        around = self.cells[row][max(0, column - 1) : column + length + 1]
        return column >= 0 and column + length <= self.columns and all(cell[0] in " ." for cell in around)

    def lines(self) -> Iterator[Text]:
        """The rows as text."""
        from rich.text import Text

        for row in self.cells:
            line = Text()
            for character, style in row:
                line.append(character, style=style)
            yield line


def scatter_text(plot: Scatter, room: int) -> Iterator[Text]:
    """Points on two axes, one sign for each series, with labels where they fit."""
    from rich.text import Text

    marks = {HEIGHT - 1 - round(plot.y.place(tick) * (HEIGHT - 1)): plot.y.written(tick) for tick in plot.y.ticks}
    left = max(map(len, marks.values()), default=0)
    canvas = Canvas(room - left - 3, HEIGHT)
    draw_points(canvas, plot)
    yield Text(plot.y.label)
    for row, line in enumerate(canvas.lines()):
        yield Text(f"{marks.get(row, ''):>{left}} {'┤' if row in marks else '│'}").append_text(line)
    ticks = {round(plot.x.place(tick) * (canvas.columns - 1)): plot.x.written(tick) for tick in plot.x.ticks}
    yield Text(" " * left + " └" + "".join("┬" if i in ticks else "─" for i in range(canvas.columns)))
    yield Text(" " * (left + 2) + tick_labels(ticks))
    yield Text(f"{plot.x.label:>{room}}")
    yield from items_in_lines(legend(plot), room)


def draw_points(canvas: Canvas, plot: Scatter) -> None:
    """Draw every point, and its label where it fits."""

    def at(x: float, y: float) -> tuple[int, int]:
        return round(plot.x.place(x) * (canvas.columns - 1)), canvas.rows - 1 - round(
            plot.y.place(y) * (canvas.rows - 1)
        )

    if plot.diagonal:
        for column in range(canvas.columns):
            row = equal(plot.x, plot.y, column / (canvas.columns - 1), canvas.rows)
            if row is not None:
                canvas.put(column, row, ".")
    placed = [
        (*at(dot.x, dot.y), sign(number, i, one), dot.name, color(number))
        for number, one in reversed(list(enumerate(plot.series)))
        for i, dot in enumerate(one.dots)
    ]
    for column, row, marker, _, style in placed:
        canvas.put(column, row, marker, style)
    for column, row, _, name, style in reversed(placed):
        for start in (column + 2, column - 1 - len(name)):
            if name and canvas.has_room(start, row, len(name)):
                canvas.put(start, row, name, style)
                break


def equal(x: NumberAxis, y: NumberAxis, across: float, rows: int) -> int | None:
    """The row where both figures are equal, at a position on the x axis; None outside the canvas."""
    value = x.low * (x.high / x.low) ** across if x.logarithmic else x.low + (x.high - x.low) * across
    up = y.place(value)
    return rows - 1 - round(up * (rows - 1)) if 0 <= up <= 1 else None


def color(number: int) -> str:
    """The colour of a series, bold for legibility."""
    return f"bold {OKABE_ITO[number % len(OKABE_ITO)]}"


def sign(number: int, i: int, one: Series) -> str:
    """The sign of a point."""
    return BEST if one.best == i else SERIES_SIGNS[number % len(SERIES_SIGNS)]


def tick_labels(ticks: dict[int, str]) -> str:
    """The numbers under their ticks."""
    line = ""
    for column, text in sorted(ticks.items()):
        start = max(0, column - len(text) // 2)
        if not line or start > len(line):
            line = f"{line:<{start}}{text}"
    return line


def legend(plot: Scatter) -> Iterator[Text]:
    """The legend of the signs."""
    from rich.text import Text

    for number, one in enumerate(plot.series):
        yield Text(SERIES_SIGNS[number % len(SERIES_SIGNS)], style=color(number)).append(
            f" {printable(one.name)}", style="not bold"
        )
        if one.best is not None:
            yield Text(f"{BEST} {one.distinction}")
    if plot.diagonal:
        yield Text(f". {plot.diagonal}: both are equal")


def items_in_lines(items: Iterable[Text], room: int) -> Iterator[Text]:
    """Items wrapped into lines."""
    from rich.text import Text

    line = Text()
    for item in items:
        if len(line) and len(line) + LEGEND_GAP + len(item) > room:
            yield line
            line = Text()
        line = line.append(" " * LEGEND_GAP if len(line) else "").append_text(item)
    yield line
