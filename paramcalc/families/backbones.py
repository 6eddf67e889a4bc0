"""Language models that transformers has only inside models that see, each of its own kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paramcalc.base.symbolic import symbolic
from paramcalc.components import HyperConnection, KimiDeltaAttention, Mlp, Router
from paramcalc.components.sparse import IndexKeys, KeyPooling
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import (
    gqa,
    head_dim,
    head_gate,
    qk_norm_all_heads,
    qk_norm_per_head,
    sliding,
    with_options,
)
from paramcalc.families.builders.decoder import causal_lm, decoder, norms_after, norms_around, pre_norm, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import (
    DENSE,
    FULL,
    LINEAR,
    SLIDING,
    SPARSE,
    attention_types,
    first_dense,
    mlp_types,
    per_layer_overrides,
)
from paramcalc.families.builders.mla import (
    INDEXED,
    indexer_types,
    latent_attention,
    lightning_indexer,
    mla_moe,
    shared_width,
)
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("molmo2_text")
def molmo2_text(c: Config) -> Block:
    """Llama with QK norms and rows for tokens that are never put out (Molmo 2; Molmo2TextModel)."""
    kind, norm = c.qk_norm_type, rms(c)
    c.require(kind in ("qwen3", "olmo"), f"qk_norm_type {kind!r} is neither qwen3 nor olmo")
    attn = (qk_norm_per_head if kind == "qwen3" else qk_norm_all_heads)(c, qkv_bias=c.attention_bias)
    layer = (norms_after if c.norm_after else pre_norm)(norm, attn, glu(c))
    parts = dict(causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm).items)
    rows = c.vocab_size + c.additional_vocab_size
    return block(**parts | {"embed_tokens": Embedding(rows=rows, width=c.hidden_size)})


@family("muse_glimmer_text")
def muse_glimmer_text(c: Config) -> Block:
    """Gated attention, norms on both sides of each part, windows in three layers of four (MuseGlimmerTextModel)."""
    gate = head_gate(c.hidden_size, c.num_attention_heads, head_dim(c))
    attn = sliding(gqa(c, bias=c.attention_bias, gate=gate), c.sliding_window)
    words = attention_types(c, muse_layer_types(c))
    return decoder(c, attn, glu(c), words, layer=norms_around)


def muse_layer_types(c: Config) -> list[str]:
    """Full attention in the last layer and in every fourth before it, windows in the others."""
    last = c.num_hidden_layers - 1
    return [SLIDING if (last - i) % 4 else FULL for i in range(last + 1)]


@family("muse_spark_text")
def muse_spark_text(c: Config) -> Block:
    """Muse Glimmer with gated residuals, and experts in a width of their own (MuseSparkTextModel)."""
    gate = head_gate(c.hidden_size, c.num_attention_heads, head_dim(c))
    attn = sliding(gqa(c, bias=c.attention_bias, gate=gate), c.sliding_window)
    residual, ffn = Param(shape=(c.hidden_size,)), {DENSE: glu(c), SPARSE: muse_experts(c)}

    def layer(norm: Component, attn: Component, ffn: Component) -> Block:
        return block(
            input_norm=norm, attn=attn, attn_gate=residual, pre_ffn_norm=norm, ffn=ffn, post_ffn_norm=norm,
            ffn_gate=residual,
        )  # fmt: skip

    words = attention_types(c, muse_layer_types(c))
    return decoder(c, attn, ffn, words, mlp_types(c, first_dense(c, 0)), layer=layer)


def muse_experts(c: Config) -> Block:
    """Experts behind a projection with a norm, with a norm on what they put out, and a projection back."""
    d, inner = c.hidden_size, c.moe_hidden_size
    expert = Mlp(width=inner, hidden=c.moe_intermediate_size, gated=True)
    experts = moe(c, c.moe_intermediate_size, experts=c.num_local_experts, correction=True).replace(expert=expert)
    return block(
        latent_in=Linear(d_in=d, d_out=inner, category="other"),
        latent_norm=Norm(width=inner),
        moe=experts,
        expert_norm=Norm(width=inner),
        latent_out=Linear(d_in=inner, d_out=d, category="other"),
    )


# -- DeepSeek-OCR and what follows it ----------------------------------------------------------------------------


@family("deepseek_ocr2_text")
def deepseek_ocr2_text(c: Config) -> Block:
    """Llama with routed and shared experts in the layers that mlp_layer_types names (DeepseekOcr2TextModel)."""
    c.require(c.raw("mlp_layer_types") is not None, "mlp_layer_types is missing", "the class has no default for it")
    return deepseek_ocr_decoder(c, first=0)


REFERENCE_SLIDING = "reference_sliding_attention"


@family("unlimited_ocr_text")
def unlimited_ocr_text(c: Config) -> Block:
    """DeepSeek-OCR's decoder; what it reads stays in sight, what it writes in a window (UnlimitedOcrTextModel)."""
    written = (
        f"all tokens are kept as if they were read; of those that are written it keeps the last {c.sliding_window}"
    )
    words = c.layer_words("layer_types", (REFERENCE_SLIDING, FULL)) or [REFERENCE_SLIDING] * c.num_hidden_layers
    return deepseek_ocr_decoder(
        c, first=c.first_k_dense_replace, doubts={REFERENCE_SLIDING: written, FULL: ""}, words=words
    )


