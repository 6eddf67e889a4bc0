"""Tables for people, with rich. Each function returns a renderable; `draw` turns it into text for a given terminal."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paramcalc.dtypes import dtype
from paramcalc.outline import Row
from paramcalc.render.pattern import patterns
from paramcalc.report import CountReport, FamilyInfo
from paramcalc.units import exact, human_bytes, human_count, percent

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

BAR = 24  # cells of a full bar
BYTE_DTYPES = ("float32", "bfloat16", "int8", "int4")
SHORT = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float8_e4m3fn": "fp8"}


def draw(renderable: RenderableType, *, width: int | None, color: bool) -> str:
    """Render to text: `width` None means as wide as it needs, for pipes and files."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        width=width or 400,
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


def count_table(report: CountReport, rows: Sequence[Row] | None = None) -> Group:
    """One model: header, layer pattern, parameters by category (or the tree, where `rows` are given), and bytes."""
    from rich.console import Group
    from rich.text import Text

    middle = tree_table(rows, report.parameters.total) if rows else category_table(report)
    return Group(_header(report), Text(""), middle, Text(""), summary(report), weights(report))


def _header(report: CountReport) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    m = report.model
    head = Text(m.name, style="bold")
    head.append(f"  {m.family}  {m.architecture}  ", style="default")
    head.append(m.status, style="bold green" if m.status == "exact" else "bold yellow")
    return Group(head, *(Text(line) for line in patterns(report.layers)))


def category_table(report: CountReport) -> Table:
    """Parameters by category: exact, human, share and a bar; the column adds up to the total."""
    from rich.text import Text

    table, total = _table(), report.parameters.total
    sparse = report.parameters.active != total
    table.add_column("component", no_wrap=True)
    table.add_column("parameters", justify="right", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=BAR)
    if sparse:
        table.add_column("active", justify="right", no_wrap=True)
    largest = max((share.total for share in report.components.values()), default=0)
    for category, share in report.components.items():
        cells = [category.replace("_", " "), exact(share.total), human_count(share.total), percent(share.total, total)]
        active = [exact(share.active)] if sparse else []
        table.add_row(*cells, Text(_bar(share.total, largest), style="cyan"), *active)
    table.add_section()
    last = [exact(report.parameters.active)] if sparse else []
    table.add_row("total", exact(total), human_count(total), percent(total, total), "", *last, style="bold")
    return table


def _bar(part: int, largest: int) -> str:
    """A bar in eighths of a cell, so that small parts still show."""
    eighths = -(-part * BAR * 8 // largest) if largest else 0
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]


def tree_table(rows: Sequence[Row], total: int) -> Table:
    """The component tree: indented parts with shapes, exact counts and shares."""
    table = _table()
    table.add_column("part", no_wrap=True)
    table.add_column("shape or pattern", overflow="fold")
    table.add_column("parameters", justify="right", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    for row in rows:
        figures = exact(row.total), human_count(row.total), percent(row.total, total)
        table.add_row("  " * row.level + row.name, row.detail, *figures, style="bold" if row.level == 0 else None)
    table.add_section()
    table.add_row("total", "", exact(total), human_count(total), percent(total, total), style="bold")
    return table


def summary(report: CountReport) -> Table:
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
        rows.append(("mtp", p.mtp, "multi-token prediction: shipped, not built by the class, not in the total"))
    table = _plain(2)
    for name, figure, note in rows:
        table.add_row(name, exact(figure), human_count(figure), note)
    for tie, owner in report.tied:
        table.add_row("tied", "", "", f"{tie} is {owner}, counted once")
    return table


def _plain(right: int) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    for _ in range(right):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    return table


def weights(report: CountReport) -> RenderableType:
    """Bytes in the config's dtype, and what the same parameters take in the usual others."""
    from rich.text import Text

    own, total = report.weights, report.parameters.total
    others = [name for name in BYTE_DTYPES if name != own.dtype]
    line = f"weights  {own.dtype} {human_bytes(own.bytes)} ({exact(own.bytes)} bytes)"
    rest = "  ".join(f"{SHORT.get(name, name)} {human_bytes(dtype(name).bytes(total))}" for name in others)
    return Text(f"{line}\n         {rest}")


# -- several models ----------------------------------------------------------------------------------------------


def models_table(reports: Sequence[CountReport]) -> Table:
    """One row per model."""
    table = _table()
    table.add_column("model", overflow="fold")
    table.add_column("family", overflow="fold")
    table.add_column("status", no_wrap=True)
    for name in ("total", "", "active", "non-embedding"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("weights", justify="right", no_wrap=True)
    for report in reports:
        p, m = report.parameters, report.model
        table.add_row(
            m.name,
            m.family,
            m.status,
            exact(p.total),
            human_count(p.total),
            exact(p.active),
            exact(p.non_embedding),
            f"{SHORT.get(report.weights.dtype, report.weights.dtype)} {human_bytes(report.weights.bytes)}",
        )
    return table


def listing(rows: Sequence[Mapping[str, str | int]]) -> Table:
    """Rows with the same keys as a table: numbers exact and to the right."""
    table = _table()
    columns = list(rows[0])
    numeric = {name for name in columns if all(isinstance(row[name], int) for row in rows)}
    for name in columns:
        right = name in numeric
        table.add_column(name.replace("_", " "), justify="right" if right else "left", no_wrap=right, overflow="fold")
    for row in rows:
        table.add_row(*(exact(value) if isinstance(value, int) else value for value in row.values()))
    return table


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
