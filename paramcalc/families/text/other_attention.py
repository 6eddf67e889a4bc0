"""Decoders with unique kinds of attention: over experts, convolved, hashed."""

from __future__ import annotations

from paramcalc.components import ConvolvedAttention, ExpertAttention, HashedAttention
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import kv_heads, sized_attention
from paramcalc.families.builders.decoder import causal_lm, decoder, layer_norm, learned_positions, pre_norm, rms
from paramcalc.families.builders.ffn import mlp, moe
from paramcalc.families.builders.heads import num_labels, unknown_head
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("jetmoe")
def jetmoe(c: Config) -> Block:
    """Experts in attention and in the FFN, each with a bias on its output (JetMoeForCausalLM)."""
    attn = ExpertAttention(
        width=c.hidden_size,
        kv_heads=c.num_key_value_heads,
        head_dim=c.head_dim,
        experts=c.num_local_experts,
        top_k=c.num_experts_per_tok,
    )
    experts = moe(c, c.intermediate_size, experts=c.num_local_experts)
    ffn = block(moe=experts, bias=Param(shape=(c.hidden_size,), category="ffn"))
    return decoder(c, attn, ffn)


@family("zaya")
def zaya(c: Config) -> Block:
    """Convolved attention and top-1 experts, each with a weighted residual (ZayaForCausalLM)."""
    c.require(c.num_experts_per_tok == 1, "num_experts_per_tok must be 1")
    words = c.layer_words("layer_types", ("hybrid", "hybrid_sliding")) or ["hybrid"] * c.num_hidden_layers
    layer = {word: zaya_layer(c, word, first=False) for word in dict.fromkeys(words)}
    layers = [zaya_layer(c, words[0], first=True), *(layer[word] for word in words[1:])]
    vector = Param(shape=(c.hidden_size,))
    before = {"input_scale": vector, "input_bias": vector}
    return causal_lm(c, layers, norm=rms(c), before=before, head_bias=c.lm_head_bias)


def zaya_layer(c: Config, word: str, *, first: bool) -> Block:
    """One layer; its router is an MLP that adds the previous router's state and may select no expert."""
    d, r, vector = c.hidden_size, c.router_hidden_size, Param(shape=(c.hidden_size,))
    residual = block(scale=vector, bias=vector, residual_scale=vector, residual_bias=vector)
    window = c.sliding_window if word == "hybrid_sliding" else None
    c.require(window is not None or word == "hybrid", "sliding_window is missing, but layer_types has hybrid_sliding")
    attn = ConvolvedAttention(
        width=d,
        heads=c.num_attention_heads,
        kv_heads=kv_heads(c),
        head_dim=c.head_dim,
        kernels=(c.cca_time0, c.cca_time1),
        bias=c.attention_bias,
        window=window,
    )
    router = block(
        "router",
        down_proj=Linear(d_in=d, d_out=r, bias=True),
        states_scale=None if first else Param(shape=(r,)),
        norm=Norm(width=r),
        fc1=Linear(d_in=r, d_out=r, bias=True),
        fc2=Linear(d_in=r, d_out=r, bias=True),
        out_proj=Linear(d_in=r, d_out=c.num_experts + 1),
        correction=Param(shape=(c.num_experts + 1,), buffer=True),
    )
    ffn = moe(c, c.moe_intermediate_size, experts=c.num_experts, router=router)
    return block(input_norm=rms(c), attn=attn, attn_residual=residual, post_norm=rms(c), ffn=ffn, ffn_residual=residual)


# -- Reformer --------------------------------------------------------------------------------------------------------


@family("reformer")
def reformer(c: Config) -> Block:
    """Reversible layers of local and hashed attention, axial positions (ReformerModelWithLMHead)."""
    c.require(c.is_decoder or c.head != "lm", "is_decoder must be true", "a causal head needs a causal model")
    d, words = c.hidden_size, reformer_layer_types(c)
    h, d_h = c.num_attention_heads, c.attention_head_size
    hashed = HashedAttention(width=d, heads=h, head_dim=d_h, hashes=c.num_hashes)
    kinds: dict[str, Component] = {"local": sized_attention(d, h, d_h, keeps_inputs=True), "lsh": hashed}
    layers = [pre_norm(layer_norm(c), kinds[word], mlp(c, c.feed_forward_size)) for word in words]
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=d),
        positions=axial_positions(c) if c.axial_pos_embds else learned_positions(c),
        layers=stack("decoder", layers, causal=c.is_decoder),
        norm=Norm(width=2 * d, bias=True),  # over both streams of the reversible layers
        **reformer_head(c),
    )


def reformer_layer_types(c: Config) -> list[str]:
    """The attention of each layer. A list with one type fits any depth; with two it may exceed the depth."""
    words = c.list_of("attn_layers") or []
    c.require(set(words) <= {"local", "lsh"}, f"attn_layers {words} has unknown words", "known: local, lsh")
    depth = c.num_hidden_layers or len(words)
    if len(set(words)) == 1:
        return words[:1] * depth
    c.require(depth <= len(words), f"attn_layers has {len(words)} words for {depth} layers")
    return list(words[:depth])


def axial_positions(c: Config) -> Block:
    """One table for each axis of a grid of positions; their vectors are concatenated to the width."""
    shape, widths = c.layer_indices("axial_pos_shape") or [64, 64], c.layer_indices("axial_pos_embds_dim") or [64, 192]
    c.require(
        sum(widths) == c.hidden_size and len(widths) == len(shape),
        f"axial_pos_embds_dim {widths} does not add up to hidden_size ({c.hidden_size})",
        "one width for each axis",
    )
    return block(
        **{f"axis_{i}": Embedding(rows=n, width=w) for i, (n, w) in enumerate(zip(shape, widths, strict=True))}
    )


def reformer_head(c: Config) -> dict[str, Component]:
    """Heads on both streams; the language model head holds its bias twice."""
    d = c.hidden_size
    match c.head:
        case "lm" | "masked_lm":
            decoder = Linear(d_in=2 * d, d_out=c.vocab_size, bias=True, category="head")
            return {"lm_head": decoder, "spare_bias": Param(shape=(c.vocab_size,), category="head")}
        case "sequence_classification":
            dense = Linear(d_in=2 * d, d_out=d, bias=True, category="head")
            return {"transform": dense, "classifier": Linear(d_in=d, d_out=num_labels(c), bias=True, category="head")}
        case "question_answering":
            return {"qa_outputs": Linear(d_in=2 * d, d_out=num_labels(c), bias=True, category="head")}
        case "none":
            return {}
    raise unknown_head(c)
