"""RWKV-4's time mixing and channel mixing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component
from paramcalc.tree.leaves import Linear, Param
from paramcalc.tree.state import FLOAT32, CacheEntry, fixed_state
from paramcalc.tree.weights import Category, ShardSpec


class RwkvTimeMix(Component):
    """RWKV-4's time mixing: a decaying average of past values for each channel, weighted by exponentials of the keys.

    Key, value and receptance read a mixture of this token and the last. The state is three vectors of d_inner and the
    last token's input of d.
    Shapes: mixtures three times (d), key, value and receptance (d_inner, d), decay and bonus (d_inner), out
    (d, d_inner).
    Source: RWKV (2305.13048), section 3.1; RwkvSelfAttention.
    """

    category: Category | None = "recurrent"
    width: Size
    inner: Size

    def parts(self) -> Mapping[str, Component]:
        column = ShardSpec("column", self.inner)
        mix, projection = Param(shape=(self.width,)), Linear(d_in=self.width, d_out=self.inner, split=column)
        per_channel = Param(shape=(self.inner,), split=column)
        return {
            "mix_key": mix,
            "mix_value": mix,
            "mix_receptance": mix,
            "k_proj": projection,
            "v_proj": projection,
            "time_decay": per_channel,
            "time_first": per_channel,
            "receptance_proj": projection,
            "o_proj": Linear(d_in=self.inner, d_out=self.width, split=ShardSpec("row", self.inner)),
        }

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width}

    own_ops = Component.no_own_ops  # the average is elementwise

    def own_state(self) -> Iterator[CacheEntry]:
        """Numerator, denominator and maximum of the average for each channel, and the last token's input."""
        yield fixed_state(3 * self.inner, dtype=FLOAT32)
        yield fixed_state(self.width)

    def label(self) -> str:
        return "rwkv"


class RwkvChannelMix(Component):
    """RWKV-4's channel mixing: a feed-forward network with squared ReLU, gated by a receptance.

    It reads a mixture of this token and the last, and keeps the last token's input of d.
    Shapes: mixtures twice (d), up (d_ff, d), down (d, d_ff), receptance (d, d).
    Source: RWKV (2305.13048), section 3.1; RwkvFeedForward.
    """

    category: Category | None = "ffn"
    width: Size
    hidden: Size

    def parts(self) -> Mapping[str, Component]:
        mix = Param(shape=(self.width,))
        return {
            "mix_key": mix,
            "mix_receptance": mix,
            "up_proj": Linear(d_in=self.width, d_out=self.hidden, split=ShardSpec("column", self.hidden)),
            "down_proj": Linear(d_in=self.hidden, d_out=self.width, split=ShardSpec("row", self.hidden)),
            "receptance_proj": Linear(d_in=self.width, d_out=self.width),
        }

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width, "d_ff": self.hidden}

    own_ops = Component.no_own_ops

    def own_state(self) -> Iterator[CacheEntry]:
        """The last token's input."""
        yield fixed_state(self.width)

    def label(self) -> str:
        return "ffn"
