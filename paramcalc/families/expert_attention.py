"""Sparse decoders with attention of their own: experts in it, or convolutions before it."""

from __future__ import annotations

from paramcalc.components import ConvolvedAttention, ExpertAttention
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import kv_heads
from paramcalc.families.builders.decoder import causal_lm, decoder, rms
from paramcalc.families.builders.ffn import moe
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear, Norm, Param


@family("jetmoe")
def jetmoe(c: Config) -> Block:
    """Experts in attention and FFN alike, each kind with a bias on its output (JetMoeForCausalLM)."""
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
    """Convolved attention and one expert of many, each with a weighted residual (ZayaForCausalLM)."""
    c.require(c.num_experts_per_tok == 1, "num_experts_per_tok must be 1")
    words = c.layer_words("layer_types", ("hybrid", "hybrid_sliding")) or ["hybrid"] * c.num_hidden_layers
    layer = {word: zaya_layer(c, word, first=False) for word in dict.fromkeys(words)}
    layers = [zaya_layer(c, words[0], first=True), *(layer[word] for word in words[1:])]
    vector = Param(shape=(c.hidden_size,))
    before = {"input_scale": vector, "input_bias": vector}
    return causal_lm(c, layers, norm=rms(c), before=before, head_bias=c.lm_head_bias)


def zaya_layer(c: Config, word: str, *, first: bool) -> Block:
    """A layer; its router is an MLP that adds what the layer before thought, and may choose no expert at all."""
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
