"""Sparse decoders of the second wave: many small experts, often beside shared ones, and one kind of attention."""

from __future__ import annotations

from typing import Any

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, mha, qk_norm_all_heads, qk_norm_per_head
from paramcalc.families.builders.decoder import decoder, ignored_fields, layer_norm, norms_after, pre_norm, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, SPARSE, dense_then_sparse, first_dense, mlp_types
from paramcalc.families.builders.mtp import mtp_modules, unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block
from paramcalc.tree.leaves import Norm


@family("aria_text")
def aria_text(c: Config) -> Block:
    """Llama with routed and shared experts in every layer (AriaTextForCausalLM)."""
    c.require(c.hidden_size % c.num_attention_heads == 0, "hidden_size is not a multiple of num_attention_heads")
    width, n, bias = c.intermediate_size, c.moe_num_shared_experts, c.mlp_bias
    shared = n * width  # their network is there without any, too, with its last bias
    experts = moe(
        c, width, experts=c.moe_num_experts, top_k=c.moe_topk, shared=shared, shared_count=n, shared_bias=bias
    )
    return decoder(c, gqa(c, bias=c.attention_bias), experts)


@family("ernie4_5_moe")
def ernie4_5_moe(c: Config) -> Block:
    """Llama with experts in every moe_layer_interval-th layer from one layer to another (Ernie4_5_MoeForCausalLM)."""
    bias = c.use_bias
    ignored_fields(c, moe_use_aux_free=True)
    unbuilt_mtp(c)
    shared: dict[str, Any] = dict(shared_count=c.moe_num_shared_experts, shared_bias=bias)
    corrected: dict[str, Any] = dict(correction=True, correction_counted=True)
    experts = moe(c, c.moe_intermediate_size, experts=c.num_experts, **shared, **corrected)
    ffn = {DENSE: glu(c, bias=bias), SPARSE: experts}
    return decoder(c, gqa(c, bias=bias), ffn, ffn_words=ernie_ffn_types(c), head_bias=bias)


def ernie_ffn_types(c: Config) -> list[str]:
    """Which layers have experts; an end of -1 is the last layer."""
    depth, last = c.num_hidden_layers, c.raw("moe_layer_end_index")
    end = depth - 1 if last in (None, -1) else c.moe_layer_end_index
    step, start = c.moe_layer_interval, c.moe_layer_start_index
    return [SPARSE if (i + 1) % step == 0 and start <= i <= end else DENSE for i in range(depth)]


@family("flex_olmo")
def flex_olmo(c: Config) -> Block:
    """OLMo 2's layer, norms after its parts, with experts in every one (FlexOlmoForCausalLM)."""
    experts = moe(c, c.intermediate_size, experts=c.num_local_experts)
    return decoder(c, qk_norm_all_heads(c, bias=c.attention_bias), experts, layer=norms_after)


@family("glm4_moe", "glm4v_moe_text", "sarvam_moe", "solar_open")
def glm4_moe(c: Config) -> Block:
    """Grouped-query attention, biases on q, k and v only; dense layers first, then experts (Glm4MoeForCausalLM)."""
    e, n = c.moe_intermediate_size, c.n_shared_experts
    d_h = c.head_dim or symbolic("d_h", c.hidden_size // c.num_attention_heads, origin="d / h, rounded down")
    attn = gqa(c, qkv_bias=c.attention_bias, qk_norm=Norm(width=d_h) if c.use_qk_norm else None, d_h=d_h)
    experts = moe(c, e, experts=c.num_local_experts, shared=n * e, shared_count=n, correction=True)
    mtp = mtp_modules(c, pre_norm(rms(c), attn, experts))
    return decoder(c, attn, {DENSE: glu(c), SPARSE: experts}, ffn_words=dense_then_sparse(c), mtp=mtp)


@family("dbrx")
def dbrx(c: Config) -> Block:
    """Grouped-query attention and experts behind LayerNorms without biases, sized in sections (DbrxForCausalLM)."""
    attn, ffn = c.section("attn_config"), c.section("ffn_config")
    c.require(not c.tie_word_embeddings, "tie_word_embeddings is not supported")
    # The class sizes the experts before it takes the other name.
    c.require(c.key("hidden_size") == "d_model", "hidden_size does not reach the experts", "write d_model")
    experts = moe(c, ffn.ffn_hidden_size, experts=ffn.moe_num_experts, top_k=ffn.moe_top_k)
    return decoder(c, mha(c, bias=False, kv=attn.kv_n_heads), experts)


@family("hunyuan_v1_moe")
def hunyuan_v1_moe(c: Config) -> Block:
    """Normed queries and keys; routed experts and a shared one in every layer (HunYuanMoEV1ForCausalLM)."""
    c.required("head_dim")  # the class has no rule for it
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
    """Normed queries and keys, a dense layer first, then routed and shared experts (HYV3ForCausalLM)."""
    bias, n, e = c.mlp_bias, c.num_shared_experts, c.moe_intermediate_size
    experts = moe(
        c,
        e,
        experts=c.num_local_experts,
        shared=n * e if n else c.intermediate_size,  # the class takes a width of 0 for "not stated"
        shared_count=n or 1,
        shared_bias=bias,
        correction=True,
    )
    ffn, words = {DENSE: glu(c, bias=bias), SPARSE: experts}, mlp_types(c, first_dense(c, 1))
    unbuilt_mtp(c)
    ignored_fields(c, first_k_dense_replace=words.count(DENSE))
    return decoder(c, qk_norm_per_head(c, bias=c.attention_bias), ffn, ffn_words=words)


@family("minimax_m2")
def minimax_m2(c: Config) -> Block:
    """QK norms over all heads at once, experts in every layer (MiniMaxM2ForCausalLM)."""
    experts = moe(c, c.intermediate_size, experts=c.num_experts, correction=True)
    ignored_fields(c, use_qk_norm=True, qk_norm_type="per_layer", use_routing_bias=True, shared_intermediate_size=0)
    unbuilt_mtp(c, "num_mtp_modules")
    return decoder(c, qk_norm_all_heads(c), experts)


@family("phimoe")
def phimoe(c: Config) -> Block:
    """Mixtral with LayerNorms, biases in attention and on the head (PhimoeForCausalLM)."""
    attn = gqa(c, bias=c.attention_bias, window=c.sliding_window)
    experts = moe(c, c.intermediate_size, experts=c.num_local_experts)
    return decoder(c, attn, experts, norm=layer_norm(c), head_bias=c.lm_head_bias)
