"""Sparse decoders of the second wave: many small experts, often beside shared ones, behind a few dense layers."""

from __future__ import annotations

from paramcalc.components import Attention, ConvolvedAttention, ExpertAttention, Indexer
from paramcalc.config import Config, Reading
from paramcalc.dims import named
from paramcalc.families.registry import family
from paramcalc.families.skeletons import (
    DENSE,
    FULL,
    SLIDING,
    SPARSE,
    by_window,
    causal_lm,
    dense_then_sparse,
    every,
    first_dense,
    glu,
    gqa,
    head_dim,
    ignored,
    interleaved,
    kinds,
    kv_heads,
    layer_norm,
    mha,
    mlp_words,
    moe,
    mtp_modules,
    norms_around,
    pre_norm,
    rms,
    unbuilt_mtp,
)
from paramcalc.spec import Block, Component, Linear, Norm, Param, Run, block

SIZES = dict(vocab_size=100352, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32) | dict(
    num_attention_heads=32, num_key_value_heads=8, head_dim=None
)
MOE_SIZES = SIZES | dict(num_experts_per_tok=8)
GLM = (
    MOE_SIZES
    | dict(vocab_size=151552, intermediate_size=10944, num_hidden_layers=46, num_attention_heads=96)
    | dict(attention_bias=False, moe_intermediate_size=1408, num_local_experts=128, n_shared_experts=1)
    | dict(first_k_dense_replace=1, use_qk_norm=False, num_mtp_layers=1)
)
GLM_NAMES = dict(num_local_experts="n_routed_experts", num_mtp_layers="num_nextn_predict_layers")
SARVAM_NAMES = GLM_NAMES | dict(num_experts="n_routed_experts", num_shared_experts="n_shared_experts")
CHUNKED, INDEXED = "chunked_attention", "minimax_m3_sparse"


def normed(
    c: Config,
    *,
    bias: bool = False,
    window: int | None = None,
    inner: Component | None = None,
    indexer: Component | None = None,
) -> Attention:
    """Grouped-query attention with an RMS norm on each query and key head."""
    norm = Norm(width=head_dim(c))
    return gqa(c, qkv_bias=bias, out_bias=bias, q_norm=norm, k_norm=norm, window=window, inner=inner, indexer=indexer)


@family(
    "afmoe",
    "AfmoeForCausalLM",
    defaults=MOE_SIZES
    | dict(vocab_size=200192, hidden_size=2048, intermediate_size=6144, num_attention_heads=16)
    | dict(num_key_value_heads=None, head_dim=128)
    | dict(attention_bias=False, moe_intermediate_size=1408, num_dense_layers=1, num_experts=64)
    | dict(num_experts_per_tok=6, num_shared_experts=2, global_attn_every_n_layers=4, sliding_window=1024)
    | dict(layer_types=None),
    nullable=["sliding_window"],
    unused=["num_expert_groups", "num_limited_groups", "score_func", "route_norm", "load_balance_coeff"],
)
def afmoe(c: Config) -> Block:
    """Gated attention, four norms a layer, sliding and full layers; dense layers first (AfmoeForCausalLM)."""
    d, e = c.hidden_size, c.moe_intermediate_size
    gate = Linear(d_in=d, d_out=c.num_attention_heads * head_dim(c))
    attn = by_window(c, lambda window: normed(c, bias=c.attention_bias, window=window, inner=gate))
    n = c.num_shared_experts
    experts = moe(c, e, experts=c.num_experts, shared=n * e, shared_count=n, correction=True, correction_counted=True)
    words = kinds(c, every(c.global_attn_every_n_layers, FULL, otherwise=SLIDING, layers=c.num_hidden_layers))
    ffn, ffn_words = {DENSE: glu(c), SPARSE: experts}, first_dense(c, c.num_dense_layers)
    return causal_lm(c, interleaved(c, attn, words, ffn, ffn_words, layer=norms_around), norm=rms(c))


