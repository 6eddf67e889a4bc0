"""Sparse decoders of the second wave: many small experts, often beside shared ones, and one kind of attention."""

from __future__ import annotations

from paramcalc.config import Config, Reading
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
    sizes,
)
from paramcalc.spec import Block, Norm, Run

GLM = (
    sizes(151552, 4096, 10944, 46, 96, 8, num_experts_per_tok=8, attention_bias=False)
    | dict(moe_intermediate_size=1408, num_local_experts=128, n_shared_experts=1, first_k_dense_replace=1)
    | dict(use_qk_norm=False, num_mtp_layers=1)
)
GLM_NAMES = dict(num_local_experts="n_routed_experts", num_mtp_layers="num_nextn_predict_layers")
SARVAM_NAMES = GLM_NAMES | dict(num_experts="n_routed_experts", num_shared_experts="n_shared_experts")


@family(
    "aria_text",
    "AriaTextForCausalLM",
    defaults=sizes(32000, 4096, 4096, 32, 32, attention_bias=False, mlp_bias=False, moe_num_experts=8, moe_topk=2)
    | dict(moe_num_shared_experts=2),
)
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


@family(
    "ernie4_5_moe",
    "Ernie4_5_MoeForCausalLM",
    names=dict(num_experts="moe_num_experts", num_experts_per_tok="moe_k"),
    defaults=sizes(103424, 2560, 12288, 28, 20, 4, num_experts_per_tok=6, use_bias=False)
    | dict(moe_intermediate_size=1536, num_experts=64, moe_num_shared_experts=2, moe_layer_start_index=1)
    | dict(moe_layer_end_index=-1, moe_layer_interval=1, tie_word_embeddings=True),
    unused=["moe_capacity", "moe_gate"],
)
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


