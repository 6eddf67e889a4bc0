"""Multi-head, grouped-query and multi-query attention, and functions that all kinds of attention share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component, prefixed_steps, without_none
from paramcalc.tree.leaves import Linear, Norm, Param
from paramcalc.tree.ops import PER_PAIR, PER_SOURCE_PAIR, PER_SOURCE_TOKEN, FlopTerm, Per, PerWord
from paramcalc.tree.pairs import NO_LIMIT, WINDOW_LIMIT, Limit
from paramcalc.tree.state import ENCODER_OUTPUT, EVERY_TOKEN, FIXED, KEY, VALUE, WINDOW, CacheEntry, Growth
from paramcalc.tree.steps import BATCH, CONTEXT, SOURCE, TOKENS, Step, StepAxis, per_token
from paramcalc.tree.weights import Category, ShardSpec, by_heads

# Where keys and values come from: projections of the layer's own input; one projection of it that is both (Gemma 4);
# an earlier layer (Gemma 3n); an encoder's output; both by the same matrices and under one softmax (T5Gemma 2); or an
# encoder's output that stands before the tokens (MusicGen Melody).
KeyOrigin = Literal["self", "keys as values", "borrowed", "cross", "joint", "prepended"]


def attention_products(
    heads: Size,
    *,
    keys: Size,
    values: Size,
    per: Per = PER_PAIR,
    limit: Limit = NO_LIMIT,
    size: Size = 1,
) -> Iterator[FlopTerm]:
    """Scores (query times key) and mixing (weight times value), for each head and pair of tokens."""
    yield FlopTerm("scores", 2 * heads * keys, "attention", per, limit=limit, size=size)
    yield FlopTerm("mixing", 2 * heads * values, "attention", per, limit=limit, size=size)


def attention_steps(
    parts: Mapping[str, Component],
    *,
    heads: Size,
    kv_heads: Size,
    keys: Size,
    values: Size,
    context: StepAxis = CONTEXT,
) -> Iterator[Step]:
    """Projections, split into heads, scores, mixing, merge of the heads, and the output projection."""
    inner = [
        Step("split_q", (BATCH, heads, TOKENS, keys), "heads split"),
        Step("split_k", (BATCH, kv_heads, context, keys)),
        Step("split_v", (BATCH, kv_heads, context, values)),
        Step("scores", (BATCH, heads, TOKENS, context), "softmax over the last axis"),
        Step("mixing", (BATCH, heads, TOKENS, values)),
        Step("merge", per_token(heads * values), "heads merged"),
    ]
    for name, part in parts.items():
        if name == "o_proj":
            yield from inner
        if isinstance(part, Norm) and name in ("q_norm", "k_norm"):
            count = heads if name == "q_norm" else kv_heads
            whole = int(part.width) == int(count * keys)
            yield Step(name, per_token(part.width) if whole else (BATCH, TOKENS, count, keys))
        elif isinstance(part, Norm) and name in ("q_a_norm", "kv_a_norm"):  # of the latent, without the rotary key
            yield Step(name, per_token(part.width))
        else:
            yield from prefixed_steps(name, part.steps())
    if "o_proj" not in parts:
        yield from inner


def window_limit(window: Size | None) -> Mapping[str, Any]:
    """The fields of a FLOP term that a sliding window limits; none without a window."""
    return {} if window is None else {"limit": WINDOW_LIMIT, "size": window}


def uniform_head_sizes(heads: Size, kv_heads: Size, head_dim: Size) -> dict[str, int]:
    """The dimensions of attention whose heads all have the same number of channels."""
    return {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}


def window_span(window: int | None) -> tuple[Growth, int]:
    """The cached tokens of a layer: the last `window` of them, or all."""
    return (EVERY_TOKEN, 1) if window is None else (WINDOW, window)


def source_span(tokens: int | None) -> tuple[Growth, int]:
    """The length of an encoder's output: that of its input, or a fixed number of `tokens`."""
    return (ENCODER_OUTPUT, 1) if tokens is None else (FIXED, tokens)


def kv_entries(
    keys: int, values: int, *, growth: Growth = EVERY_TOKEN, size: int = 1, shares: int | None = None
) -> Iterator[CacheEntry]:
    """Cache entries for keys and values of these channels in all heads, which at most `shares` devices can divide."""
    yield CacheEntry(KEY, keys, growth, size, shares)
    yield CacheEntry(VALUE, values, growth, size, shares)