@family(
    "aria_text",
    "AriaTextForCausalLM",
    defaults=SIZES
    | dict(vocab_size=32000, intermediate_size=4096, num_key_value_heads=None)
    | dict(attention_bias=False, mlp_bias=False, moe_num_experts=8, moe_topk=2, moe_num_shared_experts=2),
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
    "dots1",
    "Dots1ForCausalLM",
    names=dict(num_local_experts="n_routed_experts"),
    defaults=MOE_SIZES
    | dict(vocab_size=152064, hidden_size=4608, intermediate_size=10944, num_hidden_layers=62)
    | dict(num_key_value_heads=32)
    | dict(attention_bias=False, moe_intermediate_size=1408, num_local_experts=None, num_experts_per_tok=None)
    | dict(n_shared_experts=None, first_k_dense_replace=0, sliding_window=4096, max_window_layers=62)
    | dict(layer_types=None),
    nullable=["sliding_window"],
)
def dots1(c: Config) -> Block:
    """Qwen3's attention, dense layers first, then routed and shared experts (Dots1ForCausalLM)."""
    window, e = c.sliding_window, c.moe_intermediate_size
    ignored(c, moe_layer_freq=1)
    attn = by_window(c, lambda width: normed(c, bias=c.attention_bias, window=width))
    ffn: dict[str, Component] = {DENSE: glu(c)}
    if c.first_k_dense_replace < c.num_hidden_layers:
        n, count = c.stated("n_shared_experts"), c.stated("num_local_experts")
        ffn[SPARSE] = moe(c, e, experts=count, shared=n * e, shared_count=n, correction=True)
    first = c.num_hidden_layers if window is None else c.max_window_layers
    words = kinds(c, [FULL if i < first else SLIDING for i in range(c.num_hidden_layers)])
    return causal_lm(c, interleaved(c, attn, words, ffn, first_dense(c, c.first_k_dense_replace)), norm=rms(c))


@family(
    "ernie4_5_moe",
    "Ernie4_5_MoeForCausalLM",
    names=dict(num_experts="moe_num_experts", num_experts_per_tok="moe_k"),
    defaults=MOE_SIZES
    | dict(vocab_size=103424, hidden_size=2560, intermediate_size=12288, num_hidden_layers=28)
    | dict(num_attention_heads=20, num_key_value_heads=4)
    | dict(use_bias=False, moe_intermediate_size=1536, num_experts=64, num_experts_per_tok=6)
    | dict(moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_end_index=-1, moe_layer_interval=1)
    | dict(tie_word_embeddings=True),
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
    layers = {
        sparse: pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias), ffn)
        for sparse, ffn in ((True, experts), (False, glu(c, bias=bias)))
    }
    return causal_lm(c, [layers[sparse] for sparse in ernie_layers(c)], norm=rms(c), head_bias=bias)


def ernie_layers(c: Config) -> list[bool]:
    """Which layers have experts; an end of -1 is the last layer."""
    depth, last = c.num_hidden_layers, c.raw("moe_layer_end_index")
    end = depth - 1 if last in (None, -1) else c.moe_layer_end_index
    step, start = c.moe_layer_interval, c.moe_layer_start_index
    return [(i + 1) % step == 0 and start <= i <= end for i in range(depth)]


@family(
    "exaone_moe",
    "ExaoneMoeForCausalLM",
    defaults=MOE_SIZES
    | dict(vocab_size=102400, intermediate_size=16384, num_key_value_heads=32)
    | dict(moe_intermediate_size=1024, num_experts=64, num_shared_experts=1, first_k_dense_replace=1)
    | dict(sliding_window=4096, sliding_window_pattern=4, layer_types=None, mlp_layer_types=None),
    nullable=["sliding_window"],
)
def exaone_moe(c: Config) -> Block:
    """Normed queries and keys, sliding layers, dense layers first, then experts (ExaoneMoeForCausalLM)."""
    window, e, n = c.sliding_window, c.moe_intermediate_size, c.num_shared_experts
    words = c.words("layer_types", (FULL, SLIDING))
    c.require(bool(words) or window is not None, "sliding_window is null and layer_types is missing")
    words = words or every(c.sliding_window_pattern, FULL, otherwise=SLIDING, layers=c.num_hidden_layers)
    attn = by_window(c, lambda width: normed(c, window=width))
    ffn = {DENSE: glu(c), SPARSE: moe(c, e, experts=c.num_experts, shared=n * e, shared_count=n, correction=True)}
    ffn_words = mlp_words(c, first_dense(c, c.first_k_dense_replace))
    unbuilt_mtp(c)
    return causal_lm(c, interleaved(c, attn, words, ffn, ffn_words), norm=rms(c))


