"""What puts components together: blocks of named parts, stacks of layers, and what is shipped beside the model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, combinations, groupby, starmap
from operator import eq
from typing import Literal, NamedTuple

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component, Part, without_none
from paramcalc.tree.leaves import Embedding, Linear
from paramcalc.tree.ops import IN_TOWERS, FlopTerm, Per
from paramcalc.tree.state import CacheEntry
from paramcalc.tree.weights import Category, Tally, Tie, Weight, effective_category

ResidualPlacement = Literal["each", "normed", "together"]


class Block(Component):
    """Named parts in data-flow order.

    `inexact` says why their work is not quite what the reference multiplies; `adds`, of a layer, where what a mixer
    puts out is added to what came in: after each one (and the norm behind it, where there is one before the next too),
    after the norm behind each, or once for all of them.
    """

    items: dict[str, Component]
    inexact: str = ""
    adds: ResidualPlacement = "each"

    def parts(self) -> Mapping[str, Component]:
        return self.items

    own_ops = Component.no_own_ops

    def _ops(self) -> Iterator[FlopTerm]:
        for w in super()._ops():
            yield w._replace(inexact=self.inexact or w.inexact)

    def label(self) -> str:
        return " + ".join(text for text in (part.label() for part in self.items.values()) if text)


class Mtp(Block):
    """Multi-token-prediction modules: shipped beside the model, not built by its class, reported apart.

    Their tied parts are the copies of embedding and head that the checkpoint holds once more. DeepSeek-V3
    (2412.19437), section 2.2.
    """

    count: Size

    @property
    def copied(self) -> int:
        """Elements of the matrices that are shipped again although the model has them."""
        return sum(weight.elements * int(weight.copies) for weight in self.duplicated_weights())

    def duplicated_weights(self, prefix: str = "") -> Iterator[Weight]:
        for name, part in self.items.items():
            if isinstance(part, Embedding | Linear) and part.tied_to:
                for weight in part.replace(tied_to=None).weights(f"{prefix}{name}."):
                    yield weight._replace(copies=int(self.count), active=0, role="copy")

    def children(self) -> Iterator[Part]:
        for part in super().children():
            yield part._replace(copies=self.count, active=self.count)

    def weights(self, prefix: str = "", outer: Category | None = None) -> Iterator[Weight]:
        for weight in super().weights(prefix, outer):
            yield weight._replace(role="mtp")  # its router's correction buffer too: it is part of what is shipped

    def totals(self, outer: Category | None = None) -> Iterator[Tally]:
        for tally in super().totals(outer):
            yield tally._replace(role="mtp")

    def ties(self, prefix: str = "", outer: Category | None = None) -> Iterator[Tie]:  # noqa: ARG002  (as in Component)
        return iter(())  # copies in a module that is not built tie nothing

    def cache(self) -> Iterator[CacheEntry]:
        return iter(())  # nor does it run

    def ops(self, prefix: str = "", outer: Category | None = None) -> Iterator[FlopTerm]:  # noqa: ARG002  (as in Component)
        return iter(())


class Run(NamedTuple):
    """`repeat` equal layers in a row; each is passed through `passes` times (1 unless layers are shared).

    Every pass keeps something of its own, unless `kept` says how many do.
    """

    repeat: int
    layer: Component
    passes: int = 1
    cached_passes: int | None = None


class Stack(Component):
    """Layers in order, equal neighbours run-length encoded: 10,000 layers cost as much to count as one.

    `role` is the stack's name in the report: decoder, encoder. `causal`: it sees one token after the other, and its
    layers keep what they have seen; an encoder sees all of its input at once and keeps nothing.
    """

    role: str
    runs: tuple[Run, ...]
    first: int = 0  # number of its first layer; not 0 where it is a part of a stack
    causal: bool = False

    def children(self) -> Iterator[Part]:
        start = self.first
        for run in self.runs:
            last = start + run.repeat - 1
            yield Part(str(start) if run.repeat == 1 else f"{start}-{last}", run.layer, run.repeat, run.repeat)
            start = last + 1

    def distinct_runs(self) -> Sequence[tuple[Run, int]]:
        """Each run once, and how many there are of it: few, however deep the stack is."""
        return self.cached("distinct_runs", self._distinct_runs)

    def _distinct_runs(self) -> Iterator[tuple[Run, int]]:
        runs = dict(zip(map(id, self.runs), self.runs, strict=True))
        return ((runs[name], times) for name, times in Counter(map(id, self.runs)).items())

    def kinds(self) -> Iterator[tuple[list[str], Component, int]]:
        """(numbers of its runs, layer, how many in all) for each distinct layer, however the layers alternate."""
        found: dict[int, tuple[list[str], Component, int]] = {}
        for name, layer, copies, *_ in self.children():
            names, _, so_far = found.get(id(layer), ([], layer, 0))
            found[id(layer)] = [*names, name] if len(names) < 4 else names, layer, so_far + copies
        return iter(found.values())

    def weights(self, prefix: str = "", outer: Category | None = None) -> Iterator[Weight]:
        """The tensors of each distinct layer once, under the number of its first run, with the copies of all."""
        category, numbers = effective_category(outer, self.category), self.numbers()
        for names, layer, copies in self.kinds():
            for w in layer.weights(f"{prefix}{names[0]}.", category):
                yield w._replace(
                    copies=w.copies * copies, active=w.active * copies, layers=w.layers or numbers[id(layer)]
                )

    def numbers(self) -> dict[int, tuple[range, ...]]:
        """The numbers of the layers that each distinct layer (by its id) stands for."""
        found: dict[int, list[range]] = {}
        start = self.first
        for run in self.runs:
            found.setdefault(id(run.layer), []).append(range(start, start + run.repeat))
            start += run.repeat
        return {layer: tuple(ranges) for layer, ranges in found.items()}

    def distinct_parts(self) -> Iterator[Part]:
        """Each distinct layer once, under the number of its first run, with the copies of all."""
        for names, layer, copies in self.kinds():
            yield Part(names[0], layer, copies, copies)

    def ties(self, prefix: str = "", outer: Category | None = None) -> Iterator[Tie]:
        category = effective_category(outer, self.category)
        tied = {id(layer): ties for _, layer, _ in self.kinds() if (ties := list(layer.ties("", category)))}
        start = self.first
        for run in self.runs if tied else ():  # each layer has ties of its own
            for i in range(start, start + run.repeat):
                yield from (tie._replace(name=f"{prefix}{i}.{tie.name}") for tie in tied.get(id(run.layer), ()))
            start += run.repeat

    def cache(self) -> Iterator[CacheEntry]:
        """What each layer keeps, as often as a pass through it keeps something."""
        if not self.causal:
            return
        for run in self.runs:
            for kept in run.layer.cached("all_kept", run.layer.state):
                passes = run.passes if run.cached_passes is None else run.cached_passes
                yield kept._replace(copies=kept.copies * int(run.repeat) * passes)

    own_ops = Component.no_own_ops

    def ops(self, prefix: str = "", outer: Category | None = None) -> Iterator[FlopTerm]:
        """The work of each distinct layer once, under the numbers of its runs, as often as a token passes through."""
        category = effective_category(outer, self.category)
        written = self.causal and self.role == "encoder"  # a class of encoders that was made a decoder
        role = "decoder" if written else self.role
        times: dict[int, int] = defaultdict(int)
        for run in self.runs:
            times[id(run.layer)] += int(run.repeat) * run.passes
        for names, layer, _ in self.kinds():
            for w in layer.ops(f"{prefix}{', '.join(names)}.", category):
                yield w._replace(copies=w.copies * times[id(layer)], per=per_in_stack(w.per, role))


def stacks(component: Component) -> tuple[Stack, ...]:
    """The stacks of layers in a component, in order; within a stack nothing is looked for."""
    if isinstance(component, Block):
        return component.cached("stacks", lambda: chain.from_iterable(map(stacks, component.items.values())))
    return (component,) if isinstance(component, Stack) else ()


TOWER_ROLES = ("vision", "audio")  # of stacks that run for images and sounds, not for tokens


def per_in_stack(per: Per, role: str) -> Per:
    """What a layer's term is done for in a stack of this role."""
    if role == "encoder":
        return per.in_encoder or per
    return IN_TOWERS if role in TOWER_ROLES else per