class Projections(NamedTuple):
    """Biases of q, k, v and the output projection, and the latter's widths where they are not h d_v and d."""

    q_bias: bool = False
    k_bias: bool = False
    v_bias: bool = False
    out_bias: bool = False
    out_in: Size | None = None  # Helium: d
    out_width: Size | None = None  # Zamba: d, of an input of 2 d
    output: bool = True  # False: another mixer's output projection takes the heads too (Hymba)


class Scores(NamedTuple):
    """Limits of the attention scores, and the learned terms that are added to them."""

    window: Size | None = None  # last tokens that a sliding window attends to, and keeps; None: all
    picks: Size | None = None  # tokens that an earlier layer's indexer selects
    sinks: bool = False  # one learned logit for each head (gpt-oss)
    position_buckets: Size = 0  # learned bias with one scalar for each bucket and head (T5)
    maps: Size = 1  # score matrices for each head, each of which mixes a part of the values (DiffLlama)

    def limit(self, indexer: Component | None) -> Mapping[str, Any]:
        """The window, or the number of tokens an indexer selects: its selection is counted like a window."""
        limits = [n for n in (self.window, self.picks, getattr(indexer, "top_k", None)) if n is not None]
        return window_limit(min(limits)) if limits else {}


class KeySource(NamedTuple):
    """Where keys and values come from, and their widths where these are not the queries'."""

    source: KeyOrigin = "self"
    kv_width: Size | None = None  # inputs of k and v (Perceiver)
    value_in: Size | None = None  # inputs of v where they are not those of k (MobileBERT)
    value_dim: Size | None = None  # d_v where it is not d_h (MiMo-V2)
    source_tokens: Size | None = None  # length of the encoder's output where it is fixed (Whisper)


class CachePolicy(NamedTuple):
    """Contents of the cache, where they are not keys and values of each token alone."""

    keeps_inputs: bool = False  # hidden states, from which keys and values are computed again (XLNet, Reformer)
    prefix: Size = 0  # learned tokens before every sequence (CPM-Ant, Hymba)
    cache_note: str = ""  # what an implementation keeps instead
    cache_doubt: str = ""  # why the reference may keep something else