@family(
    "flex_olmo",
    "FlexOlmoForCausalLM",
    names=dict(num_local_experts="num_experts"),
    defaults=MOE_SIZES
    | dict(num_key_value_heads=None, attention_bias=False, num_experts_per_tok=5, num_local_experts=7),
)
def flex_olmo(c: Config) -> Block:
    """OLMo 2's layer, norms after its parts, with experts in every one (FlexOlmoForCausalLM)."""
    bias, d_h = c.attention_bias, head_dim(c)
    q_norm, k_norm = Norm(width=c.num_attention_heads * d_h), Norm(width=kv_heads(c) * d_h)
    attn = gqa(c, qkv_bias=bias, out_bias=bias, q_norm=q_norm, k_norm=k_norm)
    experts = moe(c, c.intermediate_size, experts=c.num_local_experts)
    layer = block(attn=attn, post_attn_norm=rms(c), ffn=experts, post_ffn_norm=rms(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("glm4_moe", "Glm4MoeForCausalLM", names=GLM_NAMES, defaults=GLM, nullable=["num_mtp_layers"])
@family(
    "sarvam_moe",
    "Glm4MoeForCausalLM",
    names=SARVAM_NAMES | dict(use_qkv_bias="attention_bias"),
    defaults=GLM
    | dict(vocab_size=262144, intermediate_size=8192, num_hidden_layers=19, num_attention_heads=64)
    | dict(num_key_value_heads=4, head_dim=64)
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


@family(
    "cohere2_moe",
    "Cohere2MoeForCausalLM",
    defaults=MOE_SIZES
    | dict(vocab_size=256000, hidden_size=8192, intermediate_size=22528, num_hidden_layers=40)
    | dict(num_attention_heads=64, num_key_value_heads=None, head_dim=128)
    | dict(attention_bias=False, num_experts=8, num_experts_per_tok=2, num_shared_experts=0)
    | dict(first_k_dense_replace=0, prefix_dense_intermediate_size=None, prefix_dense_sliding_window_pattern=1)
    | dict(sliding_window=4096, sliding_window_pattern=4, layer_types=None, mlp_layer_types=None)
    | dict(tie_word_embeddings=True),
    nullable=["sliding_window"],
)
def cohere2_moe(c: Config) -> Block:
    """Parallel attention and FFN behind one norm, dense layers first, then experts (Cohere2MoeForCausalLM)."""
    bias, width, n = c.attention_bias, c.intermediate_size, c.num_shared_experts
    attn = by_window(c, lambda window: gqa(c, qkv_bias=bias, out_bias=bias, window=window))
    first, depth = c.first_k_dense_replace, c.num_hidden_layers
    c.require(first <= depth, f"first_k_dense_replace ({first}) is more than num_hidden_layers ({depth})")
    words = every(c.prefix_dense_sliding_window_pattern, FULL, otherwise=SLIDING, layers=first)
    words += every(c.sliding_window_pattern, FULL, otherwise=SLIDING, layers=depth - first)
    experts = moe(c, width, experts=c.num_experts, shared=n * width if n else None, shared_count=n)
    ffn = {DENSE: glu(c, c.prefix_dense_intermediate_size), SPARSE: experts}
    layers = interleaved(c, attn, kinds(c, words), ffn, mlp_words(c, first_dense(c, first)), layer=parallel)
    return causal_lm(c, layers, norm=rms(c))


def parallel(norm: Component, attn: Component, ffn: Component) -> Block:
    """Attention and FFN side by side behind one norm."""
    return block(input_norm=norm, attn=attn, ffn=ffn)


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
    defaults=MOE_SIZES
    | dict(vocab_size=290943, num_key_value_heads=None, attention_bias=False, num_local_experts=1)
    | dict(num_experts_per_tok=1),
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
    defaults=MOE_SIZES
    | dict(vocab_size=120832, intermediate_size=13312, num_hidden_layers=80, num_attention_heads=64, head_dim=128)
    | dict(attention_bias=False, mlp_bias=False, moe_intermediate_size=1536, num_local_experts=192)
    | dict(num_shared_experts=1, mlp_layer_types=None),
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
    return causal_lm(c, interleaved(c, {FULL: attn}, [FULL] * len(words), ffn, words), norm=rms(c))


@family(
    "laguna",
    "LagunaForCausalLM",
    defaults=MOE_SIZES
    | dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=40, num_attention_heads=48, head_dim=128)
    | dict(attention_bias=False, moe_intermediate_size=512, shared_expert_intermediate_size=512, num_experts=256)
    | dict(sliding_window=512, gating=True, num_attention_heads_per_layer=None, layer_types=None)
    | dict(mlp_layer_types=None),
)
def laguna(c: Config) -> Block:
    """A gate per head or channel, heads of their own number in each layer, experts (LagunaForCausalLM)."""
    stated = [c.whole("num_attention_heads", n) for n in c.per_layer("num_attention_heads_per_layer") or ()]
    heads = stated or [c.num_attention_heads] * c.num_hidden_layers
    pairs = list(zip(kinds(c, [FULL] * len(heads)), heads, strict=True))
    attn = {pair: laguna_attention(c, pair[1], c.sliding_window if pair[0] == SLIDING else None) for pair in pairs}
    experts = moe(
        c,
        c.moe_intermediate_size,
        experts=c.num_experts,
        shared=c.shared_expert_intermediate_size,
        correction=True,
        correction_counted=True,
    )
    ffn = {DENSE: glu(c), SPARSE: experts}
    return causal_lm(c, interleaved(c, attn, pairs, ffn, mlp_words(c, first_dense(c, 1))), norm=rms(c))


def laguna_attention(c: Config, heads: int, window: int | None) -> Attention:
    """Attention of `heads` query heads with a gate: one value per head (true, "per-head"), or per channel."""
    h, d_h, kv, bias = heads, c.head_dim, c.num_key_value_heads, c.attention_bias
    gating = c.raw("gating")
    c.require(gating is None or isinstance(gating, bool | str), f"gating must be true, false or a word, not {gating!r}")
    c.require(h % kv == 0, f"a layer's {h} heads do not share num_key_value_heads ({kv}) in equal groups")
    return Attention(
        width=c.hidden_size,
        heads=h,
        kv_heads=kv,
        head_dim=d_h,
        q_bias=bias,
        k_bias=bias,
        v_bias=bias,
        out_bias=bias,
        q_norm=Norm(width=d_h),
        k_norm=Norm(width=d_h),
        window=window,
        inner=Linear(d_in=c.hidden_size, d_out=h if gating in (None, True, "per-head") else h * d_h),
    )


@family(
    "mimo_v2_flash",
    "MiMoV2FlashForCausalLM",
    names=dict(num_local_experts="n_routed_experts"),
    defaults=MOE_SIZES
    | dict(vocab_size=152576, intermediate_size=16384, num_hidden_layers=48, num_attention_heads=64)
    | dict(num_key_value_heads=4, head_dim=192)
    | dict(v_head_dim=128, attention_bias=False, moe_intermediate_size=2048, num_local_experts=256)
    | dict(sliding_window=129, layer_types=None, mlp_layer_types=None),
)
def mimo_v2_flash(c: Config) -> Block:
    """Sliding layers with sinks and twice the key/value heads, narrow values, experts (MiMoV2FlashForCausalLM)."""
    full = gqa(c, qkv_bias=c.attention_bias).model_copy(update={"value_dim": c.v_head_dim})
    slides = {"kv_heads": 2 * c.num_key_value_heads, "sinks": True, "window": c.sliding_window}
    attn = {FULL: full, SLIDING: full.model_copy(update=slides)}
    default = [FULL if i == 0 or (i + 1) % 6 == 0 else SLIDING for i in range(c.num_hidden_layers)]
    experts = moe(c, c.moe_intermediate_size, experts=c.num_local_experts, correction=True)
    ffn, ffn_words = {DENSE: glu(c), SPARSE: experts}, mlp_words(c, first_dense(c, 1))
    words = kinds(c, default)
    unbuilt_mtp(c)
    ignored(
        c,
        hybrid_layer_pattern=[int(word == SLIDING) for word in words],
        moe_layer_freq=[int(word == SPARSE) for word in ffn_words],
        swa_num_attention_heads=c.num_attention_heads,
        swa_num_key_value_heads=2 * c.num_key_value_heads,
        swa_head_dim=head_dim(c),
        swa_v_head_dim=c.v_head_dim,
        add_swa_attention_sink_bias=True,
        add_full_attention_sink_bias=False,
    )
    return causal_lm(c, interleaved(c, attn, words, ffn, ffn_words), norm=rms(c))


@family(
    "minimax_m2",
    "MiniMaxM2ForCausalLM",
    names=dict(num_experts="num_local_experts"),
    defaults=MOE_SIZES
    | dict(vocab_size=200064, hidden_size=3072, intermediate_size=1536, num_hidden_layers=62)
    | dict(num_attention_heads=48, head_dim=128)
    | dict(num_experts=256),
    unused=["use_mtp", "mtp_transformer_layers"],
)
def minimax_m2(c: Config) -> Block:
    """QK norms over all heads at once, experts in every layer (MiniMaxM2ForCausalLM)."""
    d_h = head_dim(c)
    q_norm, k_norm = Norm(width=c.num_attention_heads * d_h), Norm(width=kv_heads(c) * d_h)
    experts = moe(c, c.intermediate_size, experts=c.num_experts, correction=True)
    ignored(c, use_qk_norm=True, qk_norm_type="per_layer", use_routing_bias=True, shared_intermediate_size=0)
    unbuilt_mtp(c, "num_mtp_modules")
    layer = pre_norm(rms(c), gqa(c, q_norm=q_norm, k_norm=k_norm), experts)
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


# The original file's section: its fields take precedence over the flat ones.
M3_SPARSE = Reading(dict(sparse_num_index_heads=None, sparse_index_dim=None, sparse_topk_blocks=None))


@family(
    "minimax_m3_vl_text",
    "MiniMaxM3VLForCausalLM",
    names=dict(num_experts="num_local_experts"),
    defaults=MOE_SIZES
    | dict(vocab_size=200064, hidden_size=6144, intermediate_size=3072, num_hidden_layers=60)
    | dict(num_attention_heads=64, num_key_value_heads=4, head_dim=128)
    | dict(num_experts=128, num_experts_per_tok=4, dense_intermediate_size=12288, shared_intermediate_size=3072)
    | dict(index_n_heads=4, index_head_dim=128, index_topk_blocks=16, layer_types=None, mlp_layer_types=None),
)
def minimax_m3_text(c: Config) -> Block:
    """Normed queries and keys, in some layers an indexer that picks blocks; experts (MiniMaxM3VLForCausalLM)."""
    legacy, d = c.section("sparse_attention_config", M3_SPARSE), c.hidden_size
    d_i = legacy.sparse_index_dim or c.index_head_dim
    indexer = Indexer(
        width=d,
        query_width=d,
        heads=legacy.sparse_num_index_heads or c.index_n_heads,
        head_dim=d_i,
        keep=legacy.sparse_topk_blocks or c.index_topk_blocks,
        weighted=False,
        q_norm=Norm(width=d_i),
        k_norm=Norm(width=d_i),
    )
    attn = {FULL: normed(c), INDEXED: normed(c, indexer=indexer)}
    experts = moe(c, c.intermediate_size, experts=c.num_experts, shared=c.shared_intermediate_size, correction=True)
    flags, moe_flags = legacy.raw("sparse_attention_freq"), c.per_layer("moe_layer_freq")
    words = c.words("layer_types", attn) or flagged(c, flags, INDEXED, FULL) or [FULL] * c.num_hidden_layers
    ffn_words = mlp_words(c, flagged(c, moe_flags, SPARSE, DENSE) or [SPARSE] * c.num_hidden_layers)
    ffn = {DENSE: glu(c, c.dense_intermediate_size), SPARSE: experts}
    return causal_lm(c, interleaved(c, attn, words, ffn, ffn_words), norm=rms(c))


def flagged(c: Config, flags: list[int] | None, word: str, otherwise: str) -> list[str] | None:
    """A list of 0 and 1, one for each layer, as words."""
    if flags is None:
        return None
    c.require(isinstance(flags, list), f"flags of layers must be a list, not {flags!r}")
    c.require(len(flags) == c.num_hidden_layers, f"a list of {len(flags)} flags for {c.num_hidden_layers} layers")
    return [word if flag else otherwise for flag in flags]


@family(
    "phimoe",
    "PhimoeForCausalLM",
    defaults=MOE_SIZES
    | dict(vocab_size=32064, intermediate_size=6400, attention_bias=False, num_local_experts=16)
    | dict(num_experts_per_tok=2, sliding_window=None, lm_head_bias=False),
)
def phimoe(c: Config) -> Block:
    """Mixtral with LayerNorms, biases in attention and on the head (PhimoeForCausalLM)."""
    bias = c.attention_bias
    attn = gqa(c, qkv_bias=bias, out_bias=bias, window=c.sliding_window)
    layer = pre_norm(layer_norm(c), attn, moe(c, c.intermediate_size, experts=c.num_local_experts))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c), head_bias=c.lm_head_bias)


