"""Residual connections with weights: several residual streams, mixed before and after each part of a layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component
from paramcalc.tree.leaves import Linear, Norm, Param
from paramcalc.tree.ops import FlopTerm
from paramcalc.tree.weights import Category


class HyperConnection(Component):
    """Mixes s residual streams into a layer's input, and the layer's output back into the streams.

    Computes m weights for each token: s to read, s to write, and s x s to mix the streams. Layers pass on s d channels.
    Shapes: mix (m, s d), base (m), one scale for each of the kinds of weights (`scales`).
    Source: hyper-connections (2409.19606), manifold-constrained (2512.24880); DeepseekV4HyperConnection,
    HYV4HyperConnection.
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
        """The streams times the s x s weights of the token, where there are any; the rest is elementwise."""
        if self.mixtures > 2 * self.streams:
            yield FlopTerm("streams", 2 * self.streams * self.streams * self.width)


class GatedResidual(Component):
    """Mixes s residual streams into a layer's input by a low-rank gate, and weighs the layer's output for each stream.

    The last one, before the head, has no output weights (`injects` is False).
    Shapes: norm (s d), down (r, s d), up (s d, r), inject (s, s d).
    Source: Qwen4ExpTextGatedResidual.
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