class LayerPattern(NamedTuple):
    """Kinds of layers, and the number of the one that stands in each place."""

    kinds: Sequence[Component | Run]
    order: tuple[int, ...]


Layers = Run | LayerPattern | Iterable[Component | Run]  # what a recipe may hand to a stack


def block(category: Category | None = None, /, **items: Component | None) -> Block:
    """A block of the parts that are present: the keyword order is the order in which data flows."""
    return Block(category=category, items=without_none(items))


def stack(role: str, layers: Layers, *, causal: bool | None = None) -> Stack:
    """Run-length encode layers given as a run, by a pattern, one by one, or as a mixture; empty runs vanish.

    A stack is causal if its role is that of a decoder, where it does not say otherwise.
    """
    runs, repeated = run_length_encoded(layers)
    made = Stack(role=role, runs=runs, causal=role == "decoder" if causal is None else causal)
    if repeated:
        made.cached("distinct_runs", lambda: repeated)
    return made


def run_length_encoded(layers: Layers) -> tuple[tuple[Run, ...], Sequence[tuple[Run, int]]]:
    """The layers as runs that are not empty, equal layers of one object, and neighbours of the same layer made one.

    With them each run once and how many there are of it, where that is known without looking at all of them.
    """
    if isinstance(layers, Run):
        return (layers,) if layers.repeat else (), ()
    kinds, order = layers if isinstance(layers, LayerPattern) else layer_pattern(layers)
    alike = [kind if isinstance(kind, Run) else Run(1, kind) for kind in kinds]
    rows, places, times = runs_of_numbers(order)
    made = [Run(alike[number].repeat * many, *alike[number][1:]) for number, many in rows]
    runs = map(made.__getitem__, places)
    if all(run.repeat for run in alike) and not any(starmap(eq, combinations([run.layer for run in alike], 2))):
        return tuple(runs), tuple(zip(made, times, strict=True))
    return merged_runs(runs), ()