@family(
    "llama4_text",
    "Llama4ForCausalLM",
    defaults=MOE_SIZES
    | dict(vocab_size=202048, hidden_size=5120, intermediate_size=8192, num_hidden_layers=48)
    | dict(num_attention_heads=40, head_dim=128)
    | dict(intermediate_size_mlp=16384, attention_bias=False, num_local_experts=16, num_experts_per_tok=1)
    | dict(moe_layers=None, interleave_moe_layer_step=1, no_rope_layers=None, no_rope_layer_interval=4)
    | dict(attention_chunk_size=8192, layer_types=None),
    nullable=["attention_chunk_size", "head_dim"],
    unused=["use_qk_norm", "attn_temperature_tuning", "floor_scale", "attn_scale"],  # the QK norm has no weights
)
def llama4_text(c: Config) -> Block:
    """Chunked and full attention; experts beside a shared one in the layers of moe_layers (Llama4ForCausalLM)."""
    bias, width, depth = c.attention_bias, c.intermediate_size, c.num_hidden_layers
    attn = {
        word: gqa(c, qkv_bias=bias, out_bias=bias, window=window)
        for word, window in ((FULL, None), (CHUNKED, c.attention_chunk_size))
    }
    rotary = c.per_layer("no_rope_layers") if c.raw("no_rope_layers") else None
    rotary = rotary or [(i + 1) % c.no_rope_layer_interval for i in range(depth)]
    chunks = c.attention_chunk_size is not None
    words = c.words("layer_types", attn) or [CHUNKED if flag and chunks else FULL for flag in rotary]
    step, listed = c.interleave_moe_layer_step, c.raw("moe_layers") is not None
    sparse = set(c.numbers("moe_layers") if listed else range(step - 1, depth, step))
    ffn_words = [SPARSE if i in sparse else DENSE for i in range(depth)]
    ffn = {
        DENSE: glu(c, c.intermediate_size_mlp),
        SPARSE: moe(c, width, experts=c.num_local_experts, shared=width),
    }
    return causal_lm(c, interleaved(c, attn, words, ffn, ffn_words), norm=rms(c))


