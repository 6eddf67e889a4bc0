"""Attention of heads that may share keys and values, and what all kinds of attention have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component, prefixed_steps, without_none
from paramcalc.tree.leaves import Linear, Norm, Param
from paramcalc.tree.ops import PER_PAIR, PER_SOURCE_PAIR, PER_SOURCE_TOKEN, FlopTerm, Per, PerWord
from paramcalc.tree.pairs import NO_LIMIT, WINDOW_LIMIT, Limit
from paramcalc.tree.state import ENCODER_OUTPUT, EVERY_TOKEN, FIXED, KEY, VALUE, WINDOW, CacheEntry, Growth
from paramcalc.tree.steps import BATCH, CONTEXT, SOURCE, TOKENS, Step, StepAxis, per_token
from paramcalc.tree.weights import Category, ShardSpec, by_heads

AttentionSource = Literal["self", "cross"]
# Whose keys and values: the layer's own; its own keys that are its values too (Gemma 4); an earlier layer's (Gemma 3n).
KeyOrigin = Literal["own", "own and values", "borrowed"]


def attention_products(
    heads: Size,
    *,
    keys: Size,
    values: Size,
    per: Per = PER_PAIR,
    limit: Limit = NO_LIMIT,
    size: Size = 1,
) -> Iterator[FlopTerm]:
    """Scores and mixing: for each head and pair of tokens, a product of query and key and one of weight and value."""
    yield FlopTerm("scores", 2 * heads * keys, "attention", per, limit=limit, size=size)
    yield FlopTerm("mixing", 2 * heads * values, "attention", per, limit=limit, size=size)


def attention_steps(
    parts: Mapping[str, Component], *, heads: Size, kv_heads: Size, keys: Size, values: Size, seen: StepAxis = CONTEXT
) -> Iterator[Step]:
    """The projections, heads split, scores, mixing, heads merged, and the projection out."""
    apart = [
        Step("split_q", (BATCH, heads, TOKENS, keys), "heads split"),
        Step("split_k", (BATCH, kv_heads, seen, keys)),
        Step("split_v", (BATCH, kv_heads, seen, values)),
        Step("scores", (BATCH, heads, TOKENS, seen), "softmax over the last axis"),
        Step("mixing", (BATCH, heads, TOKENS, values)),
        Step("merge", per_token(heads * values), "heads merged"),
    ]
    for name, part in parts.items():
        if name == "o_proj":
            yield from apart
        if isinstance(part, Norm) and name in ("q_norm", "k_norm"):
            count = heads if name == "q_norm" else kv_heads
            whole = int(part.width) == int(count * keys)
            yield Step(name, per_token(part.width) if whole else (BATCH, TOKENS, count, keys))
        elif isinstance(part, Norm) and name in (
            "q_a_norm",
            "kv_a_norm",
        ):  # of a latent alone, not of what is beside it
            yield Step(name, per_token(part.width))
        else:
            yield from prefixed_steps(name, part.steps())
    if "o_proj" not in parts:
        yield from apart


def window_limit(window: Size | None) -> Mapping[str, Any]:
    """The limit of a sliding window, where there is one."""
    return {} if window is None else {"limit": WINDOW_LIMIT, "size": window}


def window_or_picks(window: Size | None, *picks: Size | None) -> Size | None:
    """The last tokens of a window, or as many as an indexer picks: to count its choice is like a window."""
    limits = [size for size in (window, *picks) if size is not None]
    return min(limits) if limits else None


def uniform_head_sizes(heads: Size, kv_heads: Size, head_dim: Size) -> dict[str, int]:
    """The sizes of attention whose heads are all alike."""
    return {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}


def lookback_label(window: int | None) -> tuple[Growth, int]:
    """How far back a layer sees: the last `window` tokens, or all of them."""
    return (EVERY_TOKEN, 1) if window is None else (WINDOW, window)


def source_entries(tokens: int | None) -> tuple[Growth, int]:
    """As many entries as an encoder's output has: what it reads decides, or it always makes so many."""
    return (ENCODER_OUTPUT, 1) if tokens is None else (FIXED, tokens)