@family(
    "flex_olmo",
    "FlexOlmoForCausalLM",
    names=dict(num_local_experts="num_experts"),
    defaults=sizes(100352, 4096, 11008, 32, 32, num_experts_per_tok=5, attention_bias=False, num_local_experts=7),
)
def flex_olmo(c: Config) -> Block:
    """OLMo 2's layer, norms after its parts, with experts in every one (FlexOlmoForCausalLM)."""
    experts = moe(c, c.intermediate_size, experts=c.num_local_experts)
    layer = norms_after(rms(c), normed_at_once(c, bias=c.attention_bias), experts)
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("glm4_moe", "Glm4MoeForCausalLM", names=GLM_NAMES, defaults=GLM, nullable=["num_mtp_layers"])
@family(
    "sarvam_moe",
    "Glm4MoeForCausalLM",
    names=SARVAM_NAMES | dict(use_qkv_bias="attention_bias"),
    defaults=GLM
    | sizes(262144, 4096, 8192, 19, 64, 4, 64)
    | dict(moe_intermediate_size=1024, num_experts_per_tok=6, use_qk_norm=True, num_mtp_layers=0),
    nullable=["num_mtp_layers"],
)
@family(
    "solar_open",
    "SolarOpenForCausalLM",
    names=dict(num_local_experts="n_routed_experts"),
    defaults={key: value for key, value in GLM.items() if key not in ("use_qk_norm", "first_k_dense_replace")}
    | dict(vocab_size=196608, num_hidden_layers=48, num_attention_heads=64, head_dim=128, moe_intermediate_size=1280),
    fixed=dict(first_k_dense_replace=0, use_qk_norm=False, num_mtp_layers=0),
    unused=["intermediate_size", "first_k_dense_replace", "use_qk_norm"],
)
def glm4_moe(c: Config) -> Block:
    """Grouped-query attention, biases on q, k and v only; dense layers first, then experts (Glm4MoeForCausalLM)."""
    bias, e, n = c.attention_bias, c.moe_intermediate_size, c.n_shared_experts
    d_h = c.head_dim or named("d_h", c.hidden_size // c.num_attention_heads, origin="d / h, rounded down")
    norm = Norm(width=d_h) if c.use_qk_norm else None
    attn = gqa(c, qkv_bias=bias, q_norm=norm, k_norm=norm, d_h=d_h)
    experts = moe(c, e, experts=c.num_local_experts, shared=n * e, shared_count=n, correction=True)
    dense, sparse = pre_norm(rms(c), attn, glu(c)), pre_norm(rms(c), attn, experts)
    return causal_lm(c, dense_then_sparse(c, dense, sparse), norm=rms(c), mtp=mtp_modules(c, sparse))


DBRX_ATTENTION = Reading(dict(kv_n_heads=1))
DBRX_FFN = Reading(
    dict(ffn_hidden_size=3584, moe_num_experts=4, moe_top_k=1),
    unused=["hidden_size", "ffn_act_fn", "moe_loss_weight", "moe_normalize_expert_weights", "moe_jitter_eps"],
)


@family(
    "dbrx",
    "DbrxForCausalLM",
    names=dict(num_attention_heads="n_heads", hidden_size="d_model", num_hidden_layers="n_layers"),
    defaults=dict(vocab_size=32000, hidden_size=2048, num_hidden_layers=24, num_attention_heads=16),
    unused=["max_seq_len", "num_key_value_heads"],
)
def dbrx(c: Config) -> Block:
    """Grouped-query attention and experts behind LayerNorms without biases, sized in sections (DbrxForCausalLM)."""
    attn, ffn = c.section("attn_config", DBRX_ATTENTION), c.section("ffn_config", DBRX_FFN)
    c.require(not c.tie_word_embeddings, "tie_word_embeddings is not supported")
    experts = moe(c, ffn.ffn_hidden_size, experts=ffn.moe_num_experts, top_k=ffn.moe_top_k)
    layer = pre_norm(rms(c), mha(c, qkv_bias=False, out_bias=False, kv=attn.kv_n_heads), experts)
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family(
    "hunyuan_v1_moe",
    "HunYuanMoEV1ForCausalLM",
    names=dict(num_experts_per_tok="moe_topk", num_local_experts="num_experts"),
    defaults=sizes(290943, 4096, 11008, 32, 32, num_experts_per_tok=1, attention_bias=False, num_local_experts=1),
)
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


@family(
    "hy_v3",
    "HYV3ForCausalLM",
    names=dict(num_local_experts="num_experts"),
    defaults=sizes(120832, 4096, 13312, 80, 64, 8, 128, num_experts_per_tok=8, attention_bias=False, mlp_bias=False)
    | dict(moe_intermediate_size=1536, num_local_experts=192, num_shared_experts=1, mlp_layer_types=None),
)
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


@family(
    "minimax_m2",
    "MiniMaxM2ForCausalLM",
    names=dict(num_experts="num_local_experts"),
    defaults=sizes(200064, 3072, 1536, 62, 48, 8, 128, num_experts_per_tok=8, num_experts=256),
    unused=["use_mtp", "mtp_transformer_layers"],
)
def minimax_m2(c: Config) -> Block:
    """QK norms over all heads at once, experts in every layer (MiniMaxM2ForCausalLM)."""
    experts = moe(c, c.intermediate_size, experts=c.num_experts, correction=True)
    ignored(c, use_qk_norm=True, qk_norm_type="per_layer", use_routing_bias=True, shared_intermediate_size=0)
    unbuilt_mtp(c, "num_mtp_modules")
    return causal_lm(c, Run(c.num_hidden_layers, pre_norm(rms(c), normed_at_once(c), experts)), norm=rms(c))


@family(
    "phimoe",
    "PhimoeForCausalLM",
    defaults=sizes(32064, 4096, 6400, 32, 32, 8, num_experts_per_tok=2, attention_bias=False, num_local_experts=16)
    | dict(sliding_window=None, lm_head_bias=False),
)
def phimoe(c: Config) -> Block:
    """Mixtral with LayerNorms, biases in attention and on the head (PhimoeForCausalLM)."""
    bias = c.attention_bias
    attn = gqa(c, qkv_bias=bias, out_bias=bias, window=c.sliding_window)
    layer = pre_norm(layer_norm(c), attn, moe(c, c.intermediate_size, experts=c.num_local_experts))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c), head_bias=c.lm_head_bias)