@family(
    "jetmoe",
    "JetMoeForCausalLM",
    names=dict(head_dim="kv_channels"),
    defaults=dict(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=12)
    | dict(num_key_value_heads=16, head_dim=128)
    | dict(num_local_experts=8, num_experts_per_tok=2, tie_word_embeddings=True),
    unused=["num_attention_heads"],
)
def jetmoe(c: Config) -> Block:
    """Experts in attention and FFN alike, each kind with a bias on its output (JetMoeForCausalLM)."""
    attn = ExpertAttention(
        width=c.hidden_size,
        kv_heads=c.num_key_value_heads,
        head_dim=c.head_dim,
        experts=c.num_local_experts,
        top_k=c.num_experts_per_tok,
    )
    experts = moe(c, c.intermediate_size, experts=c.num_local_experts)
    ffn = block(moe=experts, bias=Param(shape=(c.hidden_size,), category="ffn"))
    return causal_lm(c, Run(c.num_hidden_layers, pre_norm(rms(c), attn, ffn)), norm=rms(c))


@family(
    "zaya",
    "ZayaForCausalLM",
    defaults=dict(
        vocab_size=262272, hidden_size=2048, num_hidden_layers=40, num_attention_heads=8, num_key_value_heads=2
    )
    | dict(head_dim=128)
    | dict(moe_intermediate_size=2048, attention_bias=False, num_experts=16, num_experts_per_tok=1)
    | dict(router_hidden_size=256, cca_time0=2, cca_time1=2, sliding_window=None, layer_types=None)
    | dict(lm_head_bias=False, tie_word_embeddings=True),
)
def zaya(c: Config) -> Block:
    """Convolved attention and one expert of many, each with a weighted residual (ZayaForCausalLM)."""
    c.require(c.num_experts_per_tok == 1, "num_experts_per_tok must be 1")
    words = c.words("layer_types", ("hybrid", "hybrid_sliding")) or ["hybrid"] * c.num_hidden_layers
    layer = {word: zaya_layer(c, word, first=False) for word in dict.fromkeys(words)}
    layers = [zaya_layer(c, words[0], first=True), *(layer[word] for word in words[1:])]
    vector = Param(shape=(c.hidden_size,))
    before = {"input_scale": vector, "input_bias": vector}
    return causal_lm(c, layers, norm=rms(c), before=before, head_bias=c.lm_head_bias)


