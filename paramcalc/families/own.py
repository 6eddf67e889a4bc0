"""paramcalc's own family, `model_type: transformer`: a decoder described in a few words, for models not yet built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from paramcalc.components import Attention, Mlp, Moe
from paramcalc.dims import Dim, named
from paramcalc.errors import ConfigError, nearest
from paramcalc.spec import Block, Component, Embedding, Linear, Norm, Run, block, by_vocabulary, stack


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class MoeFields(_Strict):
    """A bank of experts in place of the feed-forward network."""

    experts: int = Field(gt=0, le=10**6, description="routed experts")
    top_k: int = Field(gt=0, description="experts that one token uses")
    d_ff: int | None = Field(None, gt=0, le=10**9, description="width of an expert; the model's d_ff when absent")
    shared: int = Field(0, ge=0, le=10**9, description="experts of the same width that every token uses")
    every: int = Field(1, gt=0, le=10**9, description="experts in every n-th layer after the first dense ones")
    first_dense: int = Field(0, ge=0, le=10**9, description="layers at the start that keep a dense FFN")

    @model_validator(mode="after")
    def _top_k_fits(self) -> MoeFields:
        if self.top_k > self.experts:
            raise ValueError(f"top_k ({self.top_k}) is more than experts ({self.experts})")
        return self


class LayerFields(_Strict):
    """What one entry of `layers` may say differently from the model, for `repeat` layers in a row."""

    repeat: int = Field(1, gt=0, le=100_000)
    n_heads: int | None = Field(None, gt=0, le=10**9)
    n_kv_heads: int | None = Field(None, gt=0, le=10**9)
    head_dim: int | None = Field(None, gt=0, le=10**9)
    d_ff: int | None = Field(None, gt=0, le=10**9)
    ffn: Literal["plain", "gated"] | None = None
    moe: MoeFields | Literal[False] | None = Field(None, description="experts in these layers; false: a dense FFN")
    window: int | None = Field(None, gt=0, le=10**9, description="tokens of a sliding window in these layers")


class BiasFields(_Strict):
    """Which linear layers have biases."""

    attention: bool = False
    ffn: bool = False
    head: bool = False


class TransformerConfig(_Strict):
    """The fields of `model_type: transformer`. Sizes are in channels, rows and layers."""

    model_type: Literal["transformer"] = "transformer"
    d_model: int = Field(gt=0, le=10**9, description="width of the residual stream")
    n_layers: int | None = Field(None, gt=0, le=100_000, description="depth; the sum of `layers` when those are given")
    n_heads: int = Field(gt=0, le=10**9, description="query heads")
    n_kv_heads: int | None = Field(None, gt=0, le=10**9, description="key/value heads; n_heads when absent")
    head_dim: int | None = Field(None, gt=0, le=10**9, description="channels per head; d_model / n_heads when absent")
    d_ff: int | None = Field(None, gt=0, le=10**9, description="FFN width; 4 d_model for a plain FFN when absent")
    ffn: Literal["plain", "gated"] = "plain"
    norm: Literal["rms", "layer"] = "rms"
    norm_position: Literal["pre", "post"] = Field("pre", description="pre also means a final norm")
    bias: bool | BiasFields = Field(False, description="biases in linear layers; a LayerNorm always has one")
    vocab_size: int | None = Field(None, gt=0, le=10**9, description="token rows; absent: layers only, no embedding")
    tie_embeddings: bool = True
    positions: Literal["none", "learned", "rope"] = "rope"
    max_positions: int | None = Field(None, gt=0, le=10**9, description="rows of learned positions")
    moe: MoeFields | None = None
    layers: list[LayerFields] | None = Field(None, description="layer by layer, where they are not all alike")
    dtype: str = Field("bfloat16", description="dtype of the weights")

    @model_validator(mode="after")
    def _consistent(self) -> TransformerConfig:
        if self.layers is not None:
            depth = sum(entry.repeat for entry in self.layers)
            if not 0 < depth <= 100_000:
                raise ValueError(f"layers describes {depth} layers; 1 to 100,000 can be meant")
            if self.n_layers is not None and self.n_layers != depth:
                raise ValueError(f"layers describes {depth} layers, n_layers says {self.n_layers}")
        elif self.n_layers is None:
            raise ValueError("n_layers is required and missing")
        if (self.positions == "learned") != (self.max_positions is not None):
            raise ValueError("positions: learned goes with max_positions")
        return self


def parse(fields: dict[str, object], origin: str) -> TransformerConfig:
    """The validated fields, or a ConfigError that names the first field at fault."""
    try:
        return TransformerConfig.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "config"
        problem = {"missing": "is required and missing", "extra_forbidden": "is not a field of it"}.get(
            first["type"], first["msg"].removeprefix("Value error, ").lower()
        )
        text = problem if where == "config" else f"{where} {problem}"
        hint = "`paramcalc schema model` lists every field"
        if first["type"] == "extra_forbidden":
            hint = nearest(where, TransformerConfig.model_fields, fallback=hint)
        raise ConfigError(f"transformer: {text} in {origin}", hint) from error


def biases(t: TransformerConfig) -> BiasFields:
    """`bias: true` means in attention and FFN."""
    return t.bias if isinstance(t.bias, BiasFields) else BiasFields(attention=t.bias, ffn=t.bias)


def tree(t: TransformerConfig, origin: str) -> Block:
    """The component tree of a described decoder; without a vocabulary, its layers alone."""
    d = named("d", t.d_model, origin="d_model")
    layers = stack("decoder", layer_runs(t, d, origin))
    if t.vocab_size is None:
        return block(layers=layers)
    vocab = named("V", t.vocab_size, origin="vocab_size")
    positions = named("P", t.max_positions, origin="max_positions") if t.max_positions else None
    return block(
        embed_tokens=Embedding(rows=vocab, width=d),
        positions=Embedding(rows=positions, width=d, divided=False) if positions else None,
        layers=layers,
        norm=norm(t, d) if t.norm_position == "pre" else None,
        lm_head=Linear(
            d_in=d,
            d_out=vocab,
            bias=biases(t).head,
            category="head",
            tied_to="embed_tokens" if t.tie_embeddings else None,
            split=by_vocabulary(vocab),
        ),
    )


def layer_runs(t: TransformerConfig, d: int, origin: str) -> Iterator[Run]:
    """The layers in order: those with a dense FFN and those with experts, entry by entry."""
    start = 0
    for entry in t.layers or [LayerFields(repeat=t.n_layers or 1)]:
        moe = t.moe if entry.moe is None else entry.moe or None
        mixer = attention(t, entry, d, origin)
        for repeat, sparse in expert_pattern(moe, start, entry.repeat):
            ffn = experts(t, entry, moe, d, origin) if moe and sparse else dense(t, entry, d, origin)
            yield Run(repeat, residual_block(t, norm(t, d), mixer, ffn)) if repeat else Run(0, norm(t, d))
        start += entry.repeat


def expert_pattern(moe: MoeFields | None, start: int, count: int) -> Iterator[tuple[int, bool]]:
    """(repeat, has experts) for `count` layers from number `start` on."""
    if moe is None:
        yield count, False
    elif moe.every == 1:
        dense_ones = min(max(moe.first_dense - start, 0), count)
        yield dense_ones, False
        yield count - dense_ones, True
    else:
        for i in range(start - moe.first_dense, start - moe.first_dense + count):
            yield 1, i >= 0 and (i + 1) % moe.every == 0


def residual_block(t: TransformerConfig, norm: Norm, attn: Component, ffn: Component) -> Block:
    """Norms before the parts (pre) or after them (post): the same count, another order."""
    if t.norm_position == "pre":
        return block(attn_norm=norm, attn=attn, ffn_norm=norm, ffn=ffn)
    return block(attn=attn, attn_norm=norm, ffn=ffn, ffn_norm=norm)


def norm(t: TransformerConfig, d: int) -> Norm:
    """RMSNorm has a scale, LayerNorm a bias too."""
    return Norm(width=d, bias=t.norm == "layer")


def attention(t: TransformerConfig, entry: LayerFields, d: int, origin: str) -> Attention:
    """Grouped-query attention of one entry; what the entry leaves open is the model's."""
    h = entry.n_heads or t.n_heads
    g = entry.n_kv_heads or t.n_kv_heads or h
    d_h = entry.head_dim or t.head_dim
    if h % g:
        raise ConfigError(f"transformer: n_heads ({h}) is not divisible by n_kv_heads ({g}) in {origin}")
    if d_h is None and d % h:
        raise ConfigError(
            f"transformer: d_model ({d}) is not divisible by n_heads ({h}) in {origin}", "or state head_dim"
        )
    bias = biases(t).attention
    return Attention(
        width=d,
        heads=named("h", h, origin="n_heads"),
        kv_heads=named("g", g, origin="n_kv_heads"),
        head_dim=named("d_h", d_h or d // h, origin="head_dim" if d_h else "d / h"),
        q_bias=bias,
        k_bias=bias,
        v_bias=bias,
        out_bias=bias,
        window=entry.window,
    )


def dense(t: TransformerConfig, entry: LayerFields, d: int, origin: str, hidden: int | None = None) -> Mlp:
    """A feed-forward network; a plain one is four times the width unless stated."""
    gated = (entry.ffn or t.ffn) == "gated"
    hidden = hidden or entry.d_ff or t.d_ff
    if hidden is None and gated:
        raise ConfigError(
            f"transformer: d_ff is required for a gated ffn and missing in {origin}", "8/3 d_model is usual"
        )
    width = 4 * d if hidden is None else hidden if isinstance(hidden, Dim) else named("d_ff", hidden, origin="d_ff")
    return Mlp(width=d, hidden=width, gated=gated, bias=biases(t).ffn)


def experts(t: TransformerConfig, entry: LayerFields, moe: MoeFields, d: int, origin: str) -> Moe:
    """A router and its experts; shared ones are one network as wide as all of them."""
    expert = dense(t, entry, d, origin, named("d_e", moe.d_ff, origin="moe.d_ff") if moe.d_ff else None)
    count = named("s", moe.shared, origin="moe.shared")
    shared = expert.but(hidden=count * expert.hidden, category="shared_experts")
    return Moe(
        width=d,
        expert=expert,
        experts=named("E", moe.experts, origin="moe.experts"),
        top_k=named("k", moe.top_k, origin="moe.top_k"),
        shared=shared if moe.shared else None,
        shared_count=moe.shared,
    )
