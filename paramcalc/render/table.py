"""Tables for people, with rich. Each function returns a renderable; `draw` turns it into text for a given terminal."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from paramcalc.dtypes import dtype
from paramcalc.errors import printable
from paramcalc.outline import Row
from paramcalc.render.pattern import patterns
from paramcalc.report import CountReport, FamilyInfo, ModelInfo
from paramcalc.units import exact, human_bytes, human_count, percent

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

WIDE = 400  # columns of a pipe or a file, where nothing needs to be left out
GAP = 3  # columns between two columns
BAR, LEAST_BAR = 24, 8  # cells of a full bar where there is room, and the fewest that tell anything
BYTE_DTYPES = ("float32", "bfloat16", "float8_e4m3fn")
SHORT = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float8_e4m3fn": "fp8"}


def draw(renderable: RenderableType, *, width: int | None, color: bool) -> str:
    """Render to text: `width` None means as wide as it needs, for pipes and files."""
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


def _table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), header_style="bold")


# -- one model ---------------------------------------------------------------------------------------------------


def count_table(
    report: CountReport, rows: Sequence[Row] | None = None, *, width: int | None = None, include_mtp: bool = False
) -> Group:
    """One model: header, layer pattern, parameters by category (or the tree, where `rows` are given), and bytes.

    What a narrow terminal has no room for is left out, never cut: bars first, then rounded figures and notes.
    """
    from rich.console import Group
    from rich.text import Text

    room = width or WIDE
    middle = tree_table(rows, report.parameters.total, room) if rows else category_table(report, room)
    reasons = [Text(f"! {reason}") for reason in report.warnings if width is None]  # a terminal shows them anyway
    named = summary(report, room, include_mtp)
    return Group(_header(report), *reasons, Text(""), middle, Text(""), named, Text(""), weights(report))


def _header(report: CountReport) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    return Group(heading(report.model), *(Text(line) for line in patterns(report.layers)))


def heading(model: ModelInfo) -> Text:
    """Which model it is, as what it was read, and how far the figures are to be trusted."""
    from rich.text import Text

    head = Text(model.name, style="bold")
    head.append(f"  {model.family}  {model.architecture}  ", style="default")
    head.append(model.status, style="bold green" if model.status == "exact" else "bold yellow")
    return head


def category_table(report: CountReport, room: int) -> Table:
    """Parameters by category: exact, human, share and a bar; the column adds up to the total."""
    p, shares = report.parameters, list(report.components.items())
    totals = [share.total for _, share in shares]
    columns = [
        Column("component", [name.replace("_", " ") for name, _ in shares], "total"),
        Column("parameters", [exact(n) for n in totals], exact(p.total), right=True),
        Column("", [human_count(n) for n in totals], human_count(p.total), right=True, rank=3),
        Column("share", [percent(n, p.total) for n in totals], percent(p.total, p.total), right=True, rank=2),
    ]
    active = Column("active", [exact(share.active) for _, share in shares], exact(p.active), right=True, rank=1)
    columns += [active] if p.active != p.total else []
    spare = room - sum(column.width for column in columns) - GAP
    if spare >= LEAST_BAR:
        cells = min(spare, BAR)
        columns.append(Column("", [bar(n, max(totals), cells) for n in totals], " " * cells, style="cyan"))
    return fitted(columns, room)


def bar(part: int, largest: int, cells: int) -> str:
    """A bar in eighths of a cell, so that small parts still show."""
    eighths = -(-part * cells * 8 // largest) if largest else 0
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]


def tree_table(rows: Sequence[Row], total: int, room: int) -> Table:
    """The component tree: indented parts with shapes, exact counts and shares."""
    totals = [row.total for row in rows]
    columns = [
        Column("part", ["  " * row.level + row.name for row in rows], "total"),
        Column("shape or pattern", [row.detail for row in rows], rank=4),
        Column("parameters", [exact(n) for n in totals], exact(total), right=True),
        Column("", [human_count(n) for n in totals], human_count(total), right=True, rank=3),
        Column("share", [percent(n, total) for n in totals], percent(total, total), right=True, rank=2),
    ]
    return fitted(columns, room)


def summary(report: CountReport, room: int, include_mtp: bool) -> Table:
    """The named figures beside the total: active, non-embedding, and what is reported apart."""
    p = report.parameters
    rows: list[tuple[str, int, str]] = []
    if p.active != p.total:
        rows.append(("active", p.active, "what one token uses, both embeddings included"))
    if p.active_without_input_embedding != p.active:
        rows.append(("active without input embedding", p.active_without_input_embedding, "lookups left out"))
    rows.append(("non-embedding", p.non_embedding, "without embeddings and output head"))
    if p.buffers:
        rows.append(("buffers", p.buffers, "saved with the model, not trained, not in the total"))
    if p.mtp:
        where = "in the total" if include_mtp else "not in the total"
        rows.append(("mtp", p.mtp, f"multi-token prediction: shipped, not built by the class, {where}"))
    ties = [f"{tie} is {owner}, counted once" for tie, owner in report.tied]
    blank = [""] * len(ties)
    columns = [
        Column("", [name for name, _, _ in rows] + ["tied"] * len(ties)),
        Column("", [exact(figure) for _, figure, _ in rows] + blank, right=True),
        Column("", [human_count(figure) for _, figure, _ in rows] + blank, right=True, rank=1),
        Column("", [note for _, _, note in rows] + ties, rank=2),
    ]
    return fitted(columns, room, bare=True)


def weights(report: CountReport) -> RenderableType:
    """Bytes of the parameters in the config's dtype and in plain others; formats in blocks are for `memory`."""
    from rich.text import Text

    own, total = report.weights, report.parameters.total
    others = [name for name in BYTE_DTYPES if name != own.dtype]
    line = f"weights  {own.dtype} {human_bytes(own.bytes)} ({exact(own.bytes)} bytes)"
    rest = "  ".join(f"{SHORT.get(name, name)} {human_bytes(dtype(name).bytes(total))}" for name in others)
    return Text(f"{line}\n         {rest}")