def layer_pattern(layers: Iterable[Component | Run]) -> LayerPattern:
    """Layers that are given one by one. They are told apart by identity: of a hundred of two kinds two are compared."""
    given = list(layers)
    kinds = dict(zip(map(id, given), given, strict=True))
    numbers = dict(zip(kinds, range(len(kinds)), strict=True))
    return LayerPattern(tuple(kinds.values()), tuple(map(numbers.__getitem__, map(id, given))))


@lru_cache(maxsize=256)
def runs_of_numbers(order: tuple[int, ...]) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Rows of equal numbers: each (number, how often) once, which of these comes when, and how often each does.

    Remembered: models of a sweep alternate in the same ways.
    """
    rows = [(number, len(list(equal))) for number, equal in groupby(order)]
    times = Counter(rows)
    places = {row: place for place, row in enumerate(times)}
    return list(times), [places[row] for row in rows], list(times.values())


def merged_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The runs that are not empty, with equal layers of one object, and neighbours of the same layer made one."""
    found: list[Run] = []
    layers: list[Component] = []
    for run in runs:
        layer = next((one for one in layers if one == run.layer), None)
        if layer is None:
            layers.append(layer := run.layer)
        last = found[-1] if found else None
        if last is not None and last.layer is layer and last[2:] == run[2:]:
            found[-1] = last._replace(repeat=last.repeat + run.repeat)
        elif run.repeat:
            found.append(run if layer is run.layer else run._replace(layer=layer))
    return tuple(found)


def main_stack(stacks: Sequence[Stack]) -> Stack:
    """The stack that a pipeline divides: what generates, and of several the deepest."""
    return max(stacks, key=lambda stack: (stack.causal, num_layers(stack)))


def num_layers(stack: Stack) -> int:
    """Layers of a stack."""
    return sum(int(run.repeat) for run in stack.runs)
