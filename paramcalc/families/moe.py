"""Decoders whose feed-forward network is a bank of experts with a router."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.families.normed import normed
from paramcalc.families.patterns import by_ffn, by_window, every, stepped, windowed
from paramcalc.families.registry import family
from paramcalc.families.skeletons import (
    DENSE,
    FULL,
    SLIDING,
    SPARSE,
    causal_lm,
    equal_heads,
    glu,
    gqa,
    interleaved,
    kinds,
    kv_heads,
    moe,
    pre_norm,
    rms,
)
from paramcalc.spec import Block, Norm, Run


@family("mixtral")
def mixtral(c: Config) -> Block:
    """Mistral with eight experts, two of them active, in every layer (MixtralForCausalLM)."""
    layer = pre_norm(rms(c), gqa(c, window=c.sliding_window), moe(c, c.intermediate_size, experts=c.num_experts))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("qwen2_moe")
def qwen2_moe(c: Config) -> Block:
    """Qwen2 with routed experts beside a gated shared one in the sparse layers (Qwen2MoeForCausalLM)."""
    window = c.sliding_window if c.use_sliding_window else None
    slides = every(2, FULL, otherwise=SLIDING, layers=c.num_hidden_layers)
    default = [word if window and i < c.max_window_layers else FULL for i, word in enumerate(slides)]
    attn = by_window(window, lambda width: gqa(c, qkv_bias=c.qkv_bias, window=width))
    shared = c.shared_expert_intermediate_size
    sparse = moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared, shared_gate=True)
    ffn = {DENSE: glu(c), SPARSE: sparse}
    return causal_lm(c, interleaved(c, attn, kinds(c, default), ffn, stepped(c)), norm=rms(c))


@family("qwen3_moe")
def qwen3_moe(c: Config) -> Block:
    """Qwen3's attention with routed experts in the sparse layers (Qwen3MoeForCausalLM)."""
    window = c.sliding_window if c.use_sliding_window else None
    attn = normed(c, bias=c.attention_bias, window=window)
    ffn = {DENSE: glu(c), SPARSE: moe(c, c.moe_intermediate_size, experts=c.num_experts)}
    return causal_lm(c, by_ffn(c, attn, ffn, stepped(c)), norm=rms(c))


@family("olmoe")
def olmoe(c: Config) -> Block:
    """Experts in every layer; QK norms over all heads at once, sized by d / h (OlmoeForCausalLM)."""
    bias = c.attention_bias
    q_norm, k_norm = Norm(width=c.hidden_size), Norm(width=equal_heads(c) * kv_heads(c))
    attn = gqa(c, qkv_bias=bias, out_bias=bias, q_norm=q_norm, k_norm=k_norm)
    layer = pre_norm(rms(c), attn, moe(c, c.intermediate_size, experts=c.num_experts))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("granitemoe", "granitemoeshared")
def granitemoe(c: Config) -> Block:
    """Granite with experts in every layer, perhaps beside a shared one (GraniteMoeForCausalLM)."""
    bias = c.attention_bias
    experts = moe(c, c.intermediate_size, experts=c.num_local_experts, shared=c.shared_intermediate_size or None)
    layer = pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias), experts)
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("granitemoe_swa")
def granitemoe_swa(c: Config) -> Block:
    """Granite's experts behind attention with sinks, full in every fourth layer (GraniteMoeSWAForCausalLM)."""
    bias = c.attention_bias
    experts = moe(c, c.intermediate_size, experts=c.num_local_experts, shared=c.shared_intermediate_size or None)
    layers = windowed(
        c,
        lambda window: pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias, sinks=True, window=window), experts),
        [SLIDING if i % 4 else FULL for i in range(c.num_hidden_layers)],
    )
    return causal_lm(c, layers, norm=rms(c))


@family("gpt_oss")
def gpt_oss(c: Config) -> Block:
    """Sliding and full attention in turn with a sink per head; biased experts in every layer (GptOssForCausalLM)."""
    bias = c.attention_bias
    ffn = moe(c, c.intermediate_size, experts=c.num_experts, bias=True, router_bias=True)
    layers = windowed(
        c,
        lambda window: pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias, sinks=True, window=window), ffn),
        every(2, FULL, otherwise=SLIDING, layers=c.num_hidden_layers),
    )
    return causal_lm(c, layers, norm=rms(c))
