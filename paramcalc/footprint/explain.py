"""The arithmetic of a footprint, line by line: weights by format, what each kind of layer keeps, estimates, devices."""

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
    """Show how each figure of `memory` comes about, and what is said beside it."""
    found = memory.memory_figures(model, assumed)
    legend = SymbolTable()
    keeping = list(_caches(model, assumed, found, legend))
    legend.add("T", assumed.context, "tokens of each sequence (context)")
    legend.add("B", assumed.batch, "sequences at a time (batch)")
    if any(one.growth.of_source for one in model.tree.cache()):
        legend.add("S", assumed.source or assumed.context, "entries of an encoder's output (source)")
    lines = [
        *_weights(weights.storage_plan(model, assumed).stored),
        *keeping,
        *_estimates(found),
        *_sum("in all", found),
    ]
    if found["per_device"]["devices"] > 1:
        lines += _devices(found["per_device"])
    if found["notes"]:
        lines += [Line(level=0, name="notes"), *(Line(level=1, name=note) for note in found["notes"])]
    return Explanation(
        model=found["model"], warnings=found["warnings"], symbols=tuple(legend.symbols.values()), lines=tuple(lines)
    )


# -- weights -----------------------------------------------------------------------------------------------------


def _weights(stored: Iterable[StoredTensors]) -> Iterator[Line]:
    """Each format: its values, what stands beside them, and the sum."""
    by_format: dict[str, list[StoredTensors]] = defaultdict(list)
    for one in stored:
        by_format[one.format].append(one)
    yield Line(level=0, name="weights")
    for name, those in by_format.items():
        yield from _format(name, those)
    sizes = [sum(one.bytes for one in those) for those in by_format.values()]
    yield _added("= weights", 1, sizes)


