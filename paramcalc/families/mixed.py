"""Decoders of a design of their own: learned scales, loops, experts beside windows and linear attention."""

from __future__ import annotations

from math import isqrt

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Mlp
from paramcalc.components.ffn import Experts
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import (
    gqa,
    head_dim,
    head_gate,
    kv_heads,
    qk_norm_windowed,
)
from paramcalc.families.builders.decoder import causal_lm, decoder, norms_around, pre_norm, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.heads import decoder_head
from paramcalc.families.builders.layer_types import (
    DENSE,
    FULL,
    LINEAR,
    SLIDING,
    SPARSE,
    attention_types,
    every,
    first_dense,
    full_every,
    mlp_types,
)
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.builders.recurrent import delta_net
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param

# -- layers of their own kind ------------------------------------------------------------------------------------


@family("hrm_text")
def hrm_text(c: Config) -> Block:
    """Two stacks, a fast and a slow one, passed through in cycles; gated attention, bare norms (HrmTextForCausalLM)."""
    bias, norm = c.attention_bias, Norm(width=c.hidden_size, scale=False)
    gate = head_gate(c.hidden_size, c.num_attention_heads, head_dim(c), bias=bias)
    attn = gqa(c, bias=bias, inner=block(), gate=gate)  # the gate at inner.gate_proj
    layer = pre_norm(norm, attn, glu(c, bias=c.mlp_bias))
    # Stated, num_hidden_layers counts every pass through every layer; unstated, it is the depth of one stack.
    depth = c.num_layers_per_stack or c.num_hidden_layers
    slow = stack("slow decoder", Run(depth, layer, passes=c.H_cycles), causal=True)
    return causal_lm(
        c,
        Run(depth, layer, passes=c.H_cycles * c.L_cycles),
        norm=block(slow_layers=slow, norm=norm),
        before={"z_init": Param(shape=(c.hidden_size,))},
    )


@family("dory")
def dory(c: Config) -> Block:
    """Normalised transformer: learned scales in place of norms, the middle layers in a loop (DoryForCausalLM).

    Published files list attention and FFN of a layer apart, and count each as a layer: then all depths are halved.
    """
    words = c.layer_words("layer_types", (FULL, SLIDING, "mlp")) or []
    halves = 2 if "mlp" in words else 1
    depth, first, last = (n // halves for n in (c.num_hidden_layers, c.n_input_layers, c.n_output_layers))
    layers = {FULL: dory_layer(c, None), SLIDING: dory_layer(c, c.sliding_window)}
    kinds = words[::halves] or every(4, FULL, otherwise=SLIDING, layers=depth)
    loops, times = range(first, depth - last), c.n_recurrent_loops
    kept = 1 if c.recurrent_kv_cache_mode == "last_loop" else None
    head = decoder_head(c, c.hidden_size)
    scale = Param(shape=(c.vocab_size,), category="head") if "lm_head" in head else None
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=c.hidden_size),
        layers=stack(
            "decoder",
            [Run(1, layers[word], times, kept) if i in loops else Run(1, layers[word]) for i, word in enumerate(kinds)],
        ),
        **head,
        logit_scale=scale,
    )


def dory_layer(c: Config, window: int | None) -> Block:
    """nGPT's layer: scales on queries and keys, on a gate, on the FFN's channels, and on each residual step."""
    d, bias, channels = c.hidden_size, c.attention_bias, c.num_attention_heads * head_dim(c)
    scale, hidden, step = Param(shape=(channels,)), Param(shape=(c.intermediate_size,)), Param(shape=(d,))
    gate = block(gate_proj=head_gate(d, c.num_attention_heads, head_dim(c)), gate_scale=scale)
    return block(
        attn=gqa(c, bias=bias, window=window, inner=block(qk_scale=scale), gate=gate),
        attn_step=step,
        ffn=Mlp(
            width=d,
            hidden=c.intermediate_size,
            gated=True,
            bias=c.mlp_bias,
            inner=block(gate_scale=hidden, up_scale=hidden),
        ),
        ffn_step=step,
    )


