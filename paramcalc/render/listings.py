"""Lists of presets, families, formats and devices: a row for each, and the columns a narrow terminal omits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from paramcalc.base.errors import printable
from paramcalc.base.units import exact, human_bytes
from paramcalc.render.answer import View
from paramcalc.render.table import WIDE, empty_table, hidden_columns, listing
from paramcalc.render.text import RowData, or_empty

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

    from paramcalc.reports.count import DtypeInfo, FamilyInfo, PresetInfo
    from paramcalc.reports.fit import DeviceInfo

# A narrow terminal omits these columns, the highest rank first.
LISTING_RANKS = {
    "presets": {"source": 4, "family": 3, "status": 2, "active": 1},
    "families": {"verified_by": 4, "architecture": 3, "mixers": 2, "goldens": 1},
    "dtypes": {"source": 4, "use": 3, "leaves": 2, "layout": 1},
    "gpus": {"source": 9, "note": 8, "also": 7, "memory": 6, "fp8_TFLOPS": 5, "bf16_TFLOPS": 4, "vendor": 3, "GB/s": 2},
}
Info = TypeVar("Info")


def list_view(what: str, infos: Iterable[Info], row: Callable[[Info], RowData]) -> View:
    """A list as rows and as a table."""
    rows = [row(info) for info in infos]
    return View(lambda: rows, lambda width: listing_table(what, rows, width or WIDE))


def listing_table(what: str, rows: list[RowData], room: int) -> RenderableType:
    """A table with the names of its omitted columns; a single row becomes one line per field if it is too wide."""
    from rich.console import Group
    from rich.text import Text

    table, omitted = listing(rows, LISTING_RANKS[what], room)
    if not omitted:
        return table
    if len(rows) == 1:
        return field_lines(rows[0])
    return Group(table, Text(""), Text(hidden_columns(omitted)))


def field_lines(row: RowData) -> Table:
    """One row as a line for each field."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, cell in row.items():
        table.add_row(name.replace("_", " "), printable(exact(cell) if isinstance(cell, int) else cell))
    return table


def preset_row(info: PresetInfo) -> RowData:
    """A preset with its count and its source."""
    return {
        "name": info.name,
        "family": info.family,
        "status": info.status,
        "total": info.total,
        "active": info.active,
        "source": info.source,
    }


def family_row(info: FamilyInfo) -> RowData:
    """A family with its reference class and its verification."""
    return {
        "name": info.name,
        "architecture": info.architecture,
        "mixers": info.mixers,
        "goldens": info.goldens,
        "verified_by": info.verified_by,
    }


def dtype_row(info: DtypeInfo) -> RowData:
    """A format with its bits, its layout and the tensors it does not convert."""
    return {
        "name": info.name,
        "bits": info.bits if info.exact else f"about {info.bits}",
        "layout": info.layout,
        "leaves": info.leaves,
        "use": info.use,
        "source": info.source,
    }


def device_row(info: DeviceInfo) -> RowData:
    """One device, for CSV, Markdown and the list."""
    return {
        "name": info.name,
        "vendor": info.vendor,
        "memory_bytes": info.memory_bytes,
        "memory": human_bytes(info.memory_bytes) + (" stated" if info.memory_is_stated else ""),
        "GB/s": or_empty(info.bandwidth_gb_s),
        "bf16_TFLOPS": or_empty(info.bf16_tflops),
        "fp8_TFLOPS": or_empty(info.fp8_tflops),
        "also": ", ".join(info.aliases),
        "note": info.note,
        "source": info.source,
    }


def family_table(info: FamilyInfo) -> Group:
    """One family: its class, its verification, and the fields it reads."""
    from rich.console import Group
    from rich.text import Text

    table = empty_table()
    for name in ("field", "key in config.json", "default"):
        table.add_column(name, overflow="fold")
    for field in info.fields:
        table.add_row(field.name, field.key if field.key != field.name else "", field.default)
    head = Text(info.name, style="bold")
    head.append(f"  {info.architecture}", style="default")
    verified = f"{info.goldens} goldens, {info.verified_by}"
    return Group(head, Text(info.summary), Text(verified), Text(""), table)