# -- columns that fit --------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """Cells under a name, and one in the last row. `rank` 0 always stays; the highest rank goes first."""

    name: str
    cells: list[str]
    total: str = ""
    right: bool = False
    rank: int = 0
    style: str = ""

    @property
    def width(self) -> int:
        """Room it takes, with the gap to the next."""
        return max(map(len, [self.name, self.total, *self.cells])) + GAP


def fitted(columns: list[Column], room: int, *, bare: bool = False) -> Table:
    """A table of the columns there is room for: numbers are left out, never cut."""
    from rich.table import Table

    shown = columns
    while sum(column.width for column in shown) - GAP > room and any(column.rank for column in shown):
        least = max(column.rank for column in shown)
        shown = [column for column in shown if column.rank != least]
    table = Table.grid(padding=(0, GAP - 1)) if bare else _table()
    for column in shown:
        table.add_column(
            column.name, justify="right" if column.right else "left", no_wrap=column.right, style=column.style
        )
    for cells in zip(*(column.cells for column in shown), strict=True):
        table.add_row(*map(printable, cells))
    if any(column.total for column in shown):
        table.add_section()
        table.add_row(*(column.total for column in shown), style="bold")
    return table


# -- several models ----------------------------------------------------------------------------------------------


def models_table(reports: Sequence[CountReport], room: int) -> Table:
    """One row per model."""
    totals = [report.parameters.total for report in reports]
    sizes = [f"{SHORT.get(r.weights.dtype, r.weights.dtype)} {human_bytes(r.weights.bytes)}" for r in reports]
    columns = [
        Column("model", [report.model.name for report in reports]),
        Column("family", [report.model.family for report in reports], rank=6),
        Column("status", [report.model.status for report in reports], rank=1),
        Column("total", [exact(n) for n in totals], right=True),
        Column("", [human_count(n) for n in totals], right=True, rank=5),
        Column("active", [exact(report.parameters.active) for report in reports], right=True, rank=2),
        Column("non-embedding", [exact(report.parameters.non_embedding) for report in reports], right=True, rank=4),
        Column("weights", sizes, right=True, rank=3),
    ]
    return fitted(columns, room)


def listing(rows: Sequence[Mapping[str, str | int]], ranks: Mapping[str, int], room: int) -> Table:
    """Rows with the same keys as a table; `ranks` says which columns a narrow terminal can do without."""
    columns = []
    for name in rows[0]:
        cells = [row[name] for row in rows]
        texts = [exact(cell) if isinstance(cell, int) else cell for cell in cells]
        right = all(isinstance(cell, int) for cell in cells)
        columns.append(Column(name.replace("_", " "), texts, right=right, rank=ranks.get(name, 0)))
    return fitted(columns, room)


def family_table(info: FamilyInfo) -> Group:
    """One family: its class, its verification, and the fields it reads."""
    from rich.console import Group
    from rich.text import Text

    table = _table()
    for name in ("field", "key in config.json", "default"):
        table.add_column(name, overflow="fold")
    for field in info.fields:
        table.add_row(field.name, field.key if field.key != field.name else "", field.default)
    head = Text(info.name, style="bold")
    head.append(f"  {info.architecture}", style="default")
    verified = f"{info.goldens} goldens, {info.verified_by}"
    return Group(head, Text(info.summary), Text(verified), Text(""), table)