def kv_entries(
    keys: int, values: int, *, growth: Growth = EVERY_TOKEN, size: int = 1, shares: int | None = None
) -> Iterator[CacheEntry]:
    """Keys and values of so many channels in all heads, which `shares` devices can divide."""
    yield CacheEntry(KEY, keys, growth, size, shares)
    yield CacheEntry(VALUE, values, growth, size, shares)


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
    source: AttentionSource = "self"
    inner: Component | None = None  # what else works on the heads: an output gate, a norm, learned vectors
    out_in: Size | None = None  # inputs of the output projection where they are not h d_h (Helium: d)
    out_width: Size | None = None  # where the output is not as wide as the input (Zamba: d and 2 d)
    value_dim: Size | None = None  # where values are not as wide as keys (MiMo-V2)
    keys: KeyOrigin = "own"
    kv_width: Size | None = None  # inputs of keys and values where they are not the queries' (Perceiver)
    value_in: Size | None = None  # inputs of the values where they are not the keys' (MobileBERT)
    indexer: Component | None = None
    maps: Size = 1  # how often scores and mixing are done, each time for a part of the values (DiffLlama)
    merged: bool = False  # one softmax over its own keys and those of the source, by the same matrices (T5Gemma 2)
    source_tokens: Size | None = None  # entries of the encoder's output where they are always as many (Whisper)
    keeps_inputs: bool = False  # hidden states, from which keys and values are made again (XLNet, Reformer)
    cache_note: str = ""  # what an implementation keeps instead
    cache_doubt: str = ""  # why what is said to be kept may not be
    prefix: Size = 0  # learned tokens before every sequence, which are kept beside it (CPM-Ant, Hymba)
    prompted: bool = False  # an encoder's output stands before the tokens and is kept as they are (MusicGen Melody)
    joined: bool = False  # no output projection of its own: another mixer's takes the heads' outputs too (Hymba)

    @property
    def value_channels(self) -> Size:
        """Channels of a value in each head (d_v)."""
        return self.head_dim if self.value_dim is None else self.value_dim

    def parts(self) -> Mapping[str, Component]:
        d, q, kv = self.width, self.heads * self.head_dim, self.kv_heads * self.head_dim
        d_v, d_kv = self.value_channels, self.kv_width or d
        has_keys, has_values = self.keys != "borrowed", self.keys == "own"
        column, shared = by_heads("column", self.heads), ShardSpec("column", self.kv_heads, "kv_heads")
        read: PerWord = "source" if self.source == "cross" else "token"
        parts: dict[str, Component | None] = {
            "q_proj": Linear(d_in=d, d_out=q, bias=self.q_bias, split=column),
            "k_proj": Linear(d_in=d_kv, d_out=kv, bias=self.k_bias, split=shared, per=read) if has_keys else None,
            "v_proj": Linear(
                d_in=self.value_in or d_kv, d_out=self.kv_heads * d_v, bias=self.v_bias, split=shared, per=read
            )
            if has_values
            else None,
            "q_norm": self.q_norm,
            "k_norm": self.k_norm,
            "indexer": self.indexer,
            "position_bias": Param(shape=(self.position_buckets, self.heads)) if self.position_buckets else None,
            "sinks": Param(shape=(self.heads,), split=column) if self.sinks else None,
            "inner": self.inner,
            "o_proj": None
            if self.joined
            else Linear(
                d_in=self.out_in or self.heads * d_v,
                d_out=self.out_width or d,
                bias=self.out_bias,
                split=by_heads("row", self.heads),
            ),
        }
        return without_none(parts)

    def dimensions(self) -> Mapping[str, int]:
        """What it hands on is as wide as the model, which its input need not be."""
        return {"d_model": self.out_width or self.width} | uniform_head_sizes(self.heads, self.kv_heads, self.head_dim)

    def own_state(self) -> Iterator[CacheEntry]:
        """Keys and values of each token; nothing where an earlier layer's are used."""
        for kept in self._keeps():
            yield kept._replace(note=self.cache_note, doubt=self.cache_doubt)

    def _keeps(self) -> Iterator[CacheEntry]:
        if self.keys == "borrowed":
            return
        if self.keeps_inputs:
            yield CacheEntry(KEY, self.width)
            return
        keys, values = self.kv_heads * self.head_dim, self.kv_heads * self.value_channels
        growths = [] if self.source == "cross" else [lookback_label(self.window)]
        growths += (
            [source_entries(self.source_tokens)] if self.source == "cross" or self.merged or self.prompted else []
        )
        for growth, size in growths:
            yield from kv_entries(keys, values, growth=growth, size=size, shares=self.kv_heads)
        if self.prefix:
            yield from kv_entries(keys, values, growth=FIXED, size=self.prefix, shares=self.kv_heads)

    def own_ops(self) -> Iterator[FlopTerm]:
        """Scores of d_h and mixing of d_v channels for every query head, whoever's keys and values they are."""
        per = PER_SOURCE_PAIR if self.source == "cross" else PER_PAIR
        values = self.value_channels
        heads = self.heads if self.maps == 1 else self.maps * self.heads
        window = window_or_picks(self.window, getattr(self.indexer, "keep", None))
        yield from attention_products(heads, keys=self.head_dim, values=values, per=per, **window_limit(window))
        if self.merged:
            for w in attention_products(heads, keys=self.head_dim, values=values, per=PER_SOURCE_PAIR):
                yield w._replace(name=f"source_{w.name}")
            kv = 2 * self.width * self.kv_heads * (self.head_dim + values)
            yield FlopTerm("source_keys_values", kv, per=PER_SOURCE_TOKEN)

    def steps(self) -> Iterator[Step]:
        d_v = self.value_channels
        seen = SOURCE if self.source == "cross" else CONTEXT
        for step in attention_steps(
            self.parts(), heads=self.heads, kv_heads=self.kv_heads, keys=self.head_dim, values=d_v, seen=seen
        ):
            read = seen == SOURCE and step.name in ("k_proj", "v_proj")
            yield step._replace(shape=(BATCH, SOURCE, step.shape[-1])) if read else step
            if self.merged and step.name == "v_proj":
                yield Step("source_keys_values", (BATCH, SOURCE, self.kv_heads * (self.head_dim + d_v)))
            if self.merged and step.name in ("scores", "mixing"):
                last = SOURCE if step.name == "scores" else d_v
                yield Step(f"source_{step.name}", (BATCH, self.heads, TOKENS, last))

    def label(self) -> str:
        if self.source == "cross":
            return "cross attention"
        return "attention" if self.window is None else "sliding attention"