def deepseek_ocr_decoder(
    c: Config, *, first: int, doubts: dict[str, str] | None = None, words: list[str] | None = None
) -> Block:
    """Llama with routed and shared experts, dense in the first layers unless mlp_layer_types says otherwise.

    `doubts`: why the cache of layers of such a word is not told exactly.
    """
    e, n, bias = c.moe_intermediate_size, c.n_shared_experts, c.mlp_bias
    experts = moe(c, e, experts=c.num_experts, shared=n * e, shared_count=n, shared_bias=bias)
    ffn = {DENSE: glu(c, bias=bias), SPARSE: experts}
    attn = gqa(c, bias=c.attention_bias)
    kinds = attn if doubts is None else {word: with_options(attn, cache_doubt=doubt) for word, doubt in doubts.items()}
    return decoder(c, kinds, ffn, words, ffn_words=mlp_types(c, first_dense(c, first)))


# -- Step 3.7 ----------------------------------------------------------------------------------------------------


@family("step3p5")
def step3p5(c: Config) -> Block:
    """A gate on each head, QK norms, three dense layers first, then experts beside a shared one (Step3p7TextModel)."""
    bias, words = c.mlp_bias, without_mtp_entries(c, "layer_types", (FULL, SLIDING)) or [FULL] * c.num_hidden_layers
    shared = c.share_expert_dim
    experts = moe(
        c, c.moe_intermediate_size, experts=c.num_local_experts, shared=shared, shared_bias=bias, correction=True
    )
    ffn = {DENSE: glu(c, bias=bias), SPARSE: experts}

    per_head = c.raw("gating") in (None, True, "per-head")

    def layer(word: str, heads: int, kind: str) -> Block:
        window = c.sliding_window if word == SLIDING else None
        gate = head_gate(c.hidden_size, heads, None if per_head else c.head_dim)
        attn = qk_norm_per_head(c, bias=c.attention_bias, gate=gate, window=window)
        attn = with_options(attn, heads=heads)
        return pre_norm(rms(c), attn, ffn[kind])

    plan = list(zip(words, step_heads(c, words), step_ffn_types(c), strict=True))
    layers = {kind: layer(*kind) for kind in dict.fromkeys(plan)}
    unbuilt_mtp(c)
    return causal_lm(c, [layers[kind] for kind in plan], norm=rms(c))