@family("doge")
def doge(c: Config) -> Block:
    """Llama with a learned mask per key head, scaled residuals, and perhaps experts of one channel (DogeForCausalLM).

    Experts are picked by product keys (PEER, 2407.04153): the router scores two sets of sqrt(E) half-keys.
    """
    d, bias, g, norm = c.hidden_size, c.attention_bias, kv_heads(c), Norm(width=head_dim(c))
    mask = block(A=Param(shape=(g,)), dt_proj=Linear(d_in=g * head_dim(c), d_out=g, bias=bias))
    ffn: Component = glu(c, bias=c.mlp_bias)
    if c.is_moe:
        c.require(
            c.num_experts_per_tok <= c.num_experts,
            f"num_experts_per_tok ({c.num_experts_per_tok}) is more than there are experts ({c.num_experts})",
        )
        keys = symbolic("keys", isqrt(c.num_experts), origin="sqrt(E), rounded down")
        channel = Mlp(width=d, hidden=1, gated=False)
        ffn = block(
            shared=glu(c, bias=c.mlp_bias, category="shared_experts"),
            router=Linear(d_in=d, d_out=2 * keys, category="router"),
            experts=Experts(expert=channel, count=c.num_experts, top_k=c.num_experts_per_tok),
        )
    scale = Param(shape=(d,))
    layer = block(
        input_norm=rms(c),
        attn=gqa(c, bias=bias, qk_norm=norm, inner=mask),
        attn_scale=scale,
        post_norm=rms(c),
        ffn=ffn,
        ffn_scale=scale,
    )
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


# -- many small experts ------------------------------------------------------------------------------------------


@family("flint")
def flint(c: Config) -> Block:
    """QK norms and sinks, windows in three layers of four, experts after two dense layers (FlintForCausalLM)."""
    depth = c.num_hidden_layers
    dense = [0, 1] if c.raw("mlp_only_layers") is None else c.layer_indices("mlp_only_layers")
    sparse = moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=c.shared_expert_intermediate_size)
    has_experts = [c.num_experts > 0 and i not in dense and (i + 1) % c.decoder_sparse_step == 0 for i in range(depth)]
    full = [i < 2 or i % 4 == 1 or i == depth - 1 for i in range(depth)]
    return decoder(
        c,
        qk_norm_windowed(c, sinks=True),
        {DENSE: glu(c), SPARSE: sparse},
        attention_types(c, [FULL if here else SLIDING for here in full]),
        [SPARSE if here else DENSE for here in has_experts],
    )


@family("kolibri1")
def kolibri1(c: Config) -> Block:
    """Norms around each part, full attention in every fifth layer, experts in all of them (Kolibri1ForCausalLM)."""
    shared = c.shared_expert_intermediate_size
    experts = moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared, correction=True)
    return decoder(c, qk_norm_windowed(c), experts, full_every(c, 5), layer=norms_around)


@family("mellum")
def mellum(c: Config) -> Block:
    """Qwen3-MoE with words for the attention and the FFN of each layer (MellumForCausalLM)."""
    unbuilt_mtp(c, "num_mtp_layers")
    ffn = {DENSE: glu(c), SPARSE: moe(c, c.moe_intermediate_size, experts=c.num_experts)}
    return decoder(c, qk_norm_windowed(c), ffn, full_every(c, 1), mlp_types(c, first_dense(c, 0)))


@family("beam")
def beam(c: Config) -> Block:
    """Gated attention, norms around each part, windows in five layers of six, three dense first (BeamForCausalLM)."""
    depth, h = c.num_hidden_layers, c.num_attention_heads
    gate = block(gate_proj=head_gate(c.hidden_size, h, head_dim(c)), gate_bias=Param(shape=(h,)))
    return decoder(
        c,
        qk_norm_windowed(c, gate=gate),
        {DENSE: glu(c), SPARSE: moe(c, c.moe_intermediate_size, experts=c.num_experts, correction=True)},
        attention_types(c, [*every(6, FULL, otherwise=SLIDING, layers=depth - 1), FULL]),
        mlp_types(c, first_dense(c, 3)),
        layer=norms_around,
    )


@family("lara_mini")
def lara_mini(c: Config) -> Block:
    """Linear, sliding and full attention in a pattern of five, experts in every layer (LaraMiniForCausalLM)."""
    shared, pattern = c.shared_expert_intermediate_size, [LINEAR, SLIDING, LINEAR, FULL, SLIDING]
    default = [pattern[i % len(pattern)] for i in range(c.num_hidden_layers)]
    attn = qk_norm_windowed(c) | {LINEAR: delta_net(c)}
    experts = moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared)
    return decoder(c, attn, experts, c.layer_words("layer_types", (FULL, SLIDING, LINEAR)) or default)
