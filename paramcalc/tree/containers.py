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
from paramcalc.tree.ops import FlopTerm, Per
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
    residual: ResidualPlacement = "each"

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

    @property
    def caches(self) -> int:
        """How many of the passes keep something of their own."""
        return self.passes if self.cached_passes is None else self.cached_passes


class LayerKind(NamedTuple):
    """Equal layers of a stack, wherever in it they are."""

    layer: Component
    numbers: tuple[range, ...]  # of the layers, a range for each run
    copies: Size  # layers of this kind
    passes: int  # how often a token passes through one of them
    cached: int  # how many of those passes keep a state of their own

    @property
    def names(self) -> list[str]:
        """The numbers of its first runs as text: `0-31`, or `0`, `2`, `4`, `6`."""
        return [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in self.numbers[:NAMED_RUNS]]


NAMED_RUNS = 4  # runs of one kind whose numbers appear in a name


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

    def layer_kinds(self) -> Sequence[LayerKind]:
        """Each distinct layer once, however the layers alternate, in the order in which they first appear."""
        return self.cached("layer_kinds", self._layer_kinds)

    def _layer_kinds(self) -> Iterator[LayerKind]:
        start, runs_of = self.first, defaultdict[int, list[tuple[Run, range]]](list)
        for run, kind in zip(self.runs, self.kind_of_run(), strict=True):
            runs_of[kind].append((run, range(start, start + int(run.repeat))))
            start += int(run.repeat)
        for alike in runs_of.values():
            yield LayerKind(
                layer=alike[0][0].layer,
                numbers=tuple(numbers for _, numbers in alike),
                copies=sum(run.repeat for run, _ in alike),
                passes=sum(len(numbers) * run.passes for run, numbers in alike),
                cached=sum(len(numbers) * run.caches for run, numbers in alike),
            )

    def kind_of_run(self) -> Sequence[int]:
        """For each run the index of its layer's kind."""
        return self.cached("kind_of_run", self._kind_of_run)

    def _kind_of_run(self) -> Iterator[int]:
        kinds: dict[int, int] = {}  # equal layers are one object: see `merged_runs`
        return (kinds.setdefault(id(run.layer), len(kinds)) for run in self.runs)

    def weights(self, prefix: str = "", outer: Category | None = None) -> Iterator[Weight]:
        """The tensors of each distinct layer once, under the number of its first run, with the copies of all."""
        category = effective_category(outer, self.category)
        for kind in self.layer_kinds():
            for w in kind.layer.weights(f"{prefix}{kind.names[0]}.", category):
                copies, active = w.copies * kind.copies, w.active * kind.copies
                yield w._replace(copies=copies, active=active, layers=w.layers or kind.numbers)

    def distinct_parts(self) -> Iterator[Part]:
        """Each distinct layer once, under the number of its first run, with the copies of all."""
        for kind in self.layer_kinds():
            yield Part(kind.names[0], kind.layer, kind.copies, kind.copies)

    def ties(self, prefix: str = "", outer: Category | None = None) -> Iterator[Tie]:
        category = effective_category(outer, self.category)
        tied = [list(kind.layer.ties("", category)) for kind in self.layer_kinds()]
        start = self.first
        for run, kind in zip(self.runs, self.kind_of_run(), strict=True) if any(tied) else ():
            for i in range(start, start + int(run.repeat)):  # each layer has ties of its own
                yield from (tie._replace(name=f"{prefix}{i}.{tie.name}") for tie in tied[kind])
            start += int(run.repeat)

    def cache(self) -> Iterator[CacheEntry]:
        """What each layer keeps, as often as a pass through it keeps something."""
        if not self.causal:
            return
        for run in self.runs:
            for entry in run.layer.cached("state", run.layer.state):
                yield entry._replace(copies=entry.copies * int(run.repeat) * run.caches)

    own_ops = Component.no_own_ops

    def ops(self, prefix: str = "", outer: Category | None = None) -> Iterator[FlopTerm]:
        """The work of each distinct layer once, under the numbers of its runs, as often as a token passes through."""
        category = effective_category(outer, self.category)
        written = self.causal and self.role == "encoder"  # a class of encoders that was made a decoder
        roles = {} if written else STACK_ROLES.get(self.role, {})
        for kind in self.layer_kinds():
            for w in kind.layer.ops(f"{prefix}{', '.join(kind.names)}.", category):
                yield w._replace(copies=w.copies * kind.passes, per=roles.get(w.per, w.per))


def stacks(component: Component) -> tuple[Stack, ...]:
    """The stacks of layers in a component, in order; within a stack nothing is looked for."""
    if isinstance(component, Block):
        return component.cached("stacks", lambda: chain.from_iterable(map(stacks, component.items.values())))
    return (component,) if isinstance(component, Stack) else ()


# What the tokens of a stack are where they are not the model's own new ones.
STACK_ROLES: Mapping[str, Mapping[Per, Per]] = {
    "encoder": {"token": "read", "pair": "read pair"},
    **{role: {"token": "tower", "pair": "tower", "cross": "tower", "chunk": "tower"} for role in ("vision", "audio")},
}


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
