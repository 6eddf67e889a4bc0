"""Latent attention: queries, keys and values pass through low-rank bottlenecks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from paramcalc.base.symbolic import Size
from paramcalc.components.attention import Scores, attention_products, attention_steps, kv_entries, window_span
from paramcalc.tree.component import Component, without_none
from paramcalc.tree.leaves import Linear, Norm, Param
from paramcalc.tree.ops import FlopTerm
from paramcalc.tree.state import LATENT, CacheEntry
from paramcalc.tree.steps import Step
from paramcalc.tree.weights import Category, by_heads


class LatentOptions(NamedTuple):
    """Additions of single families to DeepSeek-V2's latent attention."""

    query_dim: Size | None = None  # channels of a query head where they are stated (LongCat)
    query_gate: Size = 0  # channels of a gate that the queries' up-projection makes too (A.X-K2)
    rope_norm: bool = False  # on the rotary key (dots3)


class LatentAttention(Component):
    """Multi-head latent attention: queries, keys and values pass through low-rank bottlenecks.

    Each of h heads has d_n channels without and d_r with rotary positions; all heads share one rotary key. Without
    `q_rank`, queries are projected directly (V2-Lite). Caches the latent of r_kv channels and the rotary key of each
    token, or the keys and values made from them. `inner`: other parts that work on the heads, such as an output gate.
    Shapes: q down (r_q, d), norm (r_q), up (h (d_n + d_r), r_q), or directly (h (d_n + d_r), d); kv down
    (r_kv + d_r, d), norm (r_kv), up (h (d_n + d_v), r_kv); o (d, h d_v).
    Source: DeepSeek-V2 (2405.04434), section 2.1; DeepseekV3Attention.
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
    scores: Scores = Scores()
    options: LatentOptions = LatentOptions()
    indexer: Component | None = None
    inner: Component | None = None

    @property
    def query_channels(self) -> Size:
        """Channels of a query in each head."""
        return self.options.query_dim or self.nope_dim + self.rope_dim

    def parts(self) -> Mapping[str, Component]:
        d, h, q = self.width, self.heads, self.heads * self.query_channels
        column, gate = by_heads("column", h), self.options.query_gate
        queries: dict[str, Component] = (
            {"q_proj": Linear(d_in=d, d_out=q, split=column)}
            if self.q_rank is None
            else {
                "q_a_proj": Linear(d_in=d, d_out=self.q_rank, bias=self.bias),
                "q_a_norm": Norm(width=self.q_rank),
                "q_b_proj": Linear(d_in=2 * self.q_rank, d_out=q + gate, split=column)
                if gate
                else Linear(d_in=self.q_rank, d_out=q, split=column),
            }
        )
        parts: dict[str, Component | None] = {
            **queries,
            "indexer": self.indexer,
            "kv_a_proj": Linear(d_in=d, d_out=self.kv_rank + self.rope_dim, bias=self.bias),
            "kv_a_norm": Norm(width=self.kv_rank),
            "rope_norm": Norm(width=self.rope_dim) if self.options.rope_norm else None,
            "kv_b_proj": Linear(d_in=self.kv_rank, d_out=h * (self.nope_dim + self.value_dim), split=column),
            "sinks": Param(shape=(h,), split=column) if self.scores.sinks else None,
            "inner": self.inner,
            "o_proj": Linear(d_in=h * self.value_dim, d_out=d, bias=self.bias, split=by_heads("row", h)),
        }
        return without_none(parts)

    def dimensions(self) -> Mapping[str, int]:
        """head_dim is that of the queries; there are no key/value heads."""
        return {"d_model": self.width, "heads": self.heads, "head_dim": self.query_channels}

    def own_ops(self) -> Iterator[FlopTerm]:
        """Scores and mixing of h heads made from the latent: the form without absorbed projections."""
        limit = self.scores.limit(self.indexer)
        yield from attention_products(self.heads, keys=self.query_channels, values=self.value_dim, **limit)

    def steps(self) -> Iterator[Step]:
        h, keys = self.heads, self.query_channels
        yield from attention_steps(self.parts(), heads=h, kv_heads=h, keys=keys, values=self.value_dim)

    def own_state(self) -> Iterator[CacheEntry]:
        """The latent and the rotary key of each token, or the keys and values of all heads that are made from them."""
        growth, size = window_span(self.scores.window)
        yield CacheEntry(LATENT, self.kv_rank + self.rope_dim, growth, size, mla_form="latent")
        keys, values = self.heads * (self.nope_dim + self.rope_dim), self.heads * self.value_dim
        for entry in kv_entries(keys, values, growth=growth, size=size, shares=self.heads):
            yield entry._replace(mla_form="expanded")

    def label(self) -> str:
        return "attention" if self.scores.window is None else "sliding attention"
