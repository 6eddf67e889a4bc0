"""The component tree: immutable parts of a model with their shapes. No family names, no config keys.

A `Component` has named parts, in data-flow order, and tensors of its own. Only `Weight` is ever counted. Leaves
(`leaves.py`) hold tensors; attention, feed-forward networks and recurrent mixers are in `components/`, with a README
on the facts that a component states; `Block` and `Stack` (`containers.py`) compose them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from paramcalc.base.symbolic import Size
from paramcalc.base.value import Frozen
from paramcalc.tree.ops import FlopTerm
from paramcalc.tree.state import CacheEntry
from paramcalc.tree.steps import SAME_SHAPE, Step, per_token
from paramcalc.tree.weights import Category, Tally, Tie, Weight, WeightRole, effective_category


class Part(NamedTuple):
    """A named child in the tree: how many copies of it there are, and how many of them one token uses."""

    name: str
    component: Component
    copies: int = 1
    active: int = 1
    experts: int = 1


class Component(Frozen):
    """A part of a model. Subclasses state facts (`parts`, `own_*`, `dimensions`); all else is folded from them."""

    category: Category | None = None

    def parts(self) -> Mapping[str, Component]:
        """Named children in data-flow order."""
        return {}

    def children(self) -> Iterator[Part]:
        """The children with their multiplicity; only containers of repeated parts override this."""
        parts = self.parts()
        return map(Part, parts, parts.values())

    def distinct_parts(self) -> Iterator[Part]:
        """The children with equal ones grouped, which the folds visit; only stacks override this."""
        return self.children()

    def own_weights(self) -> Iterator[Weight]:
        """The tensors this component holds itself, named relative to it."""
        return iter(())

    def own_ties(self) -> Iterator[Tie]:
        """The matrices that it shares with another component, their owner, named relative to itself."""
        return iter(())

    def label(self) -> str:
        """Its name in a layer pattern (`attention`, `ffn`); empty for parts that a pattern leaves out."""
        return ""

    def weights(self, prefix: str = "", outer: Category | None = None) -> Iterator[Weight]:
        """Every tensor below this component, with full paths, categories and multiplied copies."""
        for name, shape, inner, *more in self.cached("weights", self._weights):
            yield Weight._make((prefix + name, shape, effective_category(outer, inner) or "other", *more))

    def _weights(self) -> Iterator[Weight]:
        for w in self.own_weights():
            yield w._replace(category=self.category or "other")
        for name, component, copies, active, experts in self.distinct_parts():
            for w in component.weights(f"{name}.", self.category):
                yield (
                    w
                    if copies == 1 == active
                    else w._replace(copies=w.copies * copies, active=w.active * active, experts=w.experts * experts)
                )

    def totals(self, outer: Category | None = None) -> Iterator[Tally]:
        """The weights added up for each category and role, without names; sweeps use these."""
        found = self.cached("totals", self._totals)
        if outer is None:
            return iter(found)
        return (
            Tally(effective_category(outer, inner) or "other", role, total, active)
            for inner, role, total, active in found
        )

    def _totals(self) -> Iterator[Tally]:
        sums: dict[tuple[Category, WeightRole], list[int]] = {}
        for w in self.own_weights():
            elements, share = w.elements, sums.setdefault((self.category or "other", w.role), [0, 0])
            share[0] += elements * int(w.copies)
            share[1] += elements * int(w.active)
        for _, component, copies, used, _ in self.distinct_parts():
            for category, role, total, active in component.totals(self.category):
                share = sums.setdefault((category, role), [0, 0])
                share[0] += total * int(copies)
                share[1] += active * int(used)
        return (Tally(category, role, total, active) for (category, role), (total, active) in sums.items())

    def ties(self, prefix: str = "", outer: Category | None = None) -> Iterator[Tie]:
        """Every tie below this component, with full paths and categories."""
        for name, owner, category in self.cached("ties", self._folded_ties):
            yield Tie((prefix + name).removesuffix("."), owner, effective_category(outer, category) or "other")

    def _folded_ties(self) -> Iterator[Tie]:
        for tie in self.own_ties():
            yield tie._replace(category=self.category or "other")
        for part in self.children():
            yield from part.component.ties(f"{part.name}.", self.category)

    def dimensions(self) -> Mapping[str, int]:
        """Its main sizes: d_model, and heads, kv_heads, head_dim, d_ff, experts or experts_per_token."""
        return {}

    def own_state(self) -> Iterator[CacheEntry]:
        """The cache entries and states that it keeps itself between tokens, for each sequence."""
        return iter(())

    def state(self) -> Iterator[CacheEntry]:
        """The cache entries and states of it and all its parts, in a layer that processes one token after the other."""
        yield from self.own_state()
        for part in self.children():
            for entry in part.component.state():
                yield entry._replace(copies=entry.copies * part.copies)

    def executed(self) -> Component:
        """The component that runs: itself, or the part whose weights it uses."""
        return self

    def cache(self) -> Iterator[CacheEntry]:
        """The cache entries of the causal stacks in this component, with the copies of their layers.

        Other parts (poolers, projectors, towers) process all of their input at once and cache nothing.
        """
        for part in self.children():
            yield from part.component.cache()

    def duplicated_weights(self, prefix: str = "") -> Iterator[Weight]:
        """Matrices that the checkpoint holds a second time."""
        for part in self.children():
            yield from part.component.duplicated_weights(f"{prefix}{part.name}.")

    def own_ops(self) -> Iterator[FlopTerm]:
        """The products of this component itself, named relative to it; `no_own_ops` for none."""
        raise NotImplementedError(f"{type(self).__name__} states no operations")

    def no_own_ops(self) -> Iterator[FlopTerm]:
        """Implementation of `own_ops` for components without products of their own."""
        return iter(())

    def ops(self, prefix: str = "", outer: Category | None = None) -> Iterator[FlopTerm]:
        """All products in this component, with full paths, categories, and how often one token runs them."""
        for name, flops, term, per, inner, *more in self.cached("ops", self._ops):
            path, category = (prefix + name).removesuffix("."), effective_category(outer, inner) or "other"
            yield FlopTerm._make((path, flops, term, per, category, *more))

    def _ops(self) -> Iterator[FlopTerm]:
        for w in self.own_ops():
            yield w._replace(category=self.category or "other")
        for part in self.children():
            for w in part.component.ops(f"{part.name}.", self.category):
                yield w if part.active == 1 else w._replace(copies=w.copies * int(part.active))

    def inputs(self) -> Size | None:
        """Input channels of a matrix; None for other components."""
        return None

    def steps(self) -> Iterator[Step]:
        """Its parts in data-flow order with their output shapes; its own products come before the last matrix."""
        parts, own = list(self.children()), [work.name for work in self.own_ops()]
        last, shape = len(parts), SAME_SHAPE
        for i, part in enumerate(parts):
            if (width := part.component.inputs()) is not None:
                last, shape = i, per_token(width)
        while 0 < last < len(parts) and parts[last - 1].component.category == "norm":
            last -= 1  # a norm of the products' output
        for name, component, *_ in parts[:last]:
            yield from prefixed_steps(name, component.steps())
        yield from (Step(work, shape) for work in own)
        for name, component, *_ in parts[last:]:
            yield from prefixed_steps(name, component.steps())


def without_none(parts: Mapping[str, Component | None]) -> dict[str, Component]:
    """The parts that are not None, in the same order."""
    if all(parts.values()):  # a component is true, and None is not
        return dict(parts)  # type: ignore[arg-type]  # none is None
    return {name: part for name, part in parts.items() if part is not None}


def prefixed_steps(name: str, steps: Iterable[Step]) -> Iterator[Step]:
    """The steps of a part, prefixed with its name."""
    for step in steps:
        yield step._replace(name=f"{name}.{step.name}".removesuffix("."))
