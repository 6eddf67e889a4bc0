"""Sparse decoders of the second wave: many small experts, often beside shared ones, and one kind of attention."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.dims import named
from paramcalc.families.mtp import mtp_modules, unbuilt_mtp
from paramcalc.families.normed import normed, normed_at_once
from paramcalc.families.patterns import by_ffn, dense_then_sparse, first_dense, mlp_words
from paramcalc.families.registry import family
from paramcalc.families.skeletons import (
    DENSE,
    SPARSE,
    causal_lm,
    glu,
    gqa,
    ignored,
    layer_norm,
    mha,
    moe,
    norms_after,
    pre_norm,
    rms,
)
from paramcalc.spec import Block, Norm, Run


@family("aria_text")
def aria_text(c: Config) -> Block:
    """Llama with routed and shared experts in every layer (AriaTextForCausalLM)."""
    c.require(c.hidden_size % c.num_attention_heads == 0, "hidden_size is not a multiple of num_attention_heads")
    bias, width, n = c.attention_bias, c.intermediate_size, c.moe_num_shared_experts
    experts = moe(
        c,
        width,
        experts=c.moe_num_experts,
        top_k=c.moe_topk,
        shared=n * width,
        shared_count=n,
        shared_bias=c.mlp_bias,
    )
    layer = pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias), experts)
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("ernie4_5_moe")
def ernie4_5_moe(c: Config) -> Block:
    """Llama with experts in every moe_layer_interval-th layer from one layer to another (Ernie4_5_MoeForCausalLM)."""
    bias, e, n = c.use_bias, c.moe_intermediate_size, c.moe_num_shared_experts
    ignored(c, moe_use_aux_free=True)
    unbuilt_mtp(c)
    experts = moe(
        c,
        e,
        experts=c.num_experts,
        shared=n * e if n else None,
        shared_count=n,
        shared_bias=bias,
        correction=True,
        correction_counted=True,
    )
    attn, ffn = gqa(c, qkv_bias=bias, out_bias=bias), {DENSE: glu(c, bias=bias), SPARSE: experts}
    return causal_lm(c, by_ffn(c, attn, ffn, ernie_words(c)), norm=rms(c), head_bias=bias)


def ernie_words(c: Config) -> list[str]:
    """Which layers have experts; an end of -1 is the last layer."""
    depth, last = c.num_hidden_layers, c.raw("moe_layer_end_index")
    end = depth - 1 if last in (None, -1) else c.moe_layer_end_index
    step, start = c.moe_layer_interval, c.moe_layer_start_index
    return [SPARSE if (i + 1) % step == 0 and start <= i <= end else DENSE for i in range(depth)]


@family("flex_olmo")
def flex_olmo(c: Config) -> Block:
    """OLMo 2's layer, norms after its parts, with experts in every one (FlexOlmoForCausalLM)."""
    experts = moe(c, c.intermediate_size, experts=c.num_local_experts)
    layer = norms_after(rms(c), normed_at_once(c, bias=c.attention_bias), experts)
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("glm4_moe", "sarvam_moe", "solar_open")
def glm4_moe(c: Config) -> Block:
    """Grouped-query attention, biases on q, k and v only; dense layers first, then experts (Glm4MoeForCausalLM)."""
    bias, e, n = c.attention_bias, c.moe_intermediate_size, c.n_shared_experts
    d_h = c.head_dim or named("d_h", c.hidden_size // c.num_attention_heads, origin="d / h, rounded down")
    norm = Norm(width=d_h) if c.use_qk_norm else None
    attn = gqa(c, qkv_bias=bias, q_norm=norm, k_norm=norm, d_h=d_h)
    experts = moe(c, e, experts=c.num_local_experts, shared=n * e, shared_count=n, correction=True)
    dense, sparse = pre_norm(rms(c), attn, glu(c)), pre_norm(rms(c), attn, experts)
    return causal_lm(c, dense_then_sparse(c, dense, sparse), norm=rms(c), mtp=mtp_modules(c, sparse))


@family("dbrx")
def dbrx(c: Config) -> Block:
    """Grouped-query attention and experts behind LayerNorms without biases, sized in sections (DbrxForCausalLM)."""
    attn, ffn = c.section("attn_config"), c.section("ffn_config")
    c.require(not c.tie_word_embeddings, "tie_word_embeddings is not supported")
    experts = moe(c, ffn.ffn_hidden_size, experts=ffn.moe_num_experts, top_k=ffn.moe_top_k)
    layer = pre_norm(rms(c), mha(c, qkv_bias=False, out_bias=False, kv=attn.kv_n_heads), experts)
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("hunyuan_v1_moe")
def hunyuan_v1_moe(c: Config) -> Block:
    """Normed queries and keys; routed experts and a shared one in every layer (HunYuanMoEV1ForCausalLM)."""
    c.stated("head_dim")  # the class has no rule for it
    same, depth = [c.intermediate_size] * c.num_hidden_layers, c.num_hidden_layers
    ignored(c, moe_intermediate_size=same, num_shared_expert=[1] * depth, use_mixed_mlp_moe=True, use_qk_norm=True)
    ignored(c, use_cla=False, use_mla=False)
    attn, width, listed = normed(c, bias=c.attention_bias), c.intermediate_size, c.raw("num_experts_per_tok")
    tops = c.per_layer("num_experts_per_tok") if isinstance(listed, list) else None
    tops = [c.whole("num_experts_per_tok", k) for k in tops] if tops else [c.num_experts_per_tok] * depth
    layers = {
        k: pre_norm(rms(c), attn, moe(c, width, experts=c.num_local_experts, shared=width, top_k=k))
        for k in dict.fromkeys(tops)
    }
    return causal_lm(c, [layers[k] for k in tops], norm=rms(c))


@family("hy_v3")
def hy_v3(c: Config) -> Block:
    """Normed queries and keys, a dense layer first, then routed and shared experts (HYV3ForCausalLM)."""
    bias, n, e = c.mlp_bias, c.num_shared_experts, c.moe_intermediate_size
    attn = normed(c, bias=c.attention_bias)
    experts = moe(
        c,
        e,
        experts=c.num_local_experts,
        shared=n * e if n else c.intermediate_size,  # the class takes a width of 0 for "not stated"
        shared_count=n or 1,
        shared_bias=bias,
        correction=True,
    )
    ffn, words = {DENSE: glu(c, bias=bias), SPARSE: experts}, mlp_words(c, first_dense(c, 1))
    unbuilt_mtp(c)
    ignored(c, first_k_dense_replace=words.count(DENSE))
    return causal_lm(c, by_ffn(c, attn, ffn, words), norm=rms(c))


@family("minimax_m2")
def minimax_m2(c: Config) -> Block:
    """QK norms over all heads at once, experts in every layer (MiniMaxM2ForCausalLM)."""
    experts = moe(c, c.intermediate_size, experts=c.num_experts, correction=True)
    ignored(c, use_qk_norm=True, qk_norm_type="per_layer", use_routing_bias=True, shared_intermediate_size=0)
    unbuilt_mtp(c, "num_mtp_modules")
    return causal_lm(c, Run(c.num_hidden_layers, pre_norm(rms(c), normed_at_once(c), experts)), norm=rms(c))


@family("phimoe")
def phimoe(c: Config) -> Block:
    """Mixtral with LayerNorms, biases in attention and on the head (PhimoeForCausalLM)."""
    bias = c.attention_bias
    attn = gqa(c, qkv_bias=bias, out_bias=bias, window=c.sliding_window)
    layer = pre_norm(layer_norm(c), attn, moe(c, c.intermediate_size, experts=c.num_local_experts))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c), head_bias=c.lm_head_bias)
