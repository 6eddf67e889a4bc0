"""Sparse attention: indexers that select the past tokens a layer attends to, and compressed caches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from paramcalc.base.symbolic import Size, symbolic
from paramcalc.tree.component import Component, without_none
from paramcalc.tree.leaves import Linear, Norm, Param
from paramcalc.tree.ops import PER_PAIR, FlopTerm
from paramcalc.tree.pairs import NO_LIMIT, PRECEDING_STRIDE_LIMIT, STRIDE_LIMIT, WINDOW_LIMIT
from paramcalc.tree.state import BUFFER, FIXED, FLOAT32, INDEX, KEY, STATE, STRIDE, VALUE, WINDOW, CacheEntry
from paramcalc.tree.weights import Category, ShardSpec, by_heads


class Compressor(Component):
    """Merges `rate` tokens into one vector that is key and value, weighted by learned gates (DeepSeek-V4).

    `overlap` is 2 where neighbouring groups of tokens overlap, else 1. Caches d_h channels for each `rate` tokens.
    Shapes: kv and gate (overlap d_h, d), positions (rate, overlap d_h), norm (d_h).
    Source: DeepseekV4HCACompressor, DeepseekV4CSACompressor.
    """

    category: Category | None = "attention"
    width: Size
    head_dim: Size
    rate: Size
    overlap: Size = 1

    def parts(self) -> Mapping[str, Component]:
        channels = self.head_dim if self.overlap == 1 else self.overlap * self.head_dim
        return {
            "kv_proj": Linear(d_in=self.width, d_out=channels),
            "gate_proj": Linear(d_in=self.width, d_out=channels),
            "position_bias": Param(shape=(self.rate, channels)),
            "kv_norm": Norm(width=self.head_dim),
        }

    own_ops = Component.no_own_ops

    def own_state(self) -> Iterator[CacheEntry]:
        """A merged key for each `rate` tokens, keys and gates of tokens not yet merged, and those of the overlap."""
        yield CacheEntry(KEY, self.head_dim, STRIDE, self.rate)
        yield CacheEntry(STATE, 2 * self.overlap * self.head_dim, BUFFER, self.rate - 1)
        if self.overlap > 1:
            yield CacheEntry(STATE, self.head_dim, FIXED, self.rate)
            yield CacheEntry(STATE, self.head_dim, FIXED, self.rate, dtype=FLOAT32)  # gates, with their positions


class KeyPooling(NamedTuple):
    """Number of neighbouring tokens whose keys are merged into one before they are scored."""

    tokens: Size = 1
    visible_only: bool = False  # scores only the keys before the token, one token after the other (Qwen4)


class IndexKeys(NamedTuple):
    """The indexer's cache, where it is not one key of d_i channels in the cache's dtype."""

    extra: Size = 0  # channels next to each key: the gate that pools keys, and a padding flag (GLM-5-next)
    dtype: str | None = None  # of the keys where the reference fixes it (dots3: float32)


class Indexer(Component):
    """Scores past tokens with a few small heads that share one key; attention uses the `top_k` best of them only.

    Caches one key of d_i channels for each token, unless a compressor keeps its own.
    Shapes: q (h_i d_i, r_q), or (h_i d_i, d) where queries are not made from the latent; k (d_i, d); a weight for each
    head's score (h_i, d) (`weighted`).
    Source: DeepSeek-V3.2 (2512.02556), section 2.1, lightning indexer; DeepseekV32Indexer.
    """

    category: Category | None = "attention"
    width: Size
    query_width: Size  # input channels of the queries: the latent's r_q or the model's d
    heads: Size
    head_dim: Size
    top_k: Size  # tokens, or blocks of tokens, that attention uses
    weighted: bool = True
    q_norm: Norm | None = None
    k_norm: Norm | None = None
    compressor: Component | None = None  # in place of the key projection
    pooling: KeyPooling = KeyPooling()
    index_keys: IndexKeys = IndexKeys()

    def parts(self) -> Mapping[str, Component]:
        parts: dict[str, Component | None] = {
            "q_proj": Linear(d_in=self.query_width, d_out=self.heads * self.head_dim),
            "q_norm": self.q_norm,
            "k_proj": Linear(d_in=self.width, d_out=self.head_dim) if self.compressor is None else self.compressor,
            "k_norm": self.k_norm,
            "weights_proj": Linear(d_in=self.width, d_out=self.heads) if self.weighted else None,
        }
        return without_none(parts)

    def own_ops(self) -> Iterator[FlopTerm]:
        """Scores of every past key by each head, and their weighted sum over the heads."""
        if isinstance(self.compressor, Compressor):  # its weighted sum is elementwise
            stride: dict[str, Any] = {"limit": STRIDE_LIMIT, "size": self.compressor.rate}
            yield FlopTerm("scores", 2 * self.heads * self.head_dim, "attention", PER_PAIR, **stride)
            return
        tokens, visible_only = self.pooling
        limit = PRECEDING_STRIDE_LIMIT if visible_only else STRIDE_LIMIT if tokens > 1 else NO_LIMIT
        pooled: dict[str, Any] = {"limit": limit, "size": tokens}
        yield FlopTerm("scores", 2 * self.heads * self.head_dim, "attention", PER_PAIR, **pooled)
        if self.weighted:
            yield FlopTerm("weighing", 2 * self.heads, "attention", PER_PAIR, **pooled)

    def own_state(self) -> Iterator[CacheEntry]:
        """One key for each token; a compressor keeps its own."""
        if self.compressor is None:
            extra, dtype = self.index_keys
            yield CacheEntry(INDEX, self.head_dim + extra if extra else self.head_dim, dtype=dtype)


class CompressedAttention(Component):
    """Attention over one vector for each token that is key and value of all heads; old ones are compressed.

    The output passes through G bottlenecks. Caches d_h channels for each token of the window, and the compressor's
    entries.
    Shapes: q down (r_q, d), norm (r_q), up (h d_h, r_q); kv (d_h, d), norm (d_h); sinks (h); o down (G r_o, h d_h / G),
    up (d, G r_o).
    Source: DeepseekV4Attention.
    """

    category: Category | None = "attention"
    width: Size
    heads: Size
    head_dim: Size
    q_rank: Size
    groups: Size
    out_rank: Size
    window: Size
    compressor: Component | None = None
    indexer: Component | None = None

    def parts(self) -> Mapping[str, Component]:
        d, q, narrow = self.width, self.heads * self.head_dim, self.groups * self.out_rank
        parts: dict[str, Component | None] = {
            "q_a_proj": Linear(d_in=d, d_out=self.q_rank),
            "q_a_norm": Norm(width=self.q_rank),
            "q_b_proj": Linear(d_in=self.q_rank, d_out=q, split=by_heads("column", self.heads)),
            "kv_proj": Linear(d_in=d, d_out=self.head_dim),
            "kv_norm": Norm(width=self.head_dim),
            "compressor": self.compressor,
            "indexer": self.indexer,
            "sinks": Param(shape=(self.heads,), split=by_heads("column", self.heads)),
            "o_a_proj": Linear(
                d_in=symbolic("d_g", q // self.groups, origin="h d_h / groups"),
                d_out=narrow,
                split=ShardSpec("column", self.groups),
            ),
            "o_b_proj": Linear(d_in=narrow, d_out=d, split=ShardSpec("row", self.groups)),
        }
        return without_none(parts)

    def dimensions(self) -> Mapping[str, int]:
        """All heads share one key, which is the value too."""
        return {"d_model": self.width, "heads": self.heads, "kv_heads": 1, "head_dim": self.head_dim}

    def own_ops(self) -> Iterator[FlopTerm]:
        """Scores and mixing over the window, and over the compressed tokens where there is a compressor."""
        flops = 2 * self.heads * self.head_dim
        for name in ("scores", "mixing"):
            yield FlopTerm(name, flops, "attention", PER_PAIR, limit=WINDOW_LIMIT, size=self.window)
            if isinstance(self.compressor, Compressor):
                rate = self.compressor.rate
                most = getattr(self.indexer, "top_k", None)
                yield FlopTerm(
                    f"compressed_{name}", flops, "attention", PER_PAIR, limit=STRIDE_LIMIT, size=rate, max_keys=most
                )

    def own_state(self) -> Iterator[CacheEntry]:
        """One key for each token of the window, stored twice where nothing is compressed.

        That is how transformers does it, whose sliding-window cache holds keys and values; engines store it once.
        """
        yield CacheEntry(KEY, self.head_dim, WINDOW, self.window)
        if self.compressor is None:
            yield CacheEntry(VALUE, self.head_dim, WINDOW, self.window)

    def label(self) -> str:
        return "sliding attention" if self.compressor is None else "compressed attention"
