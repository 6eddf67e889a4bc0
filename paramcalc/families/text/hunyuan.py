"""Hunyuan (later HY), dense and with experts."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import qk_norm_per_head
from paramcalc.families.builders.decoder import decoder, ignored_fields
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, SPARSE, first_dense, mlp_types
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("hunyuan_v1_dense", "hunyuan_vl_text")
def hunyuan_v1_dense(c: Config) -> Block:
    """Llama with RMS norms on each query and key head (HunYuanDenseV1ForCausalLM)."""
    c.required("head_dim")
    return decoder(c, qk_norm_per_head(c, bias=c.attention_bias), glu(c))


@family("hunyuan_v1_moe")
def hunyuan_v1_moe(c: Config) -> Block:
    """QK norms; routed experts and a shared one in every layer (HunYuanMoEV1ForCausalLM)."""
    c.required("head_dim")  # the class has no default rule
    same, depth = [c.intermediate_size] * c.num_hidden_layers, c.num_hidden_layers
    ignored_fields(
        c, moe_intermediate_size=same, num_shared_expert=[1] * depth, use_mixed_mlp_moe=True, use_qk_norm=True
    )
    ignored_fields(c, use_cla=False, use_mla=False)
    width, listed = c.intermediate_size, c.raw("num_experts_per_tok")
    tops = c.per_layer("num_experts_per_tok") if isinstance(listed, list) else None
    tops = [c.size("num_experts_per_tok", k) for k in tops] if tops else [c.num_experts_per_tok] * depth
    ffn = {k: moe(c, width, experts=c.num_local_experts, shared=width, top_k=k) for k in dict.fromkeys(tops)}
    return decoder(c, qk_norm_per_head(c, bias=c.attention_bias), ffn, ffn_words=tops)


@family("hy_v3")
def hy_v3(c: Config) -> Block:
    """QK norms, a dense layer first, then routed and shared experts (HYV3ForCausalLM)."""
    bias, n, e = c.mlp_bias, c.num_shared_experts, c.moe_intermediate_size
    experts = moe(
        c,
        e,
        experts=c.num_local_experts,
        shared=n * e if n else c.intermediate_size,  # the class treats a width of 0 as absent
        shared_count=n or 1,
        shared_bias=bias,
        correction=True,
    )
    ffn, words = {DENSE: glu(c, bias=bias), SPARSE: experts}, mlp_types(c, first_dense(c, 1))
    unbuilt_mtp(c)
    ignored_fields(c, first_k_dense_replace=words.count(DENSE))
    return decoder(c, qk_norm_per_head(c, bias=c.attention_bias), ffn, ffn_words=words)
