"""The table of `fit`: the verdict with figures, the limits, and changes that would make the model fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from paramcalc.base.units import exact, human_bytes, number_of
from paramcalc.render.answer import View, validated
from paramcalc.render.memory import assumption_parts, memory_parts_table, note_lines
from paramcalc.render.table import WIDE, Column, fit_columns, heading
from paramcalc.render.text import RowData, or_empty
from paramcalc.reports.fit import FitReport

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

    from paramcalc.reports.fit import Change
    from paramcalc.reports.shapes.fit import FitReportDict

OPTIONS = {
    "context": "--context",
    "batch": "--batch",
    "kv_cache_dtype": "--kv-cache-dtype",
    "dtype": "--dtype",
    "devices": "",
    "gpu": "--gpu",
}


def fit_view(answers: Sequence[FitReportDict]) -> View:
    """The output of `fit`."""
    reports = validated(FitReport, answers)

    def table(width: int | None) -> Group:
        from rich.console import Group

        tables = [fit_table(report, width) for report in reports]
        return Group(*(part for one in tables for part in (one, "")[: 1 if one is tables[-1] else 2]))

    return View(lambda: [fit_row(report) for report in reports], table)


def fit_table(report: FitReport, width: int | None) -> Group:
    """One verdict. A narrow terminal omits columns instead of cutting them."""
    from rich.console import Group
    from rich.text import Text

    room, blank = width or WIDE, Text("")
    reasons = [Text(f"! {reason}") for reason in report.warnings if width is None]  # a terminal shows them anyway
    parts: list[RenderableType] = [
        heading(report.model),
        Text(fit_assumptions_text(report)),
        *reasons,
        blank,
        verdict(report),
        Text(f"per device (fullest of {exact(report.per_device.devices)}):" if several(report) else "memory required:"),
        blank,
        memory_parts_table(report.per_device, room),
        blank,
        most_table(report, room),
    ]
    if report.changes:
        parts += [blank, Text("any one of these changes would make it fit:"), changes_table(report.changes, room)]
    return Group(*parts, *note_lines(report.notes))


def fit_assumptions_text(report: FitReport) -> str:
    """The assumptions of the verdict in one line."""
    stored, cache = report.weights_format, report.kv_cache_dtype
    return assumption_parts(report.assumptions, stored=stored, cache=cache, latent=report.latent)


def several(report: FitReport) -> bool:
    """True for more than one device."""
    return report.per_device.devices > 1


def verdict(report: FitReport) -> Text:
    """`fits: yes, 71% of 24.0 GiB (h100-sxm), 21.6 GiB usable`."""
    from rich.text import Text

    line = Text("fits: ")
    line.append("yes" if report.fits else "no", style="bold green" if report.fits else "bold red")
    of = f"{report.used_percent:.0f}% of {report.gpu.memory_bytes / 2**30:.1f} GiB"
    line.append(f", {of} ({report.gpu.name}); {human_bytes(report.budget_bytes)} usable")
    return line


def most_table(report: FitReport, room: int) -> Table:
    """The limits: largest context, batch and format, and fewest devices."""
    a, lines = report.assumptions, list(_most(report))
    tokens = f"tokens at batch {exact(a.batch)}"
    if report.stated_positions and (report.largest_context is None or report.largest_context > report.stated_positions):
        tokens += f"; the config states {exact(report.stated_positions)} positions"
    lines.insert(0, ("largest context", _limit(report.largest_context), tokens))
    lines.insert(1, ("largest batch", _limit(report.largest_batch), f"sequences of {number_of(a.context, 'token')}"))
    columns = [
        Column("", [name for name, _, _ in lines]),
        Column("", [figure for _, figure, _ in lines], right=True),
        Column("", [note for _, _, note in lines], rank=1, wraps=True),
    ]
    return fit_columns(columns, room, bare=True)


def _most(report: FitReport) -> Iterator[tuple[str, str, str]]:
    fewest, best = report.fewest_devices, report.best_format
    if fewest is None:
        yield "fewest devices", "none", "tried up to 128"
    else:
        sizes = {"tp": fewest.tensor_parallel, "pp": fewest.pipeline_parallel, "ep": fewest.expert_parallel}
        how = "".join(f"{name} {size}, " for name, size in sizes.items() if size > 1)
        yield "fewest devices", exact(fewest.devices), f"{how}{human_bytes(fewest.used_bytes)} each"
    none = "tried down to iq2_xxs"
    yield "largest format", best.format if best else "none", human_bytes(best.used_bytes) if best else none


def _limit(found: int | None) -> str:
    return "no limit" if found is None else exact(found)


def changes_table(changes: Sequence[Change], room: int) -> Table:
    """Changes as the options that make them, with the bytes used after each."""
    columns = [
        Column("", ["  " + change_text(change) for change in changes]),
        Column("", [human_bytes(change.used_bytes) for change in changes], right=True, rank=1),
    ]
    return fit_columns(columns, room, bare=True)


def change_text(change: Change) -> str:
    """`--context 8192`, or `4 devices` for a change without an option."""
    option = OPTIONS[change.change]
    return f"{option} {change.to}" if option else f"{change.to} {change.change}"


def fit_row(report: FitReport) -> RowData:
    """One verdict, for CSV and Markdown."""
    fewest, best = report.fewest_devices, report.best_format
    return {
        "name": report.model.name,
        "gpu": report.gpu.name,
        "fits": "yes" if report.fits else "no",
        "used_percent": f"{report.used_percent:.1f}",
        "used_bytes": report.used_bytes,
        "budget_bytes": report.budget_bytes,
        "devices": report.per_device.devices,
        "context": report.assumptions.context,
        "batch": report.assumptions.batch,
        "largest_context": or_empty(report.largest_context),
        "largest_batch": or_empty(report.largest_batch),
        "fewest_devices": fewest.devices if fewest else "",
        "best_format": best.format if best else "",
        "changes": "; ".join(map(change_text, report.changes)),
    }
