"""Tables drawn by rich. Each function returns a renderable; `render_text` converts it to text."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from paramcalc.base.errors import printable
from paramcalc.base.units import exact
from paramcalc.render.text import RowData

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from paramcalc.reports.base import ModelInfo

WIDE = 400  # columns of a pipe or a file: nothing is omitted there
COLUMN_GAP = 3  # characters between two columns
MANY = 1000  # tables with more rows are built line by line
NARROWEST = 18  # smallest width of a column of notes before it is omitted
BAR, LEAST_BAR = 24, 8  # cells of a full bar, and the fewest that are readable


def render_text(renderable: RenderableType, *, width: int | None, color: bool) -> str:
    """Render to text; `width` None means the natural width, for pipes and files."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        width=width or WIDE,
        force_terminal=color,
        color_system="auto" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        console.print(renderable)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def empty_table() -> Table:
    """An empty table in the common style."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), header_style="bold")


def heading(model: ModelInfo) -> Text:
    """The model, the family and class it is counted as, and its status."""
    from rich.text import Text

    head = Text(model.name, style="bold")
    head.append(f"  {model.family}  {model.architecture}  ", style="default")
    head.append(model.status, style="bold green" if model.status == "exact" else "bold yellow")
    return head


def bar(part: int, largest: int, cells: int) -> str:
    """A bar in eighths of a cell, so that small parts still show."""
    eighths = -(-part * cells * 8 // largest) if largest else 0
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]


# -- columns that fit --------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """Cells below a name, and a cell of the last row. A narrow terminal omits the highest rank first, but never rank 0.

    A column that `wraps` (notes) is wrapped before it is omitted.
    """

    name: str
    cells: list[str]
    total: str = ""
    right: bool = False
    rank: int = 0
    style: str = ""
    wraps: bool = False

    @property
    def width(self) -> int:
        """The smallest width, including the gap to the next column."""
        longest = max(map(len, [self.name, self.total, *self.cells]))
        return (min(longest, NARROWEST) if self.wraps else longest) + COLUMN_GAP


def with_room(columns: list[Column], room: int) -> list[Column]:
    """The columns that fit."""
    shown = columns
    while sum(column.width for column in shown) - COLUMN_GAP > room and any(column.rank for column in shown):
        least = max(column.rank for column in shown)
        shown = [column for column in shown if column.rank != least]
    return shown


def fit_columns(columns: list[Column], room: int, *, bare: bool = False) -> Table:
    """A table of the columns that fit: numbers are omitted, never cut."""
    from rich.table import Table

    shown = with_room(columns, room)
    table = Table.grid(padding=(0, COLUMN_GAP - 1)) if bare else empty_table()
    wraps = any(column.wraps for column in shown)
    for column in shown:
        fixed = column.right or (wraps and not column.wraps)
        table.add_column(column.name, justify="right" if column.right else "left", no_wrap=fixed, style=column.style)
    for cells in zip(*(column.cells for column in shown), strict=True):
        table.add_row(*map(printable, cells))
    if any(column.total for column in shown):
        table.add_section()
        table.add_row(*(column.total for column in shown), style="bold")
    return table


def with_rest(columns: list[Column], room: int) -> RenderableType:
    """A table of the columns that fit, and a line that names the others."""
    from rich.console import Group
    from rich.text import Text

    shown = with_room(columns, room)
    table = typed(shown) if len(shown[0].cells) > MANY else fit_columns(shown, room)
    names = dict.fromkeys(column.name for column in columns if column not in shown and column.name)
    return Group(table, Text(""), Text(hidden_columns(names))) if names else table


def typed(columns: list[Column]) -> RenderableType:
    """The same table as `fit_columns` makes of columns without notes and totals, built line by line.

    Rich needs a second to lay out a thousand rows.
    """
    from rich.console import Group
    from rich.text import Text

    widths = [max(map(len, [column.name, *column.cells])) for column in columns]
    sides = [str.rjust if column.right else str.ljust for column in columns]

    def line(cells: Iterable[str]) -> str:
        return (" " * COLUMN_GAP).join(
            side(cell, width) for side, cell, width in zip(sides, cells, widths, strict=True)
        )

    rows = zip(*(column.cells for column in columns), strict=True)
    rule = "─" * (sum(widths) + COLUMN_GAP * (len(widths) - 1))
    body = Text("\n".join(map(line, rows)), no_wrap=True, overflow="ignore")
    return Group(Text(line(column.name for column in columns), style="bold"), Text(rule), body)


def hidden_columns(names: Iterable[str]) -> str:
    """The line about omitted columns."""
    return f"hidden columns: {', '.join(names)}; use a wider terminal or --format csv"


def listing(rows: Sequence[RowData], ranks: Mapping[str, int], room: int) -> tuple[Table, list[str]]:
    """Rows with the same keys as a table, and the names of its omitted columns.

    `ranks` orders the columns that a narrow terminal omits.
    """
    columns = []
    for name in rows[0]:
        cells = [row[name] for row in rows]
        texts = [exact(cell) if isinstance(cell, int) else cell for cell in cells]
        right = all(isinstance(cell, int) for cell in cells)
        columns.append(Column(name.replace("_", " "), texts, right=right, rank=ranks.get(name, 0)))
    shown = with_room(columns, room)
    return fit_columns(shown, room), [column.name for column in columns if column not in shown]
