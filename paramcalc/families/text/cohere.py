"""Cohere's Command models: attention and FFN in parallel."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, qk_norm_separate, sliding
from paramcalc.families.builders.decoder import decoder, parallel
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import (
    DENSE,
    FULL,
    SLIDING,
    SPARSE,
    attention_types,
    every,
    first_dense,
    full_every,
    mlp_types,
)
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("cohere")
def cohere(c: Config) -> Block:
    """Parallel attention and FFN behind one norm without bias; QK norms per head (CohereForCausalLM)."""
    attn = (qk_norm_separate if c.use_qk_norm else gqa)(c, bias=c.attention_bias)
    return decoder(c, attn, glu(c), layer=parallel)


@family("cohere2")
def cohere2(c: Config) -> Block:
    """Cohere without QK norms; full attention in every fourth layer (Cohere2ForCausalLM)."""
    attn = sliding(gqa(c, bias=c.attention_bias), c.sliding_window)
    return decoder(c, attn, glu(c), full_every(c, c.sliding_window_pattern), layer=parallel)


@family("cohere2_moe")
def cohere2_moe(c: Config) -> Block:
    """Parallel attention and FFN behind one norm, dense layers first, then experts (Cohere2MoeForCausalLM)."""
    attn = sliding(gqa(c, bias=c.attention_bias), c.sliding_window)
    first, depth = c.first_k_dense_replace, c.num_hidden_layers
    c.require(first <= depth, f"first_k_dense_replace ({first}) is more than num_hidden_layers ({depth})")
    words = every(c.prefix_dense_sliding_window_pattern, FULL, otherwise=SLIDING, layers=first)
    words += every(c.sliding_window_pattern, FULL, otherwise=SLIDING, layers=depth - first)
    experts = moe(c, c.intermediate_size, experts=c.num_experts, shared_count=c.num_shared_experts)
    ffn = {DENSE: glu(c, c.prefix_dense_intermediate_size), SPARSE: experts}
    return decoder(c, attn, ffn, attention_types(c, words), mlp_types(c, first_dense(c, first)), layer=parallel)


@family("cohere_compass_text")
def cohere_compass_text(c: Config) -> Block:
    """Cohere 2 with full attention in every layer by default (CohereCompassForCausalLM)."""
    attn = sliding(gqa(c, bias=c.attention_bias), c.sliding_window)
    return decoder(c, attn, glu(c), full_every(c, 1), layer=parallel)