def zaya_layer(c: Config, word: str, *, first: bool) -> Block:
    """A layer; its router is an MLP that adds what the layer before thought, and may choose no expert at all."""
    d, r, vector = c.hidden_size, c.router_hidden_size, Param(shape=(c.hidden_size,))
    residual = block(scale=vector, bias=vector, residual_scale=vector, residual_bias=vector)
    window = c.sliding_window if word == "hybrid_sliding" else None
    c.require(window is not None or word == "hybrid", "sliding_window is missing, but layer_types has hybrid_sliding")
    attn = ConvolvedAttention(
        width=d,
        heads=c.num_attention_heads,
        kv_heads=kv_heads(c),
        head_dim=c.head_dim,
        kernels=(c.cca_time0, c.cca_time1),
        bias=c.attention_bias,
        window=window,
    )
    router = block(
        "router",
        down_proj=Linear(d_in=d, d_out=r, bias=True),
        states_scale=None if first else Param(shape=(r,)),
        norm=Norm(width=r),
        fc1=Linear(d_in=r, d_out=r, bias=True),
        fc2=Linear(d_in=r, d_out=r, bias=True),
        out_proj=Linear(d_in=r, d_out=c.num_experts + 1),
        correction=Param(shape=(c.num_experts + 1,), buffer=True),
    )
    ffn = moe(c, c.moe_intermediate_size, experts=c.num_experts, router=router)
    return block(input_norm=rms(c), attn=attn, attn_residual=residual, post_norm=rms(c), ffn=ffn, ffn_residual=residual)
