"""Tables of `memory`: the parts and their sum, the cache of one sequence, the formats, the devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from paramcalc.base.units import exact, human_bytes, number_of, percent
from paramcalc.parallel.sharding import tensor_names
from paramcalc.render.answer import View, validated
from paramcalc.render.table import BAR, COLUMN_GAP, LEAST_BAR, WIDE, Column, bar, fit_columns, heading
from paramcalc.render.text import RowData
from paramcalc.reports.memory import MemoryReport

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

    from paramcalc.reports.memory import AssumptionInfo, PerDevice
    from paramcalc.reports.shapes.memory import MemoryReportDict

REPORT_PARTS = ("weights", "kv_cache", "state", "working", "overhead")


def memory_table(report: MemoryReport, width: int | None) -> Group:
    """One model. A narrow terminal omits columns instead of cutting them."""
    from rich.console import Group
    from rich.text import Text

    reasons = [Text(f"! {reason}") for reason in report.warnings if width is None]  # a terminal shows them anyway
    room = width or WIDE
    blank = Text("")
    return Group(
        heading(report.model),
        Text(memory_assumptions_text(report)),
        *reasons,
        blank,
        memory_parts_table(report, room),
        blank,
        cache_table(report, room),
        blank,
        formats_table(report, room),
        *(device_tables(report.per_device, room) if report.per_device.devices > 1 else ()),
        *note_lines(report.notes),
    )


def note_lines(notes: Sequence[str]) -> Iterator[Text]:
    """Notes below a result, a line each."""
    from rich.text import Text

    if notes:
        yield Text("")
    yield from (Text(f"note: {note}") for note in notes)


def memory_parts(report: MemoryReport | PerDevice) -> Iterator[tuple[str, int]]:
    """(name, bytes) of each part that is present, in the order of the report."""
    for name in REPORT_PARTS:
        found = getattr(report, name).bytes
        if found or name == "weights":
            estimate = getattr(getattr(report, name), "estimate", False)
            yield name.replace("_", " ") + (" (estimate)" if estimate else ""), found


def memory_assumptions_text(report: MemoryReport) -> str:
    """The assumptions of the figures in one line."""
    cache = report.kv_cache
    return assumption_parts(report.assumptions, stored=largest_format(report), cache=cache.dtype, latent=cache.latent)


def largest_format(report: MemoryReport) -> str:
    """The format with the most bytes."""
    return max(report.weights.by_format.items(), key=lambda share: share[1].bytes)[0]


def assumption_parts(a: AssumptionInfo, *, stored: str, cache: str, latent: bool) -> str:
    """The main assumptions, and others that differ from their defaults."""
    words = [f"context {number_of(a.context, 'token')}", f"batch {exact(a.batch)}", f"weights {a.dtype or stored}"]
    words += [f"{part} {name}" for part, name in a.dtype_of]
    words += [f"cache {cache}", f"policy {a.kv_policy}"]
    if latent:
        words.append(f"mla {a.mla}")
    sizes = {"tp": a.tensor_parallel, "pp": a.pipeline_parallel, "ep": a.expert_parallel, "dp": a.data_parallel}
    words += [f"{name} {exact(size)}" for name, size in sizes.items() if size > 1]
    if a.include_mtp:
        words.append("with mtp")
    if a.source is not None:
        words.append(f"source {exact(a.source)}")
    if a.state_dtype is not None:
        words.append(f"states {a.state_dtype}")
    if a.conv_columns != "kernel":
        words.append(f"conv columns {a.conv_columns}")
    if a.attention != "flash":
        words.append(f"{a.attention} attention")
    return "  ".join(words)


def memory_parts_table(report: MemoryReport | PerDevice, room: int) -> Table:
    """The parts in bytes; the column adds up to the total."""
    total, parts = report.total.bytes, list(memory_parts(report))
    figures = [figure for _, figure in parts]
    columns = [
        Column("", [name for name, _ in parts], "total"),
        Column("bytes", [exact(n) for n in figures], exact(total), right=True),
        Column("", [human_bytes(n) for n in figures], human_bytes(total), right=True, rank=1),
        Column("share", [percent(n, total) for n in figures], percent(total, total), right=True, rank=2),
    ]
    spare = room - sum(column.width for column in columns) - COLUMN_GAP
    if spare >= LEAST_BAR:
        cells = min(spare, BAR)
        columns.append(Column("", [bar(n, max(figures), cells) for n in figures], " " * cells, style="cyan"))
    return fit_columns(columns, room)


def cache_table(report: MemoryReport, room: int) -> Table:
    """The cache and state of one sequence: parts that grow with the context, up to a limit, or not at all."""
    lines: list[tuple[str, int, str]] = []
    cache, state, context = report.kv_cache.per_sequence, report.state, report.assumptions.context
    if cache.per_token:
        lines.append(("cache per token", cache.per_token, "all tokens"))
    lines += [
        ("cache per token", window.bytes_per_entry, f"at most {exact(window.tokens)} tokens")
        for window in cache.windows
    ]
    lines += [
        ("cache per entry", stride.bytes_per_entry, f"one entry for {exact(stride.tokens)} tokens")
        for stride in cache.strides
    ]
    if other := cache.other_bytes(context):
        lines.append(("slower growth", other, f"at {number_of(context, 'token')}; see the notes"))
    for name, figure in (("fixed", cache.fixed), ("state", state.per_sequence)):
        if figure:
            lines.append((name, figure, "independent of the context"))
    lines.append(("one sequence", cache.bytes + state.per_sequence, f"at {number_of(context, 'token')}"))
    columns = [
        Column("", [name for name, _, _ in lines]),
        Column("", [exact(figure) for _, figure, _ in lines], right=True),
        Column("", [human_bytes(figure) for _, figure, _ in lines], right=True, rank=1),
        Column("", [note for _, _, note in lines], rank=2, wraps=True),
    ]
    return fit_columns(columns, room, bare=True)


def formats_table(report: MemoryReport, room: int) -> Table:
    """The formats of the weights."""
    shares = list(report.weights.by_format.items())
    columns = [
        Column("", ["weights", *[""] * (len(shares) - 1)]),
        Column("", [name for name, _ in shares]),
        Column("", [f"{exact(share.tensors)} tensors" for _, share in shares], right=True, rank=2),
        Column("", [f"{exact(share.parameters)} parameters" for _, share in shares], right=True, rank=1),
        Column("", [exact(share.bytes) for _, share in shares], right=True),
        Column("", [human_bytes(share.bytes) for _, share in shares], right=True, rank=3),
    ]
    return fit_columns(columns, room, bare=True)


def device_tables(device: PerDevice, room: int) -> Iterator[RenderableType]:
    """The memory of the fullest device: its parts, the sharding rule of each tensor, and the pipeline stages."""
    from rich.text import Text

    yield Text(f"\nper device (fullest of {exact(device.devices)}):\n")
    yield memory_parts_table(device, room)
    yield Text("")
    rules = list(device.sharding.items())
    columns = [
        Column("sharding", [name for name, _ in rules]),
        Column("bytes", [exact(share.bytes) for _, share in rules], right=True),
        Column("tensors", [exact(share.tensors) for _, share in rules], right=True, rank=1),
        Column("", [tensor_names(share.weights) for _, share in rules], rank=2),
    ]
    yield fit_columns(columns, room)
    if len(device.stages) > 1:
        yield Text("")
        yield stages_table(device, room)


def stages_table(device: PerDevice, room: int) -> Table:
    """The stages of a pipeline, one line each."""
    last = [stage.first_layer + stage.layers - 1 for stage in device.stages]
    columns = [
        Column("stage", [str(i) for i in range(len(device.stages))], right=True),
        Column("layers", [f"{s.first_layer}-{end}" for s, end in zip(device.stages, last, strict=True)], right=True),
        Column("weights", [exact(stage.weights_bytes) for stage in device.stages], right=True, rank=2),
        Column("kv cache", [exact(stage.kv_cache_bytes) for stage in device.stages], right=True, rank=3),
        Column("total", [exact(stage.total_bytes) for stage in device.stages], right=True),
        Column("", [human_bytes(stage.total_bytes) for stage in device.stages], right=True, rank=1),
    ]
    return fit_columns(columns, room)


def memory_models_table(reports: Sequence[MemoryReport], room: int) -> Group:
    """One row per model, under the common assumptions."""
    from rich.console import Group
    from rich.text import Text

    dtypes = dict.fromkeys(report.kv_cache.dtype for report in reports)
    latent = any(report.kv_cache.latent for report in reports)
    line = assumption_parts(reports[0].assumptions, stored="as stored", cache=", ".join(dtypes), latent=latent)
    columns = [
        Column("model", [report.model.name for report in reports]),
        Column("", [largest_format(report) for report in reports], rank=3),
    ]
    for name in REPORT_PARTS:
        figures = [getattr(report, name).bytes for report in reports]
        if any(figures):
            columns.append(Column(name.replace("_", " "), [human_bytes(n) for n in figures], right=True, rank=1))
    columns.append(Column("total", [exact(report.total.bytes) for report in reports], right=True))
    columns.append(Column("", [human_bytes(report.total.bytes) for report in reports], right=True, rank=2))
    return Group(Text(line), Text(""), fit_columns(columns, room))


def memory_row(report: MemoryReport) -> RowData:
    """The figures of one model, for CSV and Markdown."""
    a = report.assumptions
    return {
        "name": report.model.name,
        "status": report.model.status,
        "context": a.context,
        "batch": a.batch,
        "dtype": a.dtype or largest_format(report),
        "kv_cache_dtype": report.kv_cache.dtype,
        "kv_policy": a.kv_policy,
        **{f"{name}_bytes": getattr(report, name).bytes for name in REPORT_PARTS},
        "total_bytes": report.total.bytes,
        "kv_cache_bytes_per_token": report.kv_cache.bytes_per_token,
        "warnings": "; ".join(report.warnings),
    }


def memory_view(answers: Sequence[MemoryReportDict]) -> View:
    """One model in full, several in a table."""
    reports = validated(MemoryReport, answers)

    def table(width: int | None) -> RenderableType:
        return memory_table(reports[0], width) if len(reports) == 1 else memory_models_table(reports, width or WIDE)

    return View(lambda: [memory_row(report) for report in reports], table)
