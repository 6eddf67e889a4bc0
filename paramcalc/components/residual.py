"""Residual connections with weights: several streams instead of one, mixed before and after each part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component
from paramcalc.tree.leaves import Linear, Norm, Param
from paramcalc.tree.ops import FlopTerm
from paramcalc.tree.weights import Category


class HyperConnection(Component):
    """Mixes n residual streams of width d into a layer's input and its output back into them.

    Hyper-connections (2409.19606), manifold-constrained (2512.24880). Shapes: mix (m, n d), base (m), one scale for
    each kind of mixture; m counts the weights made for each token (to read, to write, and n x n to mix the streams).
    Widens what a layer hands on to n d channels. DeepseekV4HyperConnection, HYV4HyperConnection.
    """

    category: Category | None = "other"
    width: Size
    streams: Size
    mixtures: Size
    scales: Size

    def parts(self) -> Mapping[str, Component]:
        return {
            "mix": Param(shape=(self.mixtures, self.streams * self.width), per="token"),
            "base": Param(shape=(self.mixtures,)),
            "scale": Param(shape=(self.scales,)),
        }

    def own_ops(self) -> Iterator[FlopTerm]:
        """The streams by the n x n weights made for the token, where there are any; the rest is elementwise."""
        if self.mixtures > 2 * self.streams:
            yield FlopTerm("streams", 2 * self.streams * self.streams * self.width)


class GatedResidual(Component):
    """Mixes n residual streams into a layer's input by a low-rank gate, and says how much each takes of its output.

    Shapes: norm (n d), down (r, n d), up (n d, r), inject (n, n d), which the last one before the head lacks.
    Qwen4ExpTextGatedResidual.
    """

    category: Category | None = "other"
    width: Size
    streams: Size
    rank: Size
    injects: bool = True

    def parts(self) -> Mapping[str, Component]:
        wide = self.streams * self.width
        mix: dict[str, Component] = {
            "norm": Norm(width=wide),
            "down_proj": Linear(d_in=wide, d_out=self.rank),
            "up_proj": Linear(d_in=self.rank, d_out=wide),
        }
        return mix | ({"inject": Linear(d_in=wide, d_out=self.streams)} if self.injects else {})

    own_ops = Component.no_own_ops
