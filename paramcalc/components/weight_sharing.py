"""Weight sharing between layers: a part of one layer that later layers run again, and adapters of shared matrices."""

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
    """A part that runs again with the weights of `owner`, a path: its operations and its cache are its own.

    Shapes: no tensors of its own; ties to those of `part`.
    Source: Zamba's shared transformer block (2405.16712).
    """

    part: Component
    owner: str

    def ties(self, prefix: str = "", outer: Category | None = None) -> Iterator[Tie]:
        for weight in self.part.weights("", effective_category(outer, self.category)):
            path = weight.name.removesuffix(".weight")
            if path.endswith(".bias") or (weight.category == "experts" and path.endswith(".up_proj")):
                continue  # tied with its matrix; experts hold gate and up in one matrix
            yield Tie(f"{prefix}{path}", f"{self.owner}.{path}", weight.category)

    def executed(self) -> Component:
        return self.part

    def state(self) -> Iterator[CacheEntry]:
        return self.part.state()

    def own_ops(self) -> Iterator[FlopTerm]:
        """The operations of the part."""
        return self.part.ops("", self.category)

    def steps(self) -> Iterator[Step]:
        return self.part.steps()

    def label(self) -> str:
        return self.part.label()


class Adapters(Component):
    """Low-rank adapters of a shared matrix, one for each pass through the shared block; a token uses all of them.

    Shapes: down (r, d_in) and up (d_out, r), `count` times.
    Source: Zamba2 (2411.15242); LoRA (2106.09685), section 4.1.
    """

    d_in: Size
    d_out: Size
    rank: Size
    count: Size

    def parts(self) -> Mapping[str, Component]:
        down, up = Linear(d_in=self.d_in, d_out=self.rank), Linear(d_in=self.rank, d_out=self.d_out)
        return {str(i): block(down=down, up=up) for i in range(self.count)}

    def own_ops(self) -> Iterator[FlopTerm]:
        """One adapter for each pass."""
        yield FlopTerm("", 2 * self.rank * (self.d_in + self.d_out))

    def ops(self, prefix: str = "", outer: Category | None = None) -> Iterator[FlopTerm]:
        for w in self.own_ops():
            yield w._replace(
                name=prefix.removesuffix("."), category=effective_category(outer, self.category) or "other"
            )

    def steps(self) -> Iterator[Step]:
        yield Step("", SAME_SHAPE, "added to the matrix before")
