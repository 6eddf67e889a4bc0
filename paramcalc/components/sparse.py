"""Parts of sparse attention: indexers that choose which past tokens a layer looks at, and compressed caches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paramcalc.base.symbolic import Size, symbolic
from paramcalc.tree.component import Component, without_none
from paramcalc.tree.leaves import Linear, Norm, Param
from paramcalc.tree.ops import PER_PAIR, FlopTerm
from paramcalc.tree.pairs import NO_LIMIT, SEEN_STRIDE_LIMIT, STRIDE_LIMIT, WINDOW_LIMIT
from paramcalc.tree.state import BUFFER, FIXED, FLOAT32, INDEX, KEY, STATE, STRIDE, VALUE, WINDOW, CacheEntry
from paramcalc.tree.weights import Category, ShardSpec, by_heads


class Compressor(Component):
    """Merges `rate` tokens into one key that is its own value, weighted by learned gates (DeepSeek-V4).

    Shapes: kv and gate (o d_h, d), positions (rate, o d_h); o is 2 where neighbouring windows overlap, else 1.
    Caches d_h channels for each `rate` tokens. DeepseekV4HCACompressor, DeepseekV4CSACompressor.
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
        """A merged key for each `rate` tokens, the keys and gates that wait, and those of the overlap."""
        yield CacheEntry(KEY, self.head_dim, STRIDE, self.rate)
        yield CacheEntry(STATE, 2 * self.overlap * self.head_dim, BUFFER, self.rate - 1)
        if self.overlap > 1:
            yield CacheEntry(STATE, self.head_dim, FIXED, self.rate)
            yield CacheEntry(STATE, self.head_dim, FIXED, self.rate, dtype=FLOAT32)  # gates, with their positions


class Indexer(Component):
    """Scores past tokens with a few small heads that share one key; attention looks at the best of them only.

    DeepSeek-V3.2's lightning indexer. Shapes: q (h_i d_i, d_q), k (d_i, d), and, where each head's score has a weight
    of its own, weights (h_i, d). Caches one key of d_i channels per token, or per compressed window of them.
    """

    category: Category | None = "attention"
    width: Size
    query_width: Size  # the width that queries are made from: the latent's, or the model's
    heads: Size
    head_dim: Size
    keep: Size  # tokens (or blocks of tokens) that attention looks at
    weighted: bool = True
    q_norm: Norm | None = None
    k_norm: Norm | None = None
    compressor: Component | None = None  # in place of the key projection
    pool: Size = 1  # tokens whose keys are merged into one before they are scored, when there are as many (GLM-5-next)
    seen_alone: bool = False  # each token scores those that it sees, one token after the other (Qwen4)
    kept_beside: Size = 0  # channels kept with each key: of the gate that pools keys, and whether the token is real
    key_dtype: str | None = None  # where the reference keeps keys in a dtype of their own (dots3: float32)

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
        """Scores of every past key by each head, and their sum with a weight for each head."""
        if isinstance(self.compressor, Compressor):  # whose scores are weighed one by one
            stride: dict[str, Any] = {"limit": STRIDE_LIMIT, "size": self.compressor.rate}
            yield FlopTerm("scores", 2 * self.heads * self.head_dim, "attention", PER_PAIR, **stride)
            return
        limit = SEEN_STRIDE_LIMIT if self.seen_alone else STRIDE_LIMIT if self.pool > 1 else NO_LIMIT
        pooled: dict[str, Any] = {"limit": limit, "size": self.pool}
        yield FlopTerm("scores", 2 * self.heads * self.head_dim, "attention", PER_PAIR, **pooled)
        if self.weighted:
            yield FlopTerm("weighing", 2 * self.heads, "attention", PER_PAIR, **pooled)

    def own_state(self) -> Iterator[CacheEntry]:
        """One key for each token; a compressor keeps its own."""
        if self.compressor is None:
            width = self.head_dim + self.kept_beside if self.kept_beside else self.head_dim
            yield CacheEntry(INDEX, width, dtype=self.key_dtype)


class CompressedAttention(Component):
    """Attention over one shared key that is its own value, of which old ones are kept compressed (DeepSeek-V4).

    Shapes: q through a bottleneck (r_q, d), (h d_h, r_q); kv (d_h, d); the output through `groups` bottlenecks side by
    side, (G r_o, h d_h / G), (d, G r_o); one sink per head. Caches d_h channels for each token of the window and
    whatever the compressor keeps. DeepseekV4Attention.
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
        """One key, which is its own value, for all heads."""
        return {"d_model": self.width, "heads": self.heads, "kv_heads": 1, "head_dim": self.head_dim}

    def own_ops(self) -> Iterator[FlopTerm]:
        """Scores and mixing over the window, and over the compressed past where there is a compressor."""
        flops = 2 * self.heads * self.head_dim
        for name in ("scores", "mixing"):
            yield FlopTerm(name, flops, "attention", PER_PAIR, limit=WINDOW_LIMIT, size=self.window)
            if isinstance(self.compressor, Compressor):
                rate = self.compressor.rate
                most = getattr(self.indexer, "keep", None)
                yield FlopTerm(
                    f"compressed_{name}", flops, "attention", PER_PAIR, limit=STRIDE_LIMIT, size=rate, max_keys=most
                )

    def own_state(self) -> Iterator[CacheEntry]:
        """The key, which is the value too, of each token inside the window: kept twice where nothing is compressed.

        (transformers, whose cache of windows has keys and values; engines keep it once.)
        """
        yield CacheEntry(KEY, self.head_dim, WINDOW, self.window)
        if self.compressor is None:
            yield CacheEntry(VALUE, self.head_dim, WINDOW, self.window)

    def label(self) -> str:
        return "sliding attention" if self.compressor is None else "compressed attention"
