"""Ling (model_type `bailing_...`): routed and shared experts."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, qk_norm_per_head
from paramcalc.families.builders.decoder import decoder
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, SPARSE, first_dense
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("bailing_moe", "bailing_moe_v2")
def bailing_moe(c: Config) -> Block:
    """Routed and shared experts after a few dense layers (Ling; BailingMoeForCausalLM).

    Ling 2.0 has QK norms, and correction biases of its routers, which are buffers (BailingMoeV2ForCausalLM).
    """
    c.require(not c.multi_gate, "multi_gate: routers for images and audio are not counted", "leave it out")
    attention = qk_norm_per_head if c.use_qk_norm else gqa
    attn = attention(c, qkv_bias=c.use_qkv_bias, out_bias=c.use_bias)
    sparse = moe(
        c,
        c.moe_intermediate_size,
        experts=c.num_experts,
        shared_count=c.num_shared_experts,
        correction=c.moe_router_enable_expert_bias,
    )
    words = first_dense(c, c.first_k_dense_replace)
    return decoder(c, attn, {DENSE: glu(c), SPARSE: sparse}, ffn_words=words)
