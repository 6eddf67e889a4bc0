"""The arithmetic of `memory`, line by line: weights by format, cache by layer kind, estimates, devices."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from paramcalc.assumptions import Assumptions
from paramcalc.base import symbolic
from paramcalc.base.dtypes import Dtype, dtype
from paramcalc.counting.symbols import SymbolTable
from paramcalc.counting.tree_rows import layer_name
from paramcalc.footprint import cache, memory
from paramcalc.footprint.cache_dtypes import EntryBytes
from paramcalc.model import Model
from paramcalc.parallel.sharding import tensor_names
from paramcalc.reports.count import Explanation, Line
from paramcalc.storage import weights
from paramcalc.storage.gguf.types import GGUF_TYPES
from paramcalc.storage.weights import StoredTensors
from paramcalc.tree.containers import Stack, stacks
from paramcalc.tree.state import CacheEntry

if TYPE_CHECKING:
    from paramcalc.reports.shapes.memory import MemoryReportDict, PerDeviceDict


def explain_memory(model: Model, assumed: Assumptions) -> Explanation:
    """The arithmetic behind each figure of `memory`, with its notes."""
    figures = memory.memory_figures(model, assumed)
    legend = SymbolTable()
    cache_lines = list(_cache_lines(model, assumed, figures, legend))
    legend.add("T", assumed.context, "tokens of each sequence (context)")
    legend.add("B", assumed.batch, "sequences at a time (batch)")
    if any(entry.growth.follows_source for entry in model.tree.cache()):
        legend.add("S", assumed.source or assumed.context, "entries of the encoder output (source)")
    lines = [
        *_weight_lines(weights.storage_plan(model, assumed).stored),
        *cache_lines,
        *_working_lines(figures),
        *_total_lines("all parts", figures),
    ]
    if figures["per_device"]["devices"] > 1:
        lines += _device_lines(figures["per_device"])
    if figures["notes"]:
        lines += [Line(level=0, name="notes"), *(Line(level=1, name=note) for note in figures["notes"])]
    return Explanation(
        model=figures["model"], warnings=figures["warnings"], symbols=tuple(legend.symbols.values()), lines=tuple(lines)
    )


# -- weights -----------------------------------------------------------------------------------------------------


def _weight_lines(stored: Iterable[StoredTensors]) -> Iterator[Line]:
    """For each format: values, side tensors, and the sum."""
    by_format: dict[str, list[StoredTensors]] = defaultdict(list)
    for one in stored:
        by_format[one.format].append(one)
    yield Line(level=0, name="weights")
    for name, tensors in by_format.items():
        yield from _format_lines(name, tensors)
    sizes = [sum(one.bytes for one in tensors) for tensors in by_format.values()]
    yield _sum_line("= weights", 1, sizes)


def _format_lines(name: str, stored: list[StoredTensors]) -> Iterator[Line]:
    total = sum(one.bytes for one in stored)
    if stored[0].layout is None:
        kind = GGUF_TYPES[name]
        yield _values_line(name, 1, total // kind.block_bytes * kind.block_elements, kind, total)
        return
    values, elements, side_bytes = 0, 0, Counter[str]()
    for one in stored:
        if one.layout is not None:
            values += one.tensors * one.layout.value_bytes(one.weight.shape)
            elements += one.tensors * int(one.weight.elements)
            side_bytes.update({extra: one.tensors * n for extra, n in one.layout.extra_bytes(one.weight.shape).items()})
    kind = stored[0].layout.values
    if not side_bytes:
        yield _values_line(name, 1, elements, kind, total)
        return
    yield Line(level=1, name=name, remark=stored[0].layout.summary)
    yield _values_line("values", 2, elements, kind, values)
    for extra, size in side_bytes.items():
        yield Line(level=2, name=extra, result=size)
    yield _sum_line(f"= {name}", 2, [values, *side_bytes.values()])


def _values_line(name: str, level: int, elements: int, kind: Dtype, result: int) -> Line:
    return Line(level=level, name=name, formula="N x bytes", numbers=f"{elements:,}{_per_value(kind)}", result=result)


def _per_value(kind: Dtype) -> str:
    """The factor from values to bytes: ` x 2`, or ` / 32 x 17` for block dtypes."""
    return f" x {kind.block_bytes}" if kind.block_elements == 1 else f" / {kind.block_elements} x {kind.block_bytes}"


# -- caches and states -------------------------------------------------------------------------------------------


def _cache_lines(model: Model, assumed: Assumptions, figures: MemoryReportDict, legend: SymbolTable) -> Iterator[Line]:
    state_lines = _StateLines(EntryBytes(model, assumed), assumed, legend)
    policy = f"policy {assumed.kv_policy}" + (f", mla {assumed.mla}" if figures["kv_cache"]["latent"] else "")
    parts: tuple[tuple[str, Literal["kv_cache", "state"], bool], ...] = (
        ("kv cache", "kv_cache", False),
        ("state", "state", True),
    )
    for title, name, states in parts:
        sizes: list[int] = []
        lines = [line for stack in stacks(model.tree) for line in state_lines.stack(stack, sizes, states=states)]
        if not lines:
            continue
        remark = state_remark(model) if states else f"{figures['kv_cache']['dtype']}, {policy}"
        yield Line(level=0, name=title, remark=remark)
        yield from lines
        sequence = sum(sizes)
        yield _sum_line("= one sequence", 1, sizes)
        yield Line(
            level=1,
            name=f"= {title}",
            formula="B x one sequence",
            numbers=f"{assumed.batch:,} x {sequence:,}",
            result=figures[name]["bytes"],
        )


def state_remark(model: Model) -> str:
    """The growth of the state in words."""
    limited = any(one.is_state and one.growth.rate == "limited" for one in model.tree.cache())
    return "grows up to a limit" if limited else "does not grow"


class _StateLines:
    """Lines for the cache entries of layers."""

    def __init__(self, entries: EntryBytes, assumed: Assumptions, legend: SymbolTable) -> None:
        self.entries, self.assumed, self.legend = entries, assumed, legend

    def stack(self, stack: Stack, sizes: list[int], *, states: bool) -> Iterator[Line]:
        """Lines for each layer kind of a stack; appends the bytes of all of its layers to `sizes`."""
        if not stack.causal:
            return
        for kind in stack.layer_kinds():
            all_entries = cache.apply_policies(kind.layer.state(), self.assumed)
            entries = [entry for entry in all_entries if entry.is_state is states]
            if entries and kind.cached:
                yield Line(level=1, name=f"{stack.role} {layer_name(kind)}", remark=kind.layer.label())
                for equal in self._alike(entries):
                    yield from self._entry_lines(equal, kind.cached, sizes)

    def _alike(self, entries: Iterable[CacheEntry]) -> Iterable[list[CacheEntry]]:
        """Groups of entries that differ only in name, such as keys and values of the same width."""
        groups: dict[tuple[object, ...], list[CacheEntry]] = defaultdict(list)
        for entry in entries:
            symbols = symbolic.symbols_and_numbers(
                entry.elements
            )  # sizes that are equal by chance have different symbols
            groups[(symbols, entry.growth, entry.size, entry.copies, self.entries.format(entry))].append(entry)
        return groups.values()

    def _entry_lines(self, alike: list[CacheEntry], times: int, sizes: list[int]) -> Iterator[Line]:
        """Two lines: one entry in symbols, and all entries of all layers."""
        one, many = alike[0], len(alike) * alike[0].copies
        kind, entry = self.entries.format(one), sum(map(self.entries.bytes, alike))
        symbols, numbers = map(symbolic.bracketed, symbolic.symbols_and_numbers(self.legend.distinct(one.elements)))
        factor = f"{many:,} " if many > 1 else ""
        yield Line(
            level=2,
            name=" + ".join(dict.fromkeys(one.kind.name for one in alike)),
            formula=f"{factor}{symbols} x {kind.name}" if symbols != numbers else kind.name,
            numbers=f"{factor and factor + 'x '}{numbers}{_per_value(kind)}",
            result=entry,
        )
        entries = int(one.entries(self.assumed.context, source=self.assumed.source or self.assumed.context))
        sizes.append(times * entries * entry)
        yield Line(
            level=3,
            name="all entries",
            formula=f"{'layers x ' if times > 1 else ''}{symbolic.bracketed(one.formula)} x entry",
            numbers=f"{f'{times:,} x ' if times > 1 else ''}{entries:,} x {entry:,}",
            result=sizes[-1],
        )


# -- estimates, sums and devices ---------------------------------------------------------------------------------


def _working_lines(figures: MemoryReportDict) -> Iterator[Line]:
    """Lines for working memory."""
    work = figures["working"]
    logits, activations, scores = work["logits"], work["activations"], work["scores"]
    yield Line(level=0, name="working (estimate)")
    for name, part, formula, sizes in (
        ("logits", logits, "tokens x vocabulary", (logits["tokens"], logits["vocabulary"])),
        ("activations", activations, "tokens x channels", (activations["tokens"], activations["channels"])),
    ):
        numbers = f"{sizes[0]:,} x {sizes[1]:,}{_per_value(dtype(part['dtype']))}"
        yield Line(level=1, name=name, formula=formula, numbers=numbers, result=part["bytes"])
    if scores["bytes"]:
        yield Line(level=1, name="scores", formula="eager attention", result=scores["bytes"])
    yield Line(level=1, name=next(line for line in work["how"] if line.startswith("channels")))
    yield _sum_line("= working", 1, [part["bytes"] for part in (logits, activations, scores) if part["bytes"]])


def _total_lines(title: str, figures: MemoryReportDict | PerDeviceDict) -> Iterator[Line]:
    yield Line(level=0, name=title)
    for name in ("weights", "kv_cache", "state", "working", "overhead"):
        if figures[name]["bytes"]:
            estimate = " (estimate)" if figures[name].get("estimate") else ""
            yield Line(level=1, name=name.replace("_", " ") + estimate, result=figures[name]["bytes"])
    yield Line(level=1, name="= total", result=figures["total"]["bytes"])


def _device_lines(figures: PerDeviceDict) -> Iterator[Line]:
    """Lines for the most loaded device: its weights by sharding rule, and its total."""
    yield Line(level=0, name=f"weights on the most loaded of {figures['devices']:,} devices", remark="by sharding rule")
    for name, share in figures["sharding"].items():
        yield Line(level=1, name=name, result=share["bytes"], remark=tensor_names(share["weights"]))
    yield from _total_lines("on that device", figures)


def _sum_line(name: str, level: int, sizes: list[int]) -> Line:
    return Line(level=level, name=name, numbers=" + ".join(f"{size:,}" for size in sizes), result=sum(sizes))
