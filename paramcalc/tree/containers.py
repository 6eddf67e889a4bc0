"""Containers: blocks of named parts, stacks of layers, and multi-token-prediction modules."""

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

    `inexact`: why its FLOPs differ from those of the reference, empty where they do not. `residual`, in a layer: where
    the residual connection is added: after each mixer ("each", and after its post-norm, if the next mixer has a norm
    before it too), after the norm behind each mixer ("normed"), or once for all mixers ("together").
    Shapes: those of its parts.
    Source: torch.nn.ModuleDict.
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
    """Multi-token-prediction modules: in the checkpoint, but not built by the reference class, and reported separately.

    Its tied parts are the copies of embedding and head that the checkpoint holds a second time.
    Shapes: those of its parts, `count` times.
    Source: DeepSeek-V3 (2412.19437), section 2.2.
    """

    count: Size

    @property
    def copied(self) -> int:
        """Elements of the matrices that the checkpoint holds a second time."""
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
            yield weight._replace(role="mtp")  # including buffers, which are in the checkpoint too

    def totals(self, outer: Category | None = None) -> Iterator[Tally]:
        for tally in super().totals(outer):
            yield tally._replace(role="mtp")

    def ties(self, prefix: str = "", outer: Category | None = None) -> Iterator[Tie]:  # noqa: ARG002  (as in Component)
        return iter(())  # a module that is not built has no ties

    def cache(self) -> Iterator[CacheEntry]:
        return iter(())  # nor does it run

    def ops(self, prefix: str = "", outer: Category | None = None) -> Iterator[FlopTerm]:  # noqa: ARG002  (as in Component)
        return iter(())


class Run(NamedTuple):
    """`repeat` equal layers in a row, each of which runs `passes` times for each token (1 unless layers are shared).

    Every pass has a cache of its own, unless `cached_passes` says how many do.
    """

    repeat: int
    layer: Component
    passes: int = 1
    cached_passes: int | None = None

    @property
    def caches(self) -> int:
        """Number of passes with a cache of their own."""
        return self.passes if self.cached_passes is None else self.cached_passes


class LayerKind(NamedTuple):
    """Equal layers of a stack, in any position."""

    layer: Component
    numbers: tuple[range, ...]  # numbers of the layers, a range for each run
    copies: Size  # layers of this kind
    passes: int  # passes of a token through layers of this kind
    cached: int  # passes with a cache of their own

    @property
    def names(self) -> list[str]:
        """The numbers of its first runs as text: `0-31`, or `0`, `2`, `4`, `6`."""
        return [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in self.numbers[:NAMED_RUNS]]


NAMED_RUNS = 4  # runs of one kind whose numbers appear in a name


class Stack(Component):
    """Layers in order, equal neighbours run-length encoded: 10,000 layers cost as much to count as one.

    `role` is the stack's name in reports (decoder, encoder). The layers of a `causal` stack process one token after
    the other and have caches; an encoder processes all of its input at once and caches nothing.
    Shapes: those of its layers.
    Source: torch.nn.ModuleList.
    """

    role: str
    runs: tuple[Run, ...]
    first: int = 0  # number of its first layer; not 0 in a part of a stack (pipeline parallelism)
    causal: bool = False

    def children(self) -> Iterator[Part]:
        start = self.first
        for run in self.runs:
            last = start + run.repeat - 1
            yield Part(str(start) if run.repeat == 1 else f"{start}-{last}", run.layer, run.repeat, run.repeat)
            start = last + 1

    def distinct_runs(self) -> Sequence[tuple[Run, int]]:
        """Each distinct run and its number of occurrences: few, even in deep stacks."""
        return self.cached("distinct_runs", self._distinct_runs)

    def _distinct_runs(self) -> Iterator[tuple[Run, int]]:
        runs = dict(zip(map(id, self.runs), self.runs, strict=True))
        return ((runs[name], times) for name, times in Counter(map(id, self.runs)).items())

    def single_layers(self) -> Iterator[tuple[Run, int]]:
        """One layer as a run of its own for each kind of layer and way of passing through it, and how many there are.

        As few as `distinct_runs`, and without their numbers: what a sweep multiplies.
        """
        if len(runs := self.distinct_runs()) == 1:
            ((run, times),) = runs
            return iter([(run._replace(repeat=1), int(run.repeat) * times)])
        copies: dict[tuple[int, int, int | None], int] = {}
        layers: dict[tuple[int, int, int | None], Component] = {}
        for (repeat, layer, passes, cached), times in runs:
            kind = id(layer), passes, cached
            copies[kind] = copies.get(kind, 0) + int(repeat) * times
            layers[kind] = layer
        return ((Run(1, layer, *kind[1:]), copies[kind]) for kind, layer in layers.items())

    def layer_kinds(self) -> Sequence[LayerKind]:
        """Each distinct layer once, in the order of first appearance."""
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
        """The index of the layer's kind for each run."""
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
        """The cache entries of each layer, for each pass that has a cache."""
        if not self.causal:
            return
        for run in self.runs:
            for entry in run.layer.cached("state", run.layer.state):
                yield entry._replace(copies=entry.copies * int(run.repeat) * run.caches)

    own_ops = Component.no_own_ops

    def ops(self, prefix: str = "", outer: Category | None = None) -> Iterator[FlopTerm]:
        """The products of each distinct layer once, under the numbers of its runs, with the passes of a token."""
        category = effective_category(outer, self.category)
        generates = self.causal and self.role == "encoder"  # an encoder class that is configured as a decoder
        role = "decoder" if generates else self.role
        for kind in self.layer_kinds():
            for w in kind.layer.ops(f"{prefix}{', '.join(kind.names)}.", category):
                yield w._replace(copies=w.copies * kind.passes, per=per_in_stack(w.per, role))