def without_mtp_entries(c: Config, name: str, allowed: Sequence[str]) -> list[str] | None:
    """One word for each layer; files have more, for modules of multi-token prediction that the class does not build."""
    stated = c.layer_words(name, allowed, any_length=True)
    extra = c.size("num_nextn_predict_layers", c.raw("num_nextn_predict_layers") or 0)
    if stated is None or len(stated) != c.num_hidden_layers + extra:
        return c.layer_words(name, allowed)
    return stated[: c.num_hidden_layers]


def step_heads(c: Config, words: list[str]) -> list[int]:
    """Query heads of each layer: sliding ones may have their own, unless per_layer_config says all."""
    overrides = per_layer_overrides(c, ("num_attention_heads",))
    if overrides is not None:
        return [layer.get("num_attention_heads", c.num_attention_heads) for layer in overrides]
    other = c.section("attention_other_setting").num_attention_heads
    heads = {FULL: c.num_attention_heads, SLIDING: c.num_sliding_attention_heads or other or c.num_attention_heads}
    return [heads[word] for word in words]


def step_ffn_types(c: Config) -> list[str]:
    """Which layers have experts: mlp_layer_types, or the numbers in moe_layers_enum, or all from the fourth on."""
    stated, listed = without_mtp_entries(c, "mlp_layer_types", (DENSE, SPARSE)), c.raw("moe_layers_enum")
    if stated is not None or listed is None:
        return stated or first_dense(c, 3)
    numbers = listed.split(",") if isinstance(listed, str) else c.layer_indices("moe_layers_enum")
    c.require(all(str(i).strip().isdecimal() for i in numbers), "moe_layers_enum must be numbers of layers")
    sparse = {int(i) for i in numbers}
    return [SPARSE if i in sparse else DENSE for i in range(c.num_hidden_layers)]


# -- attention of their own --------------------------------------------------------------------------------------


@family("ernie4_5_vl_moe_text")
def ernie4_5_vl_moe_text(c: Config) -> Block:
    """ERNIE 4.5 with experts for text, others for images, and shared ones for both (Ernie4_5_VLMoeTextModel).

    Active counts those that a token of text uses.
    """
    bias, widths = c.use_bias, c.list_of("moe_intermediate_size") or [1536, 512]
    c.require(len(widths) == 2, f"moe_intermediate_size has {len(widths)} entries, not one for text and one for images")
    text, image = (c.size("moe_intermediate_size", width) for width in widths)
    router: dict[str, Any] = dict(correction=True, correction_counted=True)
    n = c.moe_num_shared_experts
    experts = moe(
        c, text, experts=c.num_experts, shared=n * text if n else None, shared_count=n, shared_bias=bias, **router
    )
    images = Router(width=c.hidden_size, experts=c.num_experts, correction=True, correction_counted=True, per="tower")
    seen = moe(c, image, experts=c.num_experts, router=images).replace(top_k=0)
    ffn = {DENSE: glu(c, bias=bias), SPARSE: block(text=experts, image=seen)}
    return decoder(c, gqa(c, bias=bias), ffn, ffn_words=mlp_types(c, first_dense(c, 1)))


