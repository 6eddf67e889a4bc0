"""Weights that are used more than once: a part of one layer that later layers run again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component
from paramcalc.tree.containers import block
from paramcalc.tree.leaves import Linear
from paramcalc.tree.ops import FlopTerm
from paramcalc.tree.state import CacheEntry
from paramcalc.tree.steps import SAME_SHAPE, Step
from paramcalc.tree.weights import Category, Tie, effective_category


class SharedReference(Component):
    """A part run once more with the weights of `owner`: nothing to count, but its work and its cache are its own.

    Zamba's shared transformer block (Glorioso et al. 2024, 2405.16712). `owner` is the path of the part that holds the
    weights.
    """

    part: Component
    owner: str

    def ties(self, prefix: str = "", outer: Category | None = None) -> Iterator[Tie]:
        for weight in self.part.weights("", effective_category(outer, self.category)):
            path = weight.name.removesuffix(".weight")
            if path.endswith(".bias") or (weight.category == "experts" and path.endswith(".up_proj")):
                continue  # goes with its matrix; experts have one matrix for gate and up
            yield Tie(f"{prefix}{path}", f"{self.owner}.{path}", weight.category)

    def executed(self) -> Component:
        return self.part

    def state(self) -> Iterator[CacheEntry]:
        return self.part.state()

    def own_ops(self) -> Iterator[FlopTerm]:
        """What the part does, though its weights are another's."""
        return self.part.ops("", self.category)

    def steps(self) -> Iterator[Step]:
        return self.part.steps()

    def label(self) -> str:
        return self.part.label()


class Adapters(Component):
    """Low-rank corrections of a shared matrix, one for each time it is used: (rank, d_in) and (d_out, rank) each.

    Zamba2 (2411.15242), after LoRA (2106.09685). Each token uses all of them, one per pass through the shared block.
    """

    d_in: Size
    d_out: Size
    rank: Size
    count: Size

    def parts(self) -> Mapping[str, Component]:
        down, up = Linear(d_in=self.d_in, d_out=self.rank), Linear(d_in=self.rank, d_out=self.d_out)
        return {str(i): block(down=down, up=up) for i in range(self.count)}

    def own_ops(self) -> Iterator[FlopTerm]:
        """One of the corrections for each pass."""
        yield FlopTerm("", 2 * self.rank * (self.d_in + self.d_out))

    def ops(self, prefix: str = "", outer: Category | None = None) -> Iterator[FlopTerm]:
        for w in self.own_ops():
            yield w._replace(
                name=prefix.removesuffix("."), category=effective_category(outer, self.category) or "other"
            )

    def steps(self) -> Iterator[Step]:
        yield Step("", SAME_SHAPE, "added to the matrix before")
