"""paramcalc's own family, `model_type: transformer`: a decoder described in a few words, for models not yet built."""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.base.errors import ConfigError
from paramcalc.base.symbolic import SymbolicInt, symbolic
from paramcalc.components import Attention, Mlp, Moe
from paramcalc.families.builders.attention import sized_attention
from paramcalc.families.native.config import BiasFields, LayerFields, MoeFields, TransformerConfig
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm
from paramcalc.tree.weights import by_vocabulary


def native_biases(t: TransformerConfig) -> BiasFields:
    """Biases of attention and FFN: `bias: true` sets both."""
    return t.bias if isinstance(t.bias, BiasFields) else BiasFields(attention=t.bias, ffn=t.bias)


def native_tree(t: TransformerConfig, origin: str) -> Block:
    """The component tree of a described decoder; without a vocabulary, only its layers."""
    d = symbolic("d", t.d_model, origin="d_model")
    layers = stack("decoder", native_runs(t, d, origin))
    if t.vocab_size is None:
        return block(layers=layers)
    vocab = symbolic("V", t.vocab_size, origin="vocab_size")
    positions = symbolic("P", t.max_positions, origin="max_positions") if t.max_positions else None
    return block(
        embed_tokens=Embedding(rows=vocab, width=d),
        positions=Embedding(rows=positions, width=d, sharded=False) if positions else None,
        layers=layers,
        norm=native_norm(t, d) if t.norm_position == "pre" else None,
        lm_head=Linear(
            d_in=d,
            d_out=vocab,
            bias=native_biases(t).head,
            category="head",
            tied_to="embed_tokens" if t.tie_embeddings else None,
            split=by_vocabulary(vocab),
        ),
    )


def native_runs(t: TransformerConfig, d: int, origin: str) -> Iterator[Run]:
    """The layers in order: runs with a dense FFN and runs with experts, entry by entry."""
    start = 0
    for entry in t.layers or [LayerFields(repeat=t.n_layers or 1)]:
        moe = t.moe if entry.moe is None else entry.moe or None
        mixer = native_attention(t, entry, d, origin)
        built: dict[bool, Block] = {}  # equal layers are one object, which is counted once
        for repeat, sparse in expert_pattern(moe, start, entry.repeat):
            if repeat and sparse not in built:
                ffn = native_moe(t, entry, moe, d, origin) if moe and sparse else native_ffn(t, entry, d, origin)
                built[sparse] = residual_block(t, native_norm(t, d), mixer, ffn)
            yield Run(repeat, built[sparse]) if repeat else Run(0, native_norm(t, d))
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
    """Norms before the sublayers (pre) or after them (post); both have the same count."""
    if t.norm_position == "pre":
        return block(attn_norm=norm, attn=attn, ffn_norm=norm, ffn=ffn)
    return block(attn=attn, attn_norm=norm, ffn=ffn, ffn_norm=norm)


def native_norm(t: TransformerConfig, d: int) -> Norm:
    """RMSNorm has a scale; LayerNorm has a bias too."""
    return Norm(width=d, bias=t.norm == "layer")


def native_attention(t: TransformerConfig, entry: LayerFields, d: int, origin: str) -> Attention:
    """Grouped-query attention of one entry; omitted fields are those of the model."""
    h = entry.n_heads or t.n_heads
    g = entry.n_kv_heads or t.n_kv_heads or h
    d_h = entry.head_dim or t.head_dim
    if h % g:
        raise ConfigError(f"transformer: n_heads ({h}) is not divisible by n_kv_heads ({g}) in {origin}")
    if d_h is None and d % h:
        raise ConfigError(
            f"transformer: d_model ({d}) is not divisible by n_heads ({h}) in {origin}", "or state head_dim"
        )
    heads, kv_heads = symbolic("h", h, origin="n_heads"), symbolic("g", g, origin="n_kv_heads")
    head_dim = symbolic("d_h", d_h or d // h, origin="head_dim" if d_h else "d / h")
    return sized_attention(d, heads, head_dim, kv_heads=kv_heads, bias=native_biases(t).attention, window=entry.window)


def native_ffn(t: TransformerConfig, entry: LayerFields, d: int, origin: str, hidden: int | None = None) -> Mlp:
    """A feed-forward network; a plain one is four times as wide by default."""
    gated = (entry.ffn or t.ffn) == "gated"
    hidden = hidden or entry.d_ff or t.d_ff
    if hidden is None and gated:
        raise ConfigError(
            f"transformer: d_ff is required for a gated ffn and missing in {origin}", "8/3 d_model is usual"
        )
    width = (
        4 * d
        if hidden is None
        else hidden
        if isinstance(hidden, SymbolicInt)
        else symbolic("d_ff", hidden, origin="d_ff")
    )
    return Mlp(width=d, hidden=width, gated=gated, bias=native_biases(t).ffn)


def native_moe(t: TransformerConfig, entry: LayerFields, moe: MoeFields, d: int, origin: str) -> Moe:
    """A router and its experts; shared ones are one network as wide as all of them."""
    expert = native_ffn(t, entry, d, origin, symbolic("d_e", moe.d_ff, origin="moe.d_ff") if moe.d_ff else None)
    count = symbolic("s", moe.shared, origin="moe.shared")
    shared = expert.replace(hidden=count * expert.hidden, category="shared_experts")
    return Moe(
        width=d,
        expert=expert,
        experts=symbolic("E", moe.experts, origin="moe.experts"),
        top_k=symbolic("k", moe.top_k, origin="moe.top_k"),
        shared=shared if moe.shared else None,
        shared_count=moe.shared,
    )
