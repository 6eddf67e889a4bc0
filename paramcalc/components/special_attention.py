"""Attention of single families: hashed, grouped, with experts, with convolutions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcalc.base.symbolic import Size
from paramcalc.components.attention import (
    attention_products,
    attention_steps,
    kv_entries,
    uniform_head_sizes,
    window_limit,
    window_span,
)
from paramcalc.components.ffn import Experts, Router, grouped_linear
from paramcalc.tree.component import Component
from paramcalc.tree.containers import block
from paramcalc.tree.leaves import Conv1d, Linear, Param, Product
from paramcalc.tree.ops import FlopTerm
from paramcalc.tree.state import INDEX, KEY, CacheEntry, fixed_state
from paramcalc.tree.steps import Step
from paramcalc.tree.weights import Category, ShardSpec, by_heads


class HashedAttention(Component):
    """Attention within buckets of similar vectors, with one projection for queries and keys (Reformer).

    Caches the hidden states and their buckets.
    Shapes: qk and v (h d_h, d), o (d, h d_h).
    Source: Kitaev et al. 2020 (2001.04451), section 2; LSHSelfAttention.
    """

    category: Category | None = "attention"
    width: Size
    heads: Size
    head_dim: Size
    hashes: Size = 1  # rounds of hashing, each of which gives a bucket for every head

    def parts(self) -> Mapping[str, Component]:
        d, q = self.width, self.heads * self.head_dim
        return {
            "qk_proj": Linear(d_in=d, d_out=q, split=by_heads("column", self.heads)),
            "v_proj": Linear(d_in=d, d_out=q, split=by_heads("column", self.heads)),
            "o_proj": Linear(d_in=q, d_out=d, split=by_heads("row", self.heads)),
        }

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width} | uniform_head_sizes(self.heads, self.heads, self.head_dim)

    def own_ops(self) -> Iterator[FlopTerm]:
        """Scores and mixing over all tokens, as in sequences that are not longer than one chunk."""
        for work in attention_products(self.heads, keys=self.head_dim, values=self.head_dim):
            yield work._replace(inexact="hashed attention is counted as if there were one bucket")

    def steps(self) -> Iterator[Step]:
        h, d_h = self.heads, self.head_dim
        yield from attention_steps(self.parts(), heads=h, kv_heads=h, keys=d_h, values=d_h)

    def own_state(self) -> Iterator[CacheEntry]:
        """The hidden state of each token, from which keys and values are computed again, and its buckets."""
        yield CacheEntry(KEY, self.width)
        yield CacheEntry(INDEX, self.heads * self.hashes, dtype="int64")

    def label(self) -> str:
        return "hashed attention"


class GroupedAttention(Component):
    """Multi-head attention whose projections are grouped convolutions of width one (SqueezeBERT).

    Shapes: q, k, v and o (d, d / G), each with a bias (d) and a G of its own.
    Source: SqueezeBERT (2006.11316); SqueezeBertSelfAttention.
    """

    category: Category | None = "attention"
    width: Size
    heads: Size
    q_groups: Size
    k_groups: Size
    v_groups: Size
    out_groups: Size

    def parts(self) -> Mapping[str, Component]:
        groups = {"q": self.q_groups, "k": self.k_groups, "v": self.v_groups, "o": self.out_groups}
        return {
            f"{name}_proj": grouped_linear(self.width, self.width, groups=n, bias=True) for name, n in groups.items()
        }

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width} | uniform_head_sizes(self.heads, self.heads, self.width // self.heads)

    def own_ops(self) -> Iterator[FlopTerm]:
        """Scores and mixing of h heads of d / h channels."""
        share = self.width // self.heads
        yield from attention_products(self.heads, keys=share, values=share)

    def steps(self) -> Iterator[Step]:
        h, share = self.heads, self.width // self.heads
        yield from attention_steps(self.parts(), heads=h, kv_heads=h, keys=share, values=share)

    def own_state(self) -> Iterator[CacheEntry]:
        """None: only encoders use it."""
        return iter(())

    def label(self) -> str:
        return "attention"


class ExpertAttention(Component):
    """Mixture of attention heads: query and output projections are experts (JetMoE).

    All experts share keys and values. The category of the query and output projections is experts, of the rest
    attention.
    Shapes: router (E, d); q (g d_h, d) and o (d, g d_h) for each expert; k and v (g d_h, d); output bias (d).
    Source: Zhang et al. 2022 (2210.05144); JetMoeAttention.
    """

    width: Size
    kv_heads: Size
    head_dim: Size
    experts: Size
    top_k: Size

    def parts(self) -> Mapping[str, Component]:
        d, kv = self.width, self.kv_heads * self.head_dim
        column, row = ShardSpec("column", self.kv_heads, "kv_heads"), ShardSpec("row", self.kv_heads, "kv_heads")
        key = Linear(d_in=d, d_out=kv, category="attention", split=column)
        expert = block(q_proj=Linear(d_in=d, d_out=kv, split=column), o_proj=Linear(d_in=kv, d_out=d, split=row))
        return {
            "router": Router(width=d, experts=self.experts),
            "experts": Experts(expert=expert, count=self.experts, top_k=self.top_k),
            "k_proj": key,
            "v_proj": key,
            "out_bias": Param(shape=(d,), category="attention"),
        }

    def dimensions(self) -> Mapping[str, int]:
        """heads are those of the k experts that a token uses."""
        return {"d_model": self.width} | uniform_head_sizes(self.top_k * self.kv_heads, self.kv_heads, self.head_dim)

    def own_ops(self) -> Iterator[FlopTerm]:
        """Scores and mixing of the g heads of each of the k experts that a token uses."""
        yield from attention_products(self.top_k * self.kv_heads, keys=self.head_dim, values=self.head_dim)

    def own_state(self) -> Iterator[CacheEntry]:
        """Keys and values of each token, which all experts share."""
        kv = self.kv_heads * self.head_dim
        yield from kv_entries(kv, kv, shares=self.kv_heads)

    def label(self) -> str:
        return f"attention ({self.experts} experts, {self.top_k} active)"


class ConvolvedAttention(Component):
    """Compressed convolutional attention: queries and keys pass through two convolutions over time (ZAYA).

    One half of the values is that of the token before. Caches keys and values, and the last inputs of the convolutions.
    Shapes: q (h d_h, d), k (g d_h, d), two halves of v (g d_h / 2, d), depthwise convolution (h d_h + g d_h, 1, w_0),
    convolution within each head (h d_h + g d_h, d_h, w_1), temperature (g), o (d, h d_h).
    Source: 2510.04476; ZayaAttention.
    """

    category: Category | None = "attention"
    width: Size
    heads: Size
    kv_heads: Size
    head_dim: Size
    kernels: tuple[Size, Size]
    bias: bool = False
    window: Size | None = None

    def parts(self) -> Mapping[str, Component]:
        d, q, kv = self.width, self.heads * self.head_dim, self.kv_heads * self.head_dim
        shared = ShardSpec("column", self.kv_heads, "kv_heads")
        half = Linear(d_in=d, d_out=kv // 2, bias=self.bias, split=shared)
        both = by_heads("column", self.heads, fused=kv, groups=self.kv_heads)
        return {
            "q_proj": Linear(d_in=d, d_out=q, bias=self.bias, split=by_heads("column", self.heads)),
            "k_proj": Linear(d_in=d, d_out=kv, bias=self.bias, split=shared),
            "v_proj": half,
            "late_v_proj": half,
            "first_late_v": Product(flops=2 * d * (kv // 2), per="sequence"),  # for the position before the first token
            "depthwise_conv": Conv1d(
                channels=q + kv, kernel=self.kernels[0], causal_padding=self.kernels[1] - 1, split=both
            ),
            "head_conv": Conv1d(channels=q + kv, kernel=self.kernels[1], per_group=self.head_dim, split=both),
            "temperature": Param(shape=(self.kv_heads,), category="norm"),
            "o_proj": Linear(d_in=q, d_out=d, bias=self.bias, split=by_heads("row", self.heads)),
        }

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width} | uniform_head_sizes(self.heads, self.kv_heads, self.head_dim)

    def own_ops(self) -> Iterator[FlopTerm]:
        """Scores and mixing of h heads."""
        yield from attention_products(self.heads, keys=self.head_dim, values=self.head_dim, **window_limit(self.window))

    def steps(self) -> Iterator[Step]:
        h, g, d_h = self.heads, self.kv_heads, self.head_dim
        yield from attention_steps(self.parts(), heads=h, kv_heads=g, keys=d_h, values=d_h)

    def own_state(self) -> Iterator[CacheEntry]:
        """Keys and values of each token, the last inputs of both convolutions, and the last token's late values."""
        kv, (growth, size) = self.kv_heads * self.head_dim, window_span(self.window)
        yield from kv_entries(kv, kv, growth=growth, size=size, shares=self.kv_heads)
        columns = self.kernels[0] + self.kernels[1] - 2
        yield fixed_state(self.heads * self.head_dim + kv)._replace(size=columns)
        yield fixed_state(kv // 2)

    def label(self) -> str:
        return "attention" if self.window is None else "sliding attention"
