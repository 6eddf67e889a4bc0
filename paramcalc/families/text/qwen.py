"""Qwen to Qwen3, dense and with experts."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Attention
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, qk_norm_per_head, sliding
from paramcalc.families.builders.decoder import decoder
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import (
    DENSE,
    FULL,
    SLIDING,
    SPARSE,
    attention_types,
    every,
    sparse_step_types,
)
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("qwen")
def qwen(c: Config) -> Block:
    """Llama with biases on q, k and v; intermediate_size is the width of gate and up together (QWenLMHeadModel)."""
    d, d_h, bias = c.hidden_size, c.kv_channels, not c.no_bias
    c.require(c.num_attention_heads * d_h == d, f"kv_channels ({d_h}) times the heads is not hidden_size ({d})")
    half = symbolic("d_ff", c.intermediate_size // 2, origin="intermediate_size / 2")
    return decoder(c, gqa(c, qkv_bias=True, out_bias=bias, d_h=d_h), glu(c, half, bias=bias))


@family("qwen2", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text")
def qwen2(c: Config) -> Block:
    """Llama with biases on q, k and v; optional sliding windows from max_window_layers on (Qwen2ForCausalLM)."""
    return late_windows(c, gqa(c, qkv_bias=True))


@family("qwen3", "qwen3_vl_text")
def qwen3(c: Config) -> Block:
    """Llama with RMS norms on each query and key head (Qwen3ForCausalLM)."""
    return late_windows(c, qk_norm_per_head(c, bias=c.attention_bias))


def late_windows(c: Config, attn: Attention) -> Block:
    """Llama with sliding windows from layer max_window_layers on (if use_sliding_window), or as in layer_types."""
    window = c.sliding_window if c.use_sliding_window else None
    first = c.max_window_layers if window else c.num_hidden_layers
    words = attention_types(c, [FULL if i < first else SLIDING for i in range(c.num_hidden_layers)])
    return decoder(c, sliding(attn, window), glu(c), words)


@family("qwen2_moe")
def qwen2_moe(c: Config) -> Block:
    """Qwen2 with routed experts and a gated shared one in the sparse layers (Qwen2MoeForCausalLM)."""
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
