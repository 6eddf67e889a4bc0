"""Linear attention: heads whose keys and values are summed up in a state of fixed size instead of a growing cache.

The state is one matrix (d_k, d_v) for each head, and the last inputs of the convolution where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component
from paramcalc.tree.leaves import Conv1d, Linear, Norm, Param
from paramcalc.tree.ops import PER_BLOCK_PAIR, PER_CHUNK, PER_FULL_CHUNK, PER_REST_TOKEN, PER_STEP, FlopTerm
from paramcalc.tree.state import FLOAT32, CacheEntry, conv_state, fixed_state
from paramcalc.tree.weights import Category, by_heads

# Tokens that the references of the delta rules and of xLSTM process at a time; the last chunk is padded.
CHUNK = 64
# Block of MiniMax-01, whose checkpoints do not hold the decays.
UNSAVED_BLOCK = 256


def delta_rule(heads: Size, key_dim: Size, value_dim: Size) -> Iterator[FlopTerm]:
    """The products of the chunked delta rule.

    Within a chunk of C tokens three C x C products: keys with keys, queries with keys, weights with values. For each
    token three products with the state: prediction, read, write. One token at a time only these three remain
    (elementwise in the reference). Gated Delta Networks (2412.06464), section 3.3; torch_chunk_gated_delta_rule, whose
    two triangular solves PyTorch's FLOP counter does not count.
    """
    state = 3 * key_dim * value_dim
    within = CHUNK * CHUNK * (2 * key_dim + value_dim)
    yield FlopTerm("delta_rule", 2 * heads * (within + CHUNK * state), "recurrence", PER_CHUNK, size=CHUNK)
    yield FlopTerm("delta_rule_step", 2 * heads * state, "recurrence", PER_STEP)


class GatedDeltaNet(Component):
    """The gated delta rule: a state that decays by a gate and replaces the value that it holds for a key.

    Groups of h_v / h_k value heads share a key head. Fused projections are counted separately. The state is
    (h_v, d_k, d_v).
    Shapes: q and k (h_k d_k, d), v and gate (h_v d_v, d), decay a and step b (h_v, d), one depthwise convolution over
    q, k and v (2 h_k d_k + h_v d_v, 1, w), A and dt bias (h_v), norm (d_v), out (d, h_v d_v).
    Source: Gated Delta Networks (2412.06464), section 3; Qwen3NextGatedDeltaNet, OlmoHybridGatedDeltaNet.
    """

    category: Category | None = "recurrent"
    width: Size
    key_heads: Size
    value_heads: Size
    key_dim: Size
    value_dim: Size
    kernel: Size
    decay_dtype: str | None = None  # of A in checkpoints, where it differs from the other tensors'

    def parts(self) -> Mapping[str, Component]:
        keys, values = self.key_heads * self.key_dim, self.value_heads * self.value_dim
        by_key, by_value = by_heads("column", self.key_heads), by_heads("column", self.value_heads)
        both = by_heads("column", self.value_heads, fused=2 * keys, groups=self.key_heads)
        per_head = Linear(d_in=self.width, d_out=self.value_heads, split=by_value)
        return {
            "q_proj": Linear(d_in=self.width, d_out=keys, split=by_key),
            "k_proj": Linear(d_in=self.width, d_out=keys, split=by_key),
            "v_proj": Linear(d_in=self.width, d_out=values, split=by_value),
            "conv1d": Conv1d(
                channels=2 * keys + values, kernel=self.kernel, bias=False, causal_padding=self.kernel - 1, split=both
            ),
            "a_proj": per_head,
            "b_proj": per_head,
            "A_log": Param(shape=(self.value_heads,), split=by_value, dtype=self.decay_dtype),
            "dt_bias": Param(shape=(self.value_heads,), split=by_value),
            "gate_proj": Linear(d_in=self.width, d_out=values, split=by_value),
            "norm": Norm(width=self.value_dim),
            "o_proj": Linear(d_in=values, d_out=self.width, split=by_heads("row", self.value_heads)),
        }

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width}

    def own_ops(self) -> Iterator[FlopTerm]:
        """The delta rule for each value head."""
        yield from delta_rule(self.value_heads, self.key_dim, self.value_dim)

    def own_state(self) -> Iterator[CacheEntry]:
        """A matrix for each value head, and the last inputs of the convolution."""
        yield fixed_state(self.value_heads * self.key_dim * self.value_dim, shares=self.value_heads, dtype=FLOAT32)
        yield conv_state(2 * self.key_heads * self.key_dim, self.kernel, shares=self.key_heads)
        yield conv_state(self.value_heads * self.value_dim, self.kernel, shares=self.value_heads)

    def label(self) -> str:
        return "gated deltanet"


class KimiDeltaAttention(Component):
    """The gated delta rule with a forget gate for each channel instead of each head.

    The state is (h, d_h, d_h).
    Shapes: q, k and v (h d_h, d), one depthwise convolution over them (3 h d_h, 1, w), forget and output gate
    (h d_h, d), or (r, d) and (h d_h, r) with a bottleneck (`gate_rank`), step b (h, d), A (h), dt bias (h d_h), norm
    (d_h), out (d, h d_h).
    Source: Kimi Linear (2510.26692), section 3; KimiLinearDeltaAttention, BailingHybridDeltaAttention.
    """

    category: Category | None = "recurrent"
    width: Size
    heads: Size
    head_dim: Size
    kernel: Size
    gate_rank: Size | None = None  # None: both gates are projected directly (Ling)

    def parts(self) -> Mapping[str, Component]:
        d, inner, column = self.width, self.heads * self.head_dim, by_heads("column", self.heads)
        projection = Linear(d_in=d, d_out=inner, split=column)
        return {
            "q_proj": projection,
            "k_proj": projection,
            "v_proj": projection,
            "conv1d": Conv1d(
                channels=3 * inner, kernel=self.kernel, bias=False, causal_padding=self.kernel - 1, split=column
            ),
            **self.gate("forget", inner),
            "A_log": Param(shape=(self.heads,), split=column),
            "dt_bias": Param(shape=(inner,), split=column),
            "b_proj": Linear(d_in=d, d_out=self.heads, split=column),
            **self.gate("output", inner),
            "norm": Norm(width=self.head_dim),
            "o_proj": Linear(d_in=inner, d_out=d, split=by_heads("row", self.heads)),
        }

    def gate(self, name: str, inner: int) -> dict[str, Component]:
        """A gate of one matrix, or of two with a bottleneck."""
        column = by_heads("column", self.heads)
        if self.gate_rank is None:
            return {f"{name}_proj": Linear(d_in=self.width, d_out=inner, split=column)}
        return {
            f"{name}_a_proj": Linear(d_in=self.width, d_out=self.gate_rank),
            f"{name}_b_proj": Linear(d_in=self.gate_rank, d_out=inner, split=column),
        }

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width}

    def own_ops(self) -> Iterator[FlopTerm]:
        """The delta rule for each head."""
        yield from delta_rule(self.heads, self.head_dim, self.head_dim)

    def own_state(self) -> Iterator[CacheEntry]:
        """A matrix for each head, and the last inputs of the convolution."""
        inner = self.heads * self.head_dim
        yield fixed_state(inner * self.head_dim, shares=self.heads, dtype=FLOAT32)
        yield conv_state(3 * inner, self.kernel, shares=self.heads)

    def label(self) -> str:
        return "kimi delta attention"


class LightningAttention(Component):
    """Linear attention with a fixed decay for each head, computed in blocks of B tokens.

    The state is (h, d_h, d_h). The decays within a block are saved as buffers, unless `block_size` is None
    (MiniMaxText01LightningAttention).
    Shapes: q, k, v and gate (h d_h, d), norm (h d_h), out (d, h d_h), decays (h), twice (h, B) and (h, B, B).
    Source: Lightning Attention-2 (2401.04658) as in MiniMax-01 (2501.08313), section 2.2; MiniMaxLightningAttention.
    """

    category: Category | None = "recurrent"
    width: Size
    heads: Size
    head_dim: Size
    block_size: Size | None

    def parts(self) -> Mapping[str, Component]:
        h, b, inner = self.heads, self.block_size, self.heads * self.head_dim
        column = by_heads("column", h)
        projection = Linear(d_in=self.width, d_out=inner, split=column)
        decays: dict[str, tuple[Size, ...]] = {}
        if b is not None:
            decays = {"slope_rate": (h,), "query_decay": (h, b), "key_decay": (h, b), "diagonal_decay": (h, b, b)}
        return {
            "q_proj": projection,
            "k_proj": projection,
            "v_proj": projection,
            **{name: Param(shape=shape, buffer=True) for name, shape in decays.items()},
            "norm": Norm(width=inner, split=column),
            "gate_proj": projection,
            "o_proj": Linear(d_in=inner, d_out=self.width, split=by_heads("row", h)),
        }

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width}

    def own_ops(self) -> Iterator[FlopTerm]:
        """Scores and mixing within a block, and for each token one product that writes and one that reads the state."""
        h, d_h = self.heads, self.head_dim
        yield FlopTerm("scores", 4 * h * d_h, "recurrence", PER_BLOCK_PAIR, size=self.block_size or UNSAVED_BLOCK)
        yield FlopTerm("state", 4 * h * d_h * d_h, "recurrence")

    def own_state(self) -> Iterator[CacheEntry]:
        """A matrix for each head."""
        yield fixed_state(self.heads * self.head_dim * self.head_dim, shares=self.heads)

    def label(self) -> str:
        return "lightning attention"


class Mlstm(Component):
    """The matrix memory of xLSTM: an exponential input gate and a forget gate for each head.

    The widths d_qk and d_v are those of all heads together. The state is (h, d_qk / h, d_v / h), with a normaliser
    (h, d_qk / h) and a maximum (h).
    Shapes: q and k (d_qk, d), v and output gate (d_v, d), input and forget gate (h, d) with biases (h), norm (d_v),
    out (d, d_v).
    Source: xLSTM (2405.04517), section 2.3, as in xLSTM 7B (2503.13427); xLSTMLayer.
    """

    category: Category | None = "recurrent"
    width: Size
    heads: Size
    qk_width: Size
    value_width: Size
    bias: bool = False

    def parts(self) -> Mapping[str, Component]:
        column = by_heads("column", self.heads)
        queries = Linear(d_in=self.width, d_out=self.qk_width, bias=self.bias, split=column)
        values = Linear(d_in=self.width, d_out=self.value_width, bias=self.bias, split=column)
        gate = Linear(d_in=self.width, d_out=self.heads, bias=True, split=column)
        return {
            "q_proj": queries,
            "k_proj": queries,
            "v_proj": values,
            "input_gate": gate,
            "forget_gate": gate,
            "norm": Norm(width=self.value_width // self.heads * self.heads, bias=self.bias, split=column),
            "output_gate": values,
            "o_proj": Linear(
                d_in=self.value_width, d_out=self.width, bias=self.bias, split=by_heads("row", self.heads)
            ),
        }

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width}

    def own_ops(self) -> Iterator[FlopTerm]:
        """Scores and mixing within a full chunk; for each token the state is written and read, its normaliser read.

        The tokens of an incomplete chunk are processed one by one.
        """
        c, h, keys, values = CHUNK, self.heads, self.qk_width, self.value_width
        token = 2 * (2 * keys * (values // h) + keys)
        yield FlopTerm("chunks", 2 * c * c * (keys + values) + c * token, "recurrence", PER_FULL_CHUNK, size=c)
        yield FlopTerm("rest", token, "recurrence", PER_REST_TOKEN, size=c)

    def own_state(self) -> Iterator[CacheEntry]:
        """A matrix, a normaliser and a maximum for each head."""
        keys = self.qk_width // self.heads
        each = keys * (self.value_width // self.heads) + keys + 1
        yield fixed_state(self.heads * each, shares=self.heads)

    def label(self) -> str:
        return "mlstm"
