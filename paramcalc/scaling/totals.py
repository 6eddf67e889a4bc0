"""Additive totals (parameters, FLOPs, cache bytes), computed once per distinct part for all points of a sweep.

The totals of a model are those of its parts; those of a stack are the totals of one layer times its number of layers.
That is why a point costs the same at any depth.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from operator import add
from typing import Any, NamedTuple

from paramcalc.assumptions import Assumptions
from paramcalc.compute.flops import term_flops
from paramcalc.compute.workload import check_workload
from paramcalc.footprint.cache import cache_totals
from paramcalc.model import Model
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Run, Stack, stacks
from paramcalc.tree.language import fixed_source_tokens, language_model
from paramcalc.tree.weights import Category, effective_category


class Totals(NamedTuple):
    """Elements, FLOPs and bytes; all of them are sums."""

    total: int = 0
    active: int = 0
    embedding: int = 0
    head: int = 0
    routed: int = 0  # elements of routed experts
    buffers: int = 0
    forward: int = 0  # FLOPs for one more token at the end of the context; in an encoder, for all tokens
    reading: int = 0  # FLOPs for the whole context
    cache_per_token: int = 0
    cache: int = 0  # bytes for the whole batch
    state: int = 0  # bytes of recurrent states, including those that grow with the context
    depth: int = 0  # layers that one token passes through
    tied_heads: int = 0  # output heads that share another matrix


class CountedPart(NamedTuple):
    """A part outside of stacks, or one layer of a stack, and its number of copies."""

    part: Component
    times: int
    outer: Category | None  # category of the enclosing part
    in_language_model: bool  # text tokens pass through it
    layer: Run | None = None  # the layer, if the part is its stack
    causal: bool = False  # the stack decodes one token at a time

    def key(self) -> Hashable:
        """A dictionary key, valid while the part is alive: parts with equal keys have equal totals."""
        if self.layer is None:
            return self.outer, self.in_language_model, id(self.part)
        stack: Any = self.part
        _, layer, passes, cached = self.layer
        return self.outer, self.in_language_model, stack.role, stack.category, self.causal, id(layer), passes, cached

    def component(self) -> Component:
        """The part, or the layer in a stack of its own."""
        return self.part if self.layer is None else self.part.replace(runs=(self.layer,), first=0)


def counted_parts(tree: Component) -> list[CountedPart]:
    """The parts of a model, down to those that hold no stack of layers, and the layers of the stacks."""
    text = language_model(tree)
    if isinstance(tree, Stack):
        return list(_layers(tree, 1, None, in_language_model=True))
    if not stacks(tree):
        return [CountedPart(tree, 1, None, tree is text)]
    found: list[CountedPart] = []
    _add_units(found, tree, 1, None, text=text, in_language_model=tree is text)
    return found


def _add_units(
    found: list[CountedPart],
    part: Component,
    times: int,
    outer: Category | None,
    *,
    text: Component,
    in_language_model: bool,
) -> None:
    inner = effective_category(outer, part.category)
    for _, inside, copies, *_ in part.children():
        many, within = times * int(copies), in_language_model or inside is text
        if isinstance(inside, Stack):
            found += _layers(inside, many, inner, in_language_model=within)
        elif stacks(inside):
            _add_units(found, inside, many, inner, text=text, in_language_model=within)
        else:
            found.append(CountedPart(inside, many, inner, within))


def _layers(stack: Stack, times: int, outer: Category | None, *, in_language_model: bool) -> Iterator[CountedPart]:
    for one, copies in stack.single_layers():
        yield CountedPart(stack, times * copies, outer, in_language_model, one, stack.causal)


NO_TOTALS = Totals()


class TotalsFolder:
    """The totals of parts under one set of assumptions, cached for equal parts."""

    def __init__(self, base: Model, assumed: Assumptions) -> None:
        self.base, self.assumed = base, assumed
        source = assumed.source or next(fixed_source_tokens(language_model(base.tree)), None)
        self.decoding = check_workload(tokens=1, context=assumed.context, source=source)
        self.whole = check_workload(tokens=assumed.context, causal=True, source=source)
        self.encoding = check_workload(tokens=assumed.context, source=assumed.context)
        # Keyed by "the model generates text". The parts are stored too: their ids are part of the keys.
        self.around: Mapping[bool, dict[Hashable, Totals]] = {True: {}, False: {}}
        self.known: Mapping[bool, dict[Hashable, tuple[Totals, CountedPart]]] = {True: {}, False: {}}

    def of_parts(self, found: Sequence[tuple[Hashable, CountedPart]]) -> Totals:
        """The totals of all parts of a model, each given with its key."""
        generates = any(unit.causal and unit.in_language_model for _, unit in found)
        around = tuple(key for key, unit in found if unit.layer is None)
        if around not in self.around[generates]:  # equal for models that differ only in their layers
            self.around[generates][around] = self._sum([one for one in found if one[1].layer is None], generates)
        return self._sum([one for one in found if one[1].layer is not None], generates, self.around[generates][around])

    def _sum(self, found: Iterable[tuple[Hashable, CountedPart]], generates: bool, sums: Totals = NO_TOTALS) -> Totals:
        for key, unit in found:
            its, many = self.of_part(key, unit, generates=generates), unit.times
            sums = Totals._make(map(add, sums, its if many == 1 else map(many.__mul__, its)))
        return sums

    def of_part(self, key: Hashable, unit: CountedPart, *, generates: bool) -> Totals:
        """The totals of one part, cached. Each further pass through a shared layer adds the same amount."""
        known = self.known[generates]
        one = known.get(key)
        if one is not None:
            return one[0]
        if unit.layer is None or unit.layer.passes <= 2:
            found = self.measure(unit, generates=generates)
        else:
            more = unit.layer.passes - 1
            alike = [unit._replace(layer=unit.layer._replace(passes=passes)) for passes in (1, 2)]
            pairs = zip(*(self.of_part(few.key(), few, generates=generates) for few in alike), strict=True)
            found = Totals(*(once + more * (twice - once) for once, twice in pairs))
        known[key] = found, unit
        return found

    def measure(self, unit: CountedPart, *, generates: bool) -> Totals:
        """The totals of one part, computed."""
        part = unit.component()
        own = [tally for tally in part.totals(unit.outer) if tally.role == "parameter"]
        found = Totals(
            total=sum(tally.total for tally in own),
            active=sum(tally.active for tally in own),
            embedding=sum(tally.total for tally in own if tally.category == "embedding"),
            head=sum(tally.total for tally in own if tally.category == "head"),
            routed=sum(tally.total for tally in own if tally.active != tally.total),
            buffers=sum(tally.total for tally in part.totals(unit.outer) if tally.role == "buffer"),
            tied_heads=sum(tie.category == "head" for tie in part.ties(outer=unit.outer)),
        )
        if not unit.in_language_model:
            return found
        ops, cached = list(part.ops()), cache_totals(self.base.replace(tree=part), self.assumed)
        return found._replace(
            forward=sum(term_flops(ops, self.decoding if generates else self.encoding)),
            reading=sum(term_flops(ops, self.whole if generates else self.encoding)),
            cache_per_token=cached.per_token,
            cache=cached.cache,
            state=cached.state,
            depth=sum(run.passes for stack in stacks(part) for run in stack.runs),
        )