@family("mistral_large4_text")
def mistral_large4_text(c: Config) -> Block:
    """Latent attention with scaled softmax and indexers, rotary but in every fourth layer (MistralLarge4TextModel)."""
    sources = c.layer_indices("kv_source_layers") or list(range(c.num_hidden_layers))
    own = sources == list(range(c.num_hidden_layers))
    c.require(own, "kv_source_layers shares keys and values between layers, which cannot be counted")
    step = c.no_rope_layer_interval
    rotary = c.per_layer("no_rope_layers") or [(i + 1) % step for i in range(c.num_hidden_layers)]
    d, plain, both = c.hidden_size, latent_attention(c), c.qk_nope_head_dim + c.qk_rope_head_dim
    attn = {True: plain, False: plain.replace(nope_dim=both, rope_dim=0)}
    own_norm = Norm(width=d, bias=True)
    indexer = {
        "full": block(q_input_norm=own_norm, scores=lightning_indexer(c, d), scaling=softmax_scaling(c.index_n_heads)),
        "shared": None,
    }
    e = c.moe_intermediate_size
    experts = moe(c, e, experts=c.num_local_experts, shared=shared_width(c), shared_count=c.n_shared_experts)
    ffn = {DENSE: glu(c), SPARSE: experts}

    def layer(rope: bool, index: str, kind: str) -> Block:
        scaling = softmax_scaling(c.num_attention_heads)
        mixer = with_options(attn[rope], inner=scaling, indexer=indexer[index], picks=c.index_topk)
        return pre_norm(rms(c), mixer, ffn[kind])

    words = mlp_types(c, first_dense(c, c.first_k_dense_replace))
    plan = list(zip(map(bool, rotary), indexer_types(c), words, strict=True))
    layers = {kind: layer(*kind) for kind in dict.fromkeys(plan)}
    half = symbolic("d_r / 2", (c.qk_rope_head_dim + 1) // 2, origin="qk_rope_head_dim / 2, rounded up")
    rope = c.raw("rope_parameters") or {}
    if isinstance(rope, Mapping) and rope.get("partial_rotary_factor") not in (None, 1):
        c.doubts.append(
            f"{c.family}: partial_rotary_factor makes some kinds of rope_parameters learn fewer frequencies"
        )
    if c.qk_rope_head_dim == 1:
        c.doubts.append(f"{c.family}: some kinds of rope_parameters learn no frequency for one rotary channel")
    positions = {"rotary_alpha": Param(shape=(half,))}
    return causal_lm(c, [layers[kind] for kind in plan], norm=rms(c), before=positions)


def softmax_scaling(heads: int) -> Block:
    """A scale and a bias for each head, which scores are multiplied by."""
    return block(scale=Param(shape=(heads,)), bias=Param(shape=(heads,)))


@family("glm5_next_text")
def glm5_next_text(c: Config) -> Block:
    """Kimi's delta attention, latent attention over pooled keys, residual streams, experts (Glm5NextTextModel)."""
    linear = c.section("linear_attn_config")
    d_h = linear.head_dim or c.linear_head_dim
    delta = KimiDeltaAttention(
        width=c.hidden_size,
        heads=linear.num_heads or c.linear_num_heads,
        head_dim=d_h,
        kernel=linear.short_conv_kernel_size or c.linear_conv_kernel_dim,
        gate_rank=d_h,
    )
    pool = block(
        positions=Param(shape=(c.index_kpool, c.index_head_dim)),
        gate=Linear(d_in=c.hidden_size, d_out=c.index_head_dim),
    )
    scores = lightning_indexer(c, c.q_lora_rank).replace(
        index_keys=IndexKeys(c.index_head_dim + 1), pooling=KeyPooling(c.index_kpool)
    )
    indexer = {"full": block(scores=scores, pool=pool), "shared": None}
    default = [LINEAR if (i + 1) % 4 else INDEXED for i in range(c.num_hidden_layers)]
    words = c.layer_words("layer_types", (LINEAR, INDEXED, FULL)) or default
    ffn, mix = {DENSE: glu(c), SPARSE: mla_moe(c)}, glm_hyper_connection(c)
    plan = list(zip(words, indexer_types(c), mlp_types(c, first_dense(c, 3)), strict=True))

    def layer(word: str, index: str, kind: str) -> Block:
        mixer = delta if word == LINEAR else latent_attention(c, indexer=indexer[index], picks=c.index_topk)
        return block(attn_streams=mix, input_norm=rms(c), attn=mixer, ffn_streams=mix, post_norm=rms(c), ffn=ffn[kind])

    layers = {kind: layer(*kind) for kind in dict.fromkeys(plan)}
    unbuilt_mtp(c)
    return causal_lm(c, [layers[kind] for kind in plan], norm=rms(c))


def glm_hyper_connection(c: Config) -> HyperConnection:
    """hc_mult residual streams, mixed before and after a part."""
    return HyperConnection(width=c.hidden_size, streams=c.hc_mult, mixtures=(2 + c.hc_mult) * c.hc_mult, scales=3)
