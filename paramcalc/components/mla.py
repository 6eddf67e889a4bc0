"""Latent attention: queries, keys and values pass through low-rank bottlenecks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcalc.base.symbolic import Size
from paramcalc.components.attention import (
    attention_products,
    attention_steps,
    kv_entries,
    lookback_label,
    window_limit,
    window_or_picks,
)
from paramcalc.tree.component import Component, without_none
from paramcalc.tree.leaves import Linear, Norm, Param
from paramcalc.tree.ops import FlopTerm
from paramcalc.tree.state import LATENT, CacheEntry
from paramcalc.tree.steps import Step
from paramcalc.tree.weights import Category, by_heads


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
    window: Size | None = None
    query_dim: Size | None = None  # channels of a query head where the file states them apart (LongCat)
    rope_norm: bool = False  # on the rotary key (dots3)
    sinks: bool = False  # one learned logit per head (Hunyuan 4)
    query_gate: Size = 0  # channels of a gate made with the queries, out of their latent and its norm (A.X-K2)
    inner: Component | None = None  # what else works on the heads: an output gate
    indexer: Component | None = None
    picks: Size | None = None  # tokens that the indexer of an earlier layer leaves to attend to, or one within a block

    @property
    def query_channels(self) -> Size:
        """Channels of a query in each head."""
        return self.query_dim or self.nope_dim + self.rope_dim

    def parts(self) -> Mapping[str, Component]:
        d, h, q = self.width, self.heads, self.heads * self.query_channels
        column = by_heads("column", h)
        queries: dict[str, Component] = (
            {"q_proj": Linear(d_in=d, d_out=q, split=column)}
            if self.q_rank is None
            else {
                "q_a_proj": Linear(d_in=d, d_out=self.q_rank, bias=self.bias),
                "q_a_norm": Norm(width=self.q_rank),
                "q_b_proj": Linear(d_in=2 * self.q_rank, d_out=q + self.query_gate, split=column)
                if self.query_gate
                else Linear(d_in=self.q_rank, d_out=q, split=column),
            }
        )
        parts: dict[str, Component | None] = {
            **queries,
            "indexer": self.indexer,
            "kv_a_proj": Linear(d_in=d, d_out=self.kv_rank + self.rope_dim, bias=self.bias),
            "kv_a_norm": Norm(width=self.kv_rank),
            "rope_norm": Norm(width=self.rope_dim) if self.rope_norm else None,
            "kv_b_proj": Linear(d_in=self.kv_rank, d_out=h * (self.nope_dim + self.value_dim), split=column),
            "sinks": Param(shape=(h,), split=column) if self.sinks else None,
            "inner": self.inner,
            "o_proj": Linear(d_in=h * self.value_dim, d_out=d, bias=self.bias, split=by_heads("row", h)),
        }
        return without_none(parts)

    def dimensions(self) -> Mapping[str, int]:
        """Queries' channels for each head; there are no key/value heads to speak of."""
        return {"d_model": self.width, "heads": self.heads, "head_dim": self.query_channels}

    def own_ops(self) -> Iterator[FlopTerm]:
        """Scores and mixing of h heads made from the latent: the form without absorbed projections.

        An indexer leaves each token as many to attend to as it keeps, like a window.
        """
        window = window_or_picks(self.window, self.picks, getattr(self.indexer, "keep", None))
        yield from attention_products(
            self.heads, keys=self.query_channels, values=self.value_dim, **window_limit(window)
        )

    def steps(self) -> Iterator[Step]:
        h, keys = self.heads, self.query_channels
        yield from attention_steps(self.parts(), heads=h, kv_heads=h, keys=keys, values=self.value_dim)

    def own_state(self) -> Iterator[CacheEntry]:
        """The latent and the rotary key of each token, or the keys and values that all heads make of them."""
        growth, size = lookback_label(self.window)
        yield CacheEntry(LATENT, self.kv_rank + self.rope_dim, growth, size, mla_form="latent")
        keys, values = self.heads * (self.nope_dim + self.rope_dim), self.heads * self.value_dim
        for kept in kv_entries(keys, values, growth=growth, size=size, shares=self.heads):
            yield kept._replace(mla_form="expanded")

    def label(self) -> str:
        return "attention" if self.window is None else "sliding attention"
