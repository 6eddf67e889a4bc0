"""Decoders whose feed-forward network is a bank of experts with a router."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.families.registry import family
from paramcalc.families.skeletons import (
    FULL,
    SLIDING,
    causal_lm,
    equal_heads,
    every,
    glu,
    gqa,
    head_dim,
    kinds,
    kv_heads,
    moe,
    pre_norm,
    rms,
    sparse_layers,
)
from paramcalc.spec import Block, Component, Norm, Run

SIZES = dict(
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=None,
)
QWEN_MOE = SIZES | dict(
    vocab_size=151936,
    hidden_size=2048,
    num_hidden_layers=24,
    decoder_sparse_step=1,
    mlp_only_layers=None,
    use_sliding_window=False,
    sliding_window=4096,
)


@family(
    "mixtral",
    "MixtralForCausalLM",
    names=dict(num_experts="num_local_experts"),
    defaults=SIZES | dict(num_experts=8, num_experts_per_tok=2, sliding_window=None),
)
def mixtral(c: Config) -> Block:
    """Mistral with eight experts, two of them active, in every layer (MixtralForCausalLM)."""
    layer = pre_norm(rms(c), gqa(c, window=c.sliding_window), moe(c, c.intermediate_size, experts=c.num_experts))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family(
    "qwen2_moe",
    "Qwen2MoeForCausalLM",
    defaults=QWEN_MOE
    | dict(
        intermediate_size=5632,
        num_attention_heads=16,
        num_key_value_heads=16,
        qkv_bias=True,
        num_experts=60,
        num_experts_per_tok=4,
        moe_intermediate_size=1408,
        shared_expert_intermediate_size=5632,
        max_window_layers=28,
        layer_types=None,
    ),
    nullable=["sliding_window"],
)
def qwen2_moe(c: Config) -> Block:
    """Qwen2 with routed experts beside a gated shared one in the sparse layers (Qwen2MoeForCausalLM)."""
    window = c.sliding_window if c.use_sliding_window else None
    slides = every(2, FULL, otherwise=SLIDING, layers=c.num_hidden_layers)
    default = [word if window and i < c.max_window_layers else FULL for i, word in enumerate(slides)]
    attn = {kind: gqa(c, qkv_bias=c.qkv_bias, window=w) for kind, w in ((FULL, None), (SLIDING, window))}
    shared = c.shared_expert_intermediate_size
    sparse = moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared, shared_gate=True)
    ffn: dict[bool, Component] = {False: glu(c), True: sparse}
    layers = {(kind, has): pre_norm(rms(c), attn[kind], ffn[has]) for kind in attn for has in ffn}
    return causal_lm(c, [layers[key] for key in zip(kinds(c, default), sparse_layers(c), strict=True)], norm=rms(c))


@family(
    "qwen3_moe",
    "Qwen3MoeForCausalLM",
    names=dict(num_experts="num_local_experts"),
    defaults=QWEN_MOE
    | dict(
        intermediate_size=6144,
        num_key_value_heads=4,
        attention_bias=False,
        num_experts=128,
        num_experts_per_tok=8,
        moe_intermediate_size=768,
    ),
    unused=["max_window_layers"],
)
def qwen3_moe(c: Config) -> Block:
    """Qwen3's attention with routed experts in the sparse layers (Qwen3MoeForCausalLM)."""
    bias, norm = c.attention_bias, Norm(width=head_dim(c))
    window = c.sliding_window if c.use_sliding_window else None
    attn = gqa(c, qkv_bias=bias, out_bias=bias, q_norm=norm, k_norm=norm, window=window)
    layers = {
        False: pre_norm(rms(c), attn, glu(c)),
        True: pre_norm(rms(c), attn, moe(c, c.moe_intermediate_size, experts=c.num_experts)),
    }
    return causal_lm(c, [layers[sparse] for sparse in sparse_layers(c)], norm=rms(c))