def _format(name: str, stored: list[StoredTensors]) -> Iterator[Line]:
    whole = sum(one.bytes for one in stored)
    if stored[0].layout is None:
        kind = GGUF_TYPES[name]
        yield _values(name, 1, whole // kind.block_bytes * kind.block_elements, kind, whole)
        return
    values, elements, beside = 0, 0, Counter[str]()
    for one in stored:
        if one.layout is not None:
            values += one.tensors * one.layout.value_bytes(one.weight.shape)
            elements += one.tensors * int(one.weight.elements)
            beside.update({extra: one.tensors * n for extra, n in one.layout.extra_bytes(one.weight.shape).items()})
    kind = stored[0].layout.values
    if not beside:
        yield _values(name, 1, elements, kind, whole)
        return
    yield Line(level=1, name=name, remark=stored[0].layout.summary)
    yield _values("values", 2, elements, kind, values)
    for extra, size in beside.items():
        yield Line(level=2, name=extra, result=size)
    yield _added(f"= {name}", 2, [values, *beside.values()])


def _values(name: str, level: int, elements: int, kind: Dtype, result: int) -> Line:
    return Line(level=level, name=name, formula="N x bytes", numbers=f"{elements:,}{_each(kind)}", result=result)


def _each(kind: Dtype) -> str:
    """` x 2`, or in blocks ` / 32 x 17`."""
    return f" x {kind.block_bytes}" if kind.block_elements == 1 else f" / {kind.block_elements} x {kind.block_bytes}"


# -- caches and states -------------------------------------------------------------------------------------------


def _caches(model: Model, assumed: Assumptions, found: MemoryReportDict, legend: SymbolTable) -> Iterator[Line]:
    told = _StateLines(EntryBytes(model, assumed), assumed, legend)
    policy = f"policy {assumed.kv_policy}" + (f", mla {assumed.mla}" if found["kv_cache"]["latent"] else "")
    parts: tuple[tuple[str, Literal["kv_cache", "state"], bool], ...] = (
        ("kv cache", "kv_cache", False),
        ("state", "state", True),
    )
    for title, name, states in parts:
        sizes: list[int] = []
        lines = [line for stack in stacks(model.tree) for line in told.stack(stack, sizes, states=states)]
        if not lines:
            continue
        remark = state_remark(model) if states else f"{found['kv_cache']['dtype']}, {policy}"
        yield Line(level=0, name=title, remark=remark)
        yield from lines
        one = sum(sizes)
        yield _added("= one sequence", 1, sizes)
        yield Line(
            level=1,
            name=f"= {title}",
            formula="B x one sequence",
            numbers=f"{assumed.batch:,} x {one:,}",
            result=found[name]["bytes"],
        )


def state_remark(model: Model) -> str:
    """How the state grows."""
    limited = any(one.is_state and one.growth.rate == "limited" for one in model.tree.cache())
    return "grows to a limit" if limited else "does not grow"


class _StateLines:
    """What layers keep, one entry after the other."""

    def __init__(self, entries: EntryBytes, assumed: Assumptions, legend: SymbolTable) -> None:
        self.entries, self.assumed, self.legend = entries, assumed, legend

    def stack(self, stack: Stack, sizes: list[int], *, states: bool) -> Iterator[Line]:
        """Each kind of layer of a stack; the bytes of all of its layers are added to `sizes`."""
        if not stack.causal:
            return
        for kind in stack.layer_kinds():
            stated = cache.entries_under(kind.layer.state(), self.assumed)
            found = [one for one in stated if one.is_state is states]
            if found and kind.cached:
                yield Line(level=1, name=f"{stack.role} {layer_name(kind)}", remark=kind.layer.label())
                for alike in self._alike(found):
                    yield from self._kept(alike, kind.cached, sizes)

    def _alike(self, found: Iterable[CacheEntry]) -> Iterable[list[CacheEntry]]:
        """What differs in nothing but its name, like keys and values of one width."""
        groups: dict[tuple[object, ...], list[CacheEntry]] = defaultdict(list)
        for one in found:
            spelled = symbolic.symbols_and_numbers(one.elements)  # of equal sizes by chance each has its reason
            groups[(spelled, one.growth, one.size, one.copies, self.entries.format(one))].append(one)
        return groups.values()

    def _kept(self, alike: list[CacheEntry], times: int, sizes: list[int]) -> Iterator[Line]:
        """An entry in symbols, and all entries of all layers."""
        one, many = alike[0], len(alike) * alike[0].copies
        kind, entry = self.entries.format(one), sum(map(self.entries.bytes, alike))
        symbols, numbers = map(symbolic.bracketed, symbolic.symbols_and_numbers(self.legend.distinct(one.elements)))
        factor = f"{many:,} " if many > 1 else ""
        yield Line(
            level=2,
            name=" + ".join(dict.fromkeys(one.kind.name for one in alike)),
            formula=f"{factor}{symbols} x {kind.name}" if symbols != numbers else kind.name,
            numbers=f"{factor and factor + 'x '}{numbers}{_each(kind)}",
            result=entry,
        )
        entries = int(one.entries(self.assumed.context, source=self.assumed.source or self.assumed.context))
        sizes.append(times * entries * entry)
        yield Line(
            level=3,
            name="all of them",
            formula=f"{'layers x ' if times > 1 else ''}{symbolic.bracketed(one.formula)} x entry",
            numbers=f"{f'{times:,} x ' if times > 1 else ''}{entries:,} x {entry:,}",
            result=sizes[-1],
        )


# -- estimates, sums and devices ---------------------------------------------------------------------------------


def _estimates(found: MemoryReportDict) -> Iterator[Line]:
    """Working memory and overhead."""
    work = found["working"]
    logits, activations, scores = work["logits"], work["activations"], work["scores"]
    yield Line(level=0, name="working (estimate)")
    for name, part, formula, sizes in (
        ("logits", logits, "tokens x vocabulary", (logits["tokens"], logits["vocabulary"])),
        ("activations", activations, "tokens x channels", (activations["tokens"], activations["channels"])),
    ):
        numbers = f"{sizes[0]:,} x {sizes[1]:,}{_each(dtype(part['dtype']))}"
        yield Line(level=1, name=name, formula=formula, numbers=numbers, result=part["bytes"])
    if scores["bytes"]:
        yield Line(level=1, name="scores", formula="eager attention", result=scores["bytes"])
    yield Line(level=1, name=next(line for line in work["how"] if line.startswith("channels")))
    yield _added("= working", 1, [part["bytes"] for part in (logits, activations, scores) if part["bytes"]])


def _sum(title: str, found: MemoryReportDict | PerDeviceDict) -> Iterator[Line]:
    yield Line(level=0, name=title)
    for name in ("weights", "kv_cache", "state", "working", "overhead"):
        if found[name]["bytes"]:
            estimate = " (estimate)" if found[name].get("estimate") else ""
            yield Line(level=1, name=name.replace("_", " ") + estimate, result=found[name]["bytes"])
    yield Line(level=1, name="= total", result=found["total"]["bytes"])


def _devices(found: PerDeviceDict) -> Iterator[Line]:
    """The rule that divides each tensor, and what the fullest device holds."""
    yield Line(level=0, name=f"weights of the fullest of {found['devices']:,} devices", remark="by what divides them")
    for name, share in found["sharding"].items():
        yield Line(level=1, name=name, result=share["bytes"], remark=tensor_names(share["weights"]))
    yield from _sum("on that device", found)


def _added(name: str, level: int, sizes: list[int]) -> Line:
    return Line(level=level, name=name, numbers=" + ".join(f"{size:,}" for size in sizes), result=sum(sizes))
