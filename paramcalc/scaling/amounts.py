"""What adds up: parameters, operations, bytes kept. Of equal parts they are found once for all points of a sweep.

A model's amounts are those of its parts, and of a stack those of one layer as often as it is repeated: that is what
makes a point cost the same at any depth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from paramcalc.compute.flops import operations, text_part
from paramcalc.compute.setting import setting
from paramcalc.containers import Run, Stack
from paramcalc.footprint import cache
from paramcalc.footprint.assumptions import Assumptions
from paramcalc.model import Model
from paramcalc.spec import Category, Component, claimed


class Amounts(NamedTuple):
    """Elements, operations and bytes; all of them sums."""

    total: int = 0
    active: int = 0
    embedding: int = 0
    head: int = 0
    routed: int = 0  # of experts of which a token uses some
    buffers: int = 0
    forward: int = 0  # operations for one more token at the end of the context; of an encoder, for all of them
    reading: int = 0  # operations for the whole context
    kept_per_token: int = 0
    kept: int = 0  # of the whole batch
    state: int = 0
    depth: int = 0  # layers that one token passes


class Unit(NamedTuple):
    """A part that is counted as one, or one layer in a stack of its own, and how many there are."""

    component: Component
    times: int
    outer: Category | None  # of what it lies in
    speaks: bool  # whether it belongs to the language model, which tokens run through


def units(
    component: Component, outer: Category | None, *, text: Component, speaks: bool, copies: int
) -> Iterator[Unit]:
    """The parts of a model that is there so many times, down to those that hold no stack of layers."""
    speaks = speaks or component is text
    if isinstance(component, Stack):
        times: dict[tuple[int, int, int | None], int] = defaultdict(int)
        layers: dict[int, Component] = {}
        for run in component.runs:
            times[id(run.layer), run.passes, run.kept] += int(run.repeat)
            layers[id(run.layer)] = run.layer
        for (layer, passes, kept), repeat in times.items():
            alone = component.but(runs=(Run(1, layers[layer], passes, kept),), first=0)
            yield Unit(alone, copies * repeat, outer, speaks)
    elif next(component.stacks(), None) is None:
        yield Unit(component, copies, outer, speaks)
    else:
        inner = claimed(outer, component.category)
        for part in component.children():
            yield from units(part.component, inner, text=text, speaks=speaks, copies=copies * int(part.copies))


class Adder:
    """Amounts under the same assumptions, remembered for parts that are equal."""

    def __init__(self, base: Model, assumed: Assumptions) -> None:
        self.base, self.assumed = base, assumed
        self.decoding = setting(tokens=1, context=assumed.context)
        self.whole = setting(tokens=assumed.context, causal=True)
        self.encoding = setting(tokens=assumed.context, source=assumed.context)
        self.known: dict[Any, Amounts] = {}

    def amounts(self, tree: Component) -> Amounts:
        """Those of a whole model."""
        text, sums = text_part(tree), list(Amounts())
        generates = any(stack.causal for stack in text.stacks())
        for unit in units(tree, None, text=text, speaks=False, copies=1):
            key = (unit.component.key(), unit.outer, unit.speaks, generates)
            found = self.known.get(key)
            if found is None:
                found = self.known[key] = self.measured(unit, generates=generates)
            times = unit.times
            sums = [so_far + times * its for so_far, its in zip(sums, found, strict=True)]
        return Amounts(*sums)

    def measured(self, unit: Unit, *, generates: bool) -> Amounts:
        """Those of one part."""
        part = unit.component
        own = [tally for tally in part.tallies(unit.outer) if tally.role == "parameter"]
        found = Amounts(
            total=sum(tally.total for tally in own),
            active=sum(tally.active for tally in own),
            embedding=sum(tally.total for tally in own if tally.category == "embedding"),
            head=sum(tally.total for tally in own if tally.category == "head"),
            routed=sum(tally.total for tally in own if tally.active != tally.total),
            buffers=sum(tally.total for tally in part.tallies(unit.outer) if tally.role == "buffer"),
        )
        if not unit.speaks:
            return found
        works, kept = list(part.work()), cache.figures(self.base.but(tree=part), self.assumed)
        return found._replace(
            forward=sum(operations(works, self.decoding if generates else self.encoding)),
            reading=sum(operations(works, self.whole if generates else self.encoding)),
            kept_per_token=kept["kv_cache"]["bytes_per_token"],
            kept=kept["kv_cache"]["bytes"],
            state=kept["state"]["bytes"],
            depth=sum(run.passes for stack in part.stacks() for run in stack.runs),
        )
