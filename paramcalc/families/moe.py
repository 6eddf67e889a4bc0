"""Decoders whose feed-forward network is a bank of experts with a router."""

from __future__ import annotations

from paramcalc.components import Moe
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, kv_heads, qk_norm_per_head, sliding
from paramcalc.families.builders.decoder import decoder
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import (
    DENSE,
    FULL,
    SLIDING,
    SPARSE,
    attention_types,
    every,
    full_every,
    full_first,
    sparse_step_types,
)
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block
from paramcalc.tree.leaves import Norm


@family("mixtral")
def mixtral(c: Config) -> Block:
    """Mistral with eight experts, two of them active, in every layer (MixtralForCausalLM)."""
    return decoder(c, gqa(c, window=c.sliding_window), moe(c, c.intermediate_size, experts=c.num_experts))


@family("qwen2_moe")
def qwen2_moe(c: Config) -> Block:
    """Qwen2 with routed experts beside a gated shared one in the sparse layers (Qwen2MoeForCausalLM)."""
    window = c.sliding_window if c.use_sliding_window else None
    slides = every(2, FULL, otherwise=SLIDING, layers=c.num_hidden_layers)
    words = attention_types(c, [word if window and i < c.max_window_layers else FULL for i, word in enumerate(slides)])
    shared = c.shared_expert_intermediate_size
    sparse = moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared, shared_gate=True)
    attn = sliding(gqa(c, qkv_bias=c.qkv_bias), window)
    return decoder(c, attn, {DENSE: glu(c), SPARSE: sparse}, words, sparse_step_types(c))


@family("qwen3_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text")
def qwen3_moe(c: Config) -> Block:
    """Qwen3's attention with routed experts in the sparse layers (Qwen3MoeForCausalLM)."""
    attn = qk_norm_per_head(c, bias=c.attention_bias, window=c.sliding_window if c.use_sliding_window else None)
    ffn = {DENSE: glu(c), SPARSE: moe(c, c.moe_intermediate_size, experts=c.num_experts)}
    return decoder(c, attn, ffn, ffn_words=sparse_step_types(c))


@family("olmoe")
def olmoe(c: Config) -> Block:
    """Experts in every layer; QK norms over all heads at once, sized by d / h (OlmoeForCausalLM)."""
    q_norm, k_norm = Norm(width=c.hidden_size), Norm(width=equal_heads(c) * kv_heads(c))
    attn = gqa(c, bias=c.attention_bias, q_norm=q_norm, k_norm=k_norm)
    return decoder(c, attn, moe(c, c.intermediate_size, experts=c.num_experts))


@family("granitemoe", "granitemoeshared")
def granitemoe(c: Config) -> Block:
    """Granite with experts in every layer, perhaps beside a shared one (GraniteMoeForCausalLM)."""
    return decoder(c, gqa(c, bias=c.attention_bias), granite_experts(c))


def granite_experts(c: Config) -> Moe:
    """Routed experts, and a shared one where a width is stated for it."""
    return moe(c, c.intermediate_size, experts=c.num_local_experts, shared=c.shared_intermediate_size or None)


@family("granitemoe_swa")
def granitemoe_swa(c: Config) -> Block:
    """Granite's experts behind attention with sinks, full in every fourth layer (GraniteMoeSWAForCausalLM)."""
    attn = sliding(gqa(c, bias=c.attention_bias, sinks=True), c.sliding_window)
    return decoder(c, attn, granite_experts(c), attention_types(c, full_first(c, 4)))


@family("gpt_oss")
def gpt_oss(c: Config) -> Block:
    """Sliding and full attention in turn with a sink per head; biased experts in every layer (GptOssForCausalLM)."""
    ffn = moe(c, c.intermediate_size, experts=c.num_experts, bias=True, router_bias=True)
    attn = sliding(gqa(c, bias=c.attention_bias, sinks=True), c.sliding_window)
    return decoder(c, attn, ffn, full_every(c, 2))
