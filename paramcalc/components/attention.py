"""Attention in its kinds: heads that share keys and values, and latent attention with low-rank bottlenecks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from paramcalc.dims import Size
from paramcalc.spec import Category, Component, Linear, Norm, Param

Kind = Literal["self", "cross"]


class Attention(Component):
    """Multi-head, grouped-query or multi-query attention: h query heads and g key/value heads of d_h channels.

    Shapes: q (h d_h, d), k and v (g d_h, d), o (d, h d_h). With g = h this is multi-head attention (Vaswani et al.
    2017, section 3.2.2), with g = 1 multi-query, between them grouped-query (Ainslie et al. 2023). Fused projections
    hold the same elements and are counted as q, k and v.

    `window`: tokens a sliding window keeps (None: all); `kv_from` is "cross" when keys and values come from an
    encoder's output of width `kv_width`.
    """

    category: Category | None = "attention"
    width: Size
    heads: Size
    kv_heads: Size
    head_dim: Size
    q_bias: bool = False
    k_bias: bool = False
    v_bias: bool = False
    out_bias: bool = False
    q_norm: Norm | None = None
    k_norm: Norm | None = None
    sinks: bool = False  # one learned logit per head (gpt-oss)
    position_buckets: Size = 0  # T5's learned bias: one scalar per bucket and head
    window: Size | None = None
    source: Kind = "self"

    def parts(self) -> Mapping[str, Component]:
        d, q, kv = self.width, self.heads * self.head_dim, self.kv_heads * self.head_dim
        parts: dict[str, Component | None] = {
            "q_proj": Linear(d_in=d, d_out=q, bias=self.q_bias),
            "k_proj": Linear(d_in=d, d_out=kv, bias=self.k_bias),
            "v_proj": Linear(d_in=d, d_out=kv, bias=self.v_bias),
            "q_norm": self.q_norm,
            "k_norm": self.k_norm,
            "position_bias": Param(shape=(self.position_buckets, self.heads)) if self.position_buckets else None,
            "sinks": Param(shape=(self.heads,)) if self.sinks else None,
            "o_proj": Linear(d_in=q, d_out=d, bias=self.out_bias),
        }
        return {name: part for name, part in parts.items() if part is not None}

    def label(self) -> str:
        if self.source == "cross":
            return "cross attention"
        return "attention" if self.window is None else "sliding attention"


class LatentAttention(Component):
    """Multi-head latent attention: queries, keys and values pass through low-rank bottlenecks.

    DeepSeek-V2 (2405.04434), section 2.1. Each head has d_n channels without and d_r with rotary positions, and values
    of d_v channels; the rotary key is shared by all heads. Caches the compressed key/value latent (r_kv) and that one
    key per token, not heads. `q_rank` None: queries are projected directly (V2-Lite).
    """

    category: Category | None = "attention"
    width: Size
    heads: Size
    q_rank: Size | None
    kv_rank: Size
    nope_dim: Size
    rope_dim: Size
    value_dim: Size
    bias: bool = False  # on the two down-projections and the output

    def parts(self) -> Mapping[str, Component]:
        d, h, q = self.width, self.heads, self.heads * (self.nope_dim + self.rope_dim)
        queries: dict[str, Component] = (
            {"q_proj": Linear(d_in=d, d_out=q)}
            if self.q_rank is None
            else {
                "q_a_proj": Linear(d_in=d, d_out=self.q_rank, bias=self.bias),
                "q_a_norm": Norm(width=self.q_rank),
                "q_b_proj": Linear(d_in=self.q_rank, d_out=q),
            }
        )
        return queries | {
            "kv_a_proj": Linear(d_in=d, d_out=self.kv_rank + self.rope_dim, bias=self.bias),
            "kv_a_norm": Norm(width=self.kv_rank),
            "kv_b_proj": Linear(d_in=self.kv_rank, d_out=h * (self.nope_dim + self.value_dim)),
            "o_proj": Linear(d_in=h * self.value_dim, d_out=d, bias=self.bias),
        }

    def label(self) -> str:
        return "attention"