class Attention(Component):
    """Multi-head, grouped-query or multi-query attention: h query heads and g key/value heads of d_h channels.

    Fused projections hold the same elements and are counted as q, k and v. `inner`: other parts that work on the heads,
    such as an output gate, a norm or learned vectors.
    Shapes: q (h d_h, d), k (g d_h, d), v (g d_v, d), o (d, h d_v), sinks (h), position bias (buckets, h).
    Source: with g = h Vaswani et al. 2017 (1706.03762), section 3.2.2; with g = 1 Shazeer 2019 (1911.02150); between
    them Ainslie et al. 2023 (2305.13245).
    """

    category: Category | None = "attention"
    width: Size
    heads: Size
    kv_heads: Size
    head_dim: Size
    projections: Projections = Projections()
    q_norm: Norm | None = None
    k_norm: Norm | None = None
    scores: Scores = Scores()
    kv: KeySource = KeySource()
    cache_policy: CachePolicy = CachePolicy()
    indexer: Component | None = None
    inner: Component | None = None

    @property
    def value_channels(self) -> Size:
        """Channels of a value in each head (d_v)."""
        return self.head_dim if self.kv.value_dim is None else self.kv.value_dim

    @property
    def window(self) -> Size | None:
        """Tokens of the sliding window; None without one."""
        return self.scores.window

    def with_window(self, window: Size | None) -> Attention:
        """The same attention with another sliding window, or without one."""
        return self.replace(scores=self.scores._replace(window=window))

    @property
    def source_tokens(self) -> Size | None:
        """Length of the encoder's output where it is fixed."""
        return self.kv.source_tokens

    def parts(self) -> Mapping[str, Component]:
        has, kv, h = self.projections, self.kv, self.heads
        d, q, k = self.width, h * self.head_dim, self.kv_heads * self.head_dim
        d_v, d_kv = self.value_channels, kv.kv_width or d
        column, shared = by_heads("column", h), ShardSpec("column", self.kv_heads, "kv_heads")
        per: PerWord = "source" if kv.source == "cross" else "token"
        own_keys, own_values = kv.source != "borrowed", kv.source not in ("borrowed", "keys as values")
        buckets = self.scores.position_buckets
        parts: dict[str, Component | None] = {
            "q_proj": Linear(d_in=d, d_out=q, bias=has.q_bias, split=column),
            "k_proj": Linear(d_in=d_kv, d_out=k, bias=has.k_bias, split=shared, per=per) if own_keys else None,
            "v_proj": Linear(
                d_in=kv.value_in or d_kv, d_out=self.kv_heads * d_v, bias=has.v_bias, split=shared, per=per
            )
            if own_values
            else None,
            "q_norm": self.q_norm,
            "k_norm": self.k_norm,
            "indexer": self.indexer,
            "position_bias": Param(shape=(buckets, h)) if buckets else None,
            "sinks": Param(shape=(h,), split=column) if self.scores.sinks else None,
            "inner": self.inner,
            "o_proj": Linear(
                d_in=has.out_in or h * d_v, d_out=has.out_width or d, bias=has.out_bias, split=by_heads("row", h)
            )
            if has.output
            else None,
        }
        return without_none(parts)

    def dimensions(self) -> Mapping[str, int]:
        """d_model is the width of the output, which need not be that of the input."""
        sizes = uniform_head_sizes(self.heads, self.kv_heads, self.head_dim)
        return {"d_model": self.projections.out_width or self.width} | sizes

    def own_state(self) -> Iterator[CacheEntry]:
        """Keys and values of each token; nothing where an earlier layer's are used."""
        policy = self.cache_policy
        for entry in self._entries():
            yield entry._replace(note=policy.cache_note, approximation_reason=policy.cache_doubt)

    def _entries(self) -> Iterator[CacheEntry]:
        source, prefix = self.kv.source, self.cache_policy.prefix
        if source == "borrowed":
            return
        if self.cache_policy.keeps_inputs:
            yield CacheEntry(KEY, self.width)
            return
        keys, values = self.kv_heads * self.head_dim, self.kv_heads * self.value_channels
        growths = [] if source == "cross" else [window_span(self.window)]
        growths += [source_span(self.source_tokens)] if source in ("cross", "joint", "prepended") else []
        for growth, size in growths:
            yield from kv_entries(keys, values, growth=growth, size=size, shares=self.kv_heads)
        if prefix:
            yield from kv_entries(keys, values, growth=FIXED, size=prefix, shares=self.kv_heads)

    def own_ops(self) -> Iterator[FlopTerm]:
        """Scores of d_h and mixing of d_v channels for every query head, wherever keys and values come from."""
        per = PER_SOURCE_PAIR if self.kv.source == "cross" else PER_PAIR
        keys, values, limit = self.head_dim, self.value_channels, self.scores.limit(self.indexer)
        heads = self.heads if self.scores.maps == 1 else self.scores.maps * self.heads
        yield from attention_products(heads, keys=keys, values=values, per=per, **limit)
        if self.kv.source == "joint":
            for w in attention_products(heads, keys=keys, values=values, per=PER_SOURCE_PAIR):
                yield w._replace(name=f"source_{w.name}")
            kv = 2 * self.width * self.kv_heads * (keys + values)
            yield FlopTerm("source_keys_values", kv, per=PER_SOURCE_TOKEN)

    def steps(self) -> Iterator[Step]:
        d_v, joint = self.value_channels, self.kv.source == "joint"
        context = SOURCE if self.kv.source == "cross" else CONTEXT
        for step in attention_steps(
            self.parts(), heads=self.heads, kv_heads=self.kv_heads, keys=self.head_dim, values=d_v, context=context
        ):
            of_source = context == SOURCE and step.name in ("k_proj", "v_proj")
            yield step._replace(shape=(BATCH, SOURCE, step.shape[-1])) if of_source else step
            if joint and step.name == "v_proj":
                yield Step("source_keys_values", (BATCH, SOURCE, self.kv_heads * (self.head_dim + d_v)))
            if joint and step.name in ("scores", "mixing"):
                last = SOURCE if step.name == "scores" else d_v
                yield Step(f"source_{step.name}", (BATCH, self.heads, TOKENS, last))

    def label(self) -> str:
        if self.kv.source == "cross":
            return "cross attention"
        return "attention" if self.window is None else "sliding attention"
