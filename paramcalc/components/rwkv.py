"""RWKV's two mixers: over time, and over channels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component
from paramcalc.tree.leaves import Linear, Param
from paramcalc.tree.state import FLOAT32, CacheEntry, fixed_state
from paramcalc.tree.weights import Category, ShardSpec


class RwkvTimeMix(Component):
    """RWKV-4's mixer: a decaying average of past values for each channel, weighted by exponentials of the keys.

    RWKV (Peng et al. 2023, 2305.13048), section 3.1; RwkvSelfAttention. Shapes: key, value and receptance (d_a, d),
    each of a mixture of this token and the last (three vectors of d), decay and bonus (d_a), out (d, d_a). The state
    is three vectors of d_a and the last token's input of d.
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
    """RWKV-4's feed-forward network: squared ReLU, gated by a receptance; it too mixes in the last token.

    RWKV (2305.13048), section 3.1; RwkvFeedForward. Shapes: up (d_ff, d), down (d, d_ff), receptance (d, d), two
    mixing vectors of d. It keeps the last token's input of d.
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