def stacks(component: Component) -> tuple[Stack, ...]:
    """The stacks of layers in a component, in order; stacks within stacks are not searched."""
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
    """Kinds of layers, and the index of the kind at each position."""

    kinds: Sequence[Component | Run]
    order: tuple[int, ...]


Layers = Run | LayerPattern | Iterable[Component | Run]  # accepted by `stack`


def block(category: Category | None = None, /, **items: Component | None) -> Block:
    """A block of the parts that are not None; the order of keywords is the data flow."""
    return Block(category=category, items=without_none(items))


def stack(role: str, layers: Layers, *, causal: bool | None = None) -> Stack:
    """A stack of layers given as a run, a pattern, or an iterable of layers and runs; empty runs are dropped.

    Stacks with the role "decoder" are causal unless stated.
    """
    runs, repeated = run_length_encoded(layers)
    made = Stack(role=role, runs=runs, causal=role == "decoder" if causal is None else causal)
    if repeated:
        made.cached("distinct_runs", lambda: repeated)
    return made


def run_length_encoded(layers: Layers) -> tuple[tuple[Run, ...], Sequence[tuple[Run, int]]]:
    """The layers as non-empty runs, with equal layers as one object and runs of the same layer merged.

    Also returns each distinct run and its number of occurrences, where that is known without a pass over all runs.
    """
    if isinstance(layers, Run):
        return ((layers,), ((layers, 1),)) if layers.repeat else ((), ())
    kinds, order = layers if isinstance(layers, LayerPattern) else layer_pattern(layers)
    alike = [kind if isinstance(kind, Run) else Run(1, kind) for kind in kinds]
    rows, places, times = runs_of_numbers(order)
    made = [Run(alike[number].repeat * many, *alike[number][1:]) for number, many in rows]
    runs = map(made.__getitem__, places)
    if all(run.repeat for run in alike) and not any(starmap(eq, combinations([run.layer for run in alike], 2))):
        return tuple(runs), tuple(zip(made, times, strict=True))
    return merged_runs(runs), ()


def layer_pattern(layers: Iterable[Component | Run]) -> LayerPattern:
    """The pattern of layers given one by one, which are distinguished by identity before they are compared."""
    given = list(layers)
    kinds = dict(zip(map(id, given), given, strict=True))
    numbers = dict(zip(kinds, range(len(kinds)), strict=True))
    return LayerPattern(tuple(kinds.values()), tuple(map(numbers.__getitem__, map(id, given))))


@lru_cache(maxsize=256)
def runs_of_numbers(order: tuple[int, ...]) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Runs of equal numbers: distinct (number, length) pairs, the pair at each position, and occurrences of each pair.

    Cached, because the models of a sweep share their patterns.
    """
    rows = [(number, len(list(equal))) for number, equal in groupby(order)]
    times = Counter(rows)
    places = {row: place for place, row in enumerate(times)}
    return list(times), [places[row] for row in rows], list(times.values())


def merged_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The non-empty runs, with equal layers as one object and neighbouring runs of the same layer merged."""
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
    """The stack that pipeline parallelism divides: the deepest causal one, or the deepest."""
    return max(stacks, key=lambda stack: (stack.causal, num_layers(stack)))


def num_layers(stack: Stack) -> int:
    """The number of layers of a stack."""
    return sum(int(run.repeat) for run in stack.runs)