@family(
    "olmoe",
    "OlmoeForCausalLM",
    names=dict(num_local_experts="num_experts"),
    defaults=SIZES
    | dict(
        vocab_size=50304,
        hidden_size=2048,
        intermediate_size=2048,
        num_hidden_layers=16,
        num_attention_heads=16,
        num_key_value_heads=None,
        attention_bias=False,
        num_experts=64,
        num_experts_per_tok=8,
    ),
)
def olmoe(c: Config) -> Block:
    """Experts in every layer; QK norms over all heads at once, sized by d / h (OlmoeForCausalLM)."""
    bias = c.attention_bias
    q_norm, k_norm = Norm(width=c.hidden_size), Norm(width=equal_heads(c) * kv_heads(c))
    attn = gqa(c, qkv_bias=bias, out_bias=bias, q_norm=q_norm, k_norm=k_norm)
    layer = pre_norm(rms(c), attn, moe(c, c.intermediate_size, experts=c.num_experts))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


GRANITE = SIZES | dict(
    intermediate_size=11008,
    num_key_value_heads=None,
    attention_bias=False,
    num_local_experts=8,
    num_experts_per_tok=2,
)


@family("granitemoe", "GraniteMoeForCausalLM", defaults=GRANITE, fixed=dict(shared_intermediate_size=0))
@family("granitemoeshared", "GraniteMoeSharedForCausalLM", defaults=GRANITE | dict(shared_intermediate_size=0))
def granitemoe(c: Config) -> Block:
    """Granite with experts in every layer, perhaps beside a shared one (GraniteMoeForCausalLM)."""
    bias = c.attention_bias
    experts = moe(c, c.intermediate_size, experts=c.num_local_experts, shared=c.shared_intermediate_size or None)
    layer = pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias), experts)
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family(
    "granitemoe_swa",
    "GraniteMoeSWAForCausalLM",
    defaults=GRANITE | dict(shared_intermediate_size=0, sliding_window=128, layer_types=None),
    nullable=["sliding_window"],
)
def granitemoe_swa(c: Config) -> Block:
    """Granite's experts behind attention with sinks, full in every fourth layer (GraniteMoeSWAForCausalLM)."""
    bias = c.attention_bias
    experts = moe(c, c.intermediate_size, experts=c.num_local_experts, shared=c.shared_intermediate_size or None)
    layers = {
        kind: pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias, sinks=True, window=window), experts)
        for kind, window in ((FULL, None), (SLIDING, c.sliding_window))
    }
    words = kinds(c, [SLIDING if i % 4 else FULL for i in range(c.num_hidden_layers)])
    return causal_lm(c, [layers[word] for word in words], norm=rms(c))


@family(
    "gpt_oss",
    "GptOssForCausalLM",
    names=dict(num_experts="num_local_experts"),
    defaults=SIZES
    | dict(
        vocab_size=201088,
        hidden_size=2880,
        intermediate_size=2880,
        num_hidden_layers=36,
        num_attention_heads=64,
        head_dim=64,
        attention_bias=True,
        num_experts=128,
        num_experts_per_tok=4,
        sliding_window=128,
        layer_types=None,
    ),
    nullable=["num_key_value_heads"],
    unused=["experts_per_token"],  # stands in published files beside num_experts_per_tok
)
def gpt_oss(c: Config) -> Block:
    """Sliding and full attention in turn with a sink per head; biased experts in every layer (GptOssForCausalLM)."""
    bias = c.attention_bias
    ffn = moe(c, c.intermediate_size, experts=c.num_experts, bias=True, router_bias=True)
    layers = {
        kind: pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias, sinks=True, window=window), ffn)
        for kind, window in ((FULL, None), (SLIDING, c.sliding_window))
    }
    words = kinds(c, every(2, FULL, otherwise=SLIDING, layers=c.num_hidden_layers))
    return causal_lm(c, [layers[word] for word in words], norm=rms(c))
