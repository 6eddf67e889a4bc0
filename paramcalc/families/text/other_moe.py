"""Decoders with routed experts."""

from __future__ import annotations

from collections.abc import Sequence

from paramcalc.components import Attention
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import (
    gqa,
    head_dim,
    head_gate,
    mha,
    qk_norm_per_head,
    qk_norm_windowed,
    sized_attention,
    sliding,
    with_options,
)
from paramcalc.families.builders.decoder import (
    causal_lm,
    decoder,
    ignored_fields,
    norms_around,
    pre_norm,
    rms,
    unpublished,
)
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
    per_layer_overrides,
)
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Norm, Param


@family("afmoe")
def afmoe(c: Config) -> Block:
    """Gated attention, four norms a layer, sliding and full layers; dense layers first (AfmoeForCausalLM)."""
    d, e = c.hidden_size, c.moe_intermediate_size
    gate = head_gate(d, c.num_attention_heads, head_dim(c))
    attn = sliding(qk_norm_per_head(c, bias=c.attention_bias, gate=gate), c.sliding_window)
    n = c.num_shared_experts
    experts = moe(c, e, experts=c.num_experts, shared=n * e, shared_count=n, correction=True, correction_counted=True)
    words, ffn = full_every(c, c.global_attn_every_n_layers), {DENSE: glu(c), SPARSE: experts}
    return decoder(c, attn, ffn, words, first_dense(c, c.num_dense_layers), layer=norms_around)


@family("arctic")
def arctic(c: Config) -> Block:
    """Experts in every moe_layer_frequency-th layer, parallel to a narrow dense FFN (ArcticForCausalLM)."""
    unpublished(c)
    words = every(c.moe_layer_frequency, SPARSE, otherwise=DENSE, layers=c.num_hidden_layers)
    return decoder(c, gqa(c), {DENSE: glu(c), SPARSE: arctic_experts(c)}, ffn_words=words)


def arctic_experts(c: Config) -> Component:
    """Routed experts, and optionally a residual FFN with a norm of its own."""
    experts = moe(c, c.intermediate_size, experts=c.num_experts)
    residual = block(norm=rms(c), ffn=glu(c, c.hidden_size))
    return block(residual=residual, moe=experts) if c.parallel_attn_mlp_res else experts


@family("aria_text")
def aria_text(c: Config) -> Block:
    """Llama with routed and shared experts in every layer (AriaTextForCausalLM)."""
    c.require(c.hidden_size % c.num_attention_heads == 0, "hidden_size is not a multiple of num_attention_heads")
    width, n, bias = c.intermediate_size, c.moe_num_shared_experts, c.mlp_bias
    shared = n * width  # even without shared experts their network exists, with its last bias
    experts = moe(
        c, width, experts=c.moe_num_experts, top_k=c.moe_topk, shared=shared, shared_count=n, shared_bias=bias
    )
    return decoder(c, gqa(c, bias=c.attention_bias), experts)


@family("beam")
def beam(c: Config) -> Block:
    """Gated attention, norms around each sublayer, five windows to one full layer, experts (BeamForCausalLM)."""
    depth, h = c.num_hidden_layers, c.num_attention_heads
    gate = block(gate_proj=head_gate(c.hidden_size, h, head_dim(c)), gate_bias=Param(shape=(h,)))
    return decoder(
        c,
        qk_norm_windowed(c, gate=gate),
        {DENSE: glu(c), SPARSE: moe(c, c.moe_intermediate_size, experts=c.num_experts, correction=True)},
        attention_types(c, [*every(6, FULL, otherwise=SLIDING, layers=depth - 1), FULL]),
        mlp_types(c, first_dense(c, 3)),
        layer=norms_around,
    )


@family("dbrx")
def dbrx(c: Config) -> Block:
    """Grouped-query attention and experts behind LayerNorms without biases, sized in sections (DbrxForCausalLM)."""
    attn, ffn = c.section("attn_config"), c.section("ffn_config")
    c.require(not c.tie_word_embeddings, "tie_word_embeddings is not supported")
    # The class sizes the experts before it reads the other name.
    c.require(c.key("hidden_size") == "d_model", "hidden_size does not reach the experts", "write d_model")
    experts = moe(c, ffn.ffn_hidden_size, experts=ffn.moe_num_experts, top_k=ffn.moe_top_k)
    return decoder(c, mha(c, bias=False, kv=attn.kv_n_heads), experts)


@family("flint")
def flint(c: Config) -> Block:
    """QK norms and sinks, windows in three layers of four, experts after two dense layers (FlintForCausalLM)."""
    depth = c.num_hidden_layers
    dense = [0, 1] if c.raw("mlp_only_layers") is None else c.layer_indices("mlp_only_layers")
    sparse = moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=c.shared_expert_intermediate_size)
    has_experts = [c.num_experts > 0 and i not in dense and (i + 1) % c.decoder_sparse_step == 0 for i in range(depth)]
    full = [i < 2 or i % 4 == 1 or i == depth - 1 for i in range(depth)]
    return decoder(
        c,
        qk_norm_windowed(c, sinks=True),
        {DENSE: glu(c), SPARSE: sparse},
        attention_types(c, [FULL if here else SLIDING for here in full]),
        [SPARSE if here else DENSE for here in has_experts],
    )


@family("grok-1")
def grok_1(c: Config) -> Block:
    """Mixtral with norms before and after attention and experts (Grok1ModelForCausalLM of hpcai-tech/grok-1)."""
    return decoder(c, gqa(c), moe(c, c.intermediate_size, experts=c.num_experts), layer=norms_around)


@family("grok-2")
def grok_2(c: Config) -> Block:
    """Grok-1 with a dense FFN next to the experts, averaged with them (Grok1ForCausalLM of xai-org/grok-2)."""
    for name in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_experts"):
        c.required(name)
    dense = c.required("intermediate_size")
    unpublished(c)
    width = c.moe_intermediate_size or dense
    experts = moe(c, width, experts=c.num_experts, shared=dense if c.residual_moe else None)
    return decoder(c, gqa(c), experts, layer=norms_around)


@family("kolibri1")
def kolibri1(c: Config) -> Block:
    """Norms around each sublayer, full attention in every fifth layer, experts in all (Kolibri1ForCausalLM)."""
    shared = c.shared_expert_intermediate_size
    experts = moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared, correction=True)
    return decoder(c, qk_norm_windowed(c), experts, full_every(c, 5), layer=norms_around)


@family("laguna")
def laguna(c: Config) -> Block:
    """A gate per head or channel, a head count of its own in each layer, experts (LagunaForCausalLM)."""
    stated = [c.size("num_attention_heads", n) for n in c.per_layer("num_attention_heads_per_layer") or ()]
    heads = stated or [c.num_attention_heads] * c.num_hidden_layers
    pairs = list(zip(attention_types(c, [FULL] * len(heads)), heads, strict=True))
    attn = {pair: laguna_attention(c, pair[1], c.sliding_window if pair[0] == SLIDING else None) for pair in pairs}
    shared, e = c.shared_expert_intermediate_size, c.moe_intermediate_size
    experts = moe(c, e, experts=c.num_experts, shared=shared, correction=True, correction_counted=True)
    return decoder(c, attn, {DENSE: glu(c), SPARSE: experts}, pairs, mlp_types(c, first_dense(c, 1)))


def laguna_attention(c: Config, heads: int, window: int | None) -> Attention:
    """Attention of `heads` query heads with a gate: one value per head (true, "per-head"), or per channel."""
    h, d_h, kv = heads, c.head_dim, c.num_key_value_heads
    gating = c.raw("gating")
    c.require(gating is None or isinstance(gating, bool | str), f"gating must be true, false or a word, not {gating!r}")
    c.require(h % kv == 0, f"a layer's {h} heads do not share num_key_value_heads ({kv}) in equal groups")
    gate = head_gate(c.hidden_size, h, None if gating in (None, True, "per-head") else d_h)
    options = dict(kv_heads=kv, bias=c.attention_bias, qk_norm=Norm(width=d_h), window=window, gate=gate)
    return sized_attention(c.hidden_size, h, d_h, **options)


@family("mellum")
def mellum(c: Config) -> Block:
    """Qwen3-MoE with lists of attention and FFN types (MellumForCausalLM)."""
    unbuilt_mtp(c, "num_mtp_layers")
    ffn = {DENSE: glu(c), SPARSE: moe(c, c.moe_intermediate_size, experts=c.num_experts)}
    return decoder(c, qk_norm_windowed(c), ffn, full_every(c, 1), mlp_types(c, first_dense(c, 0)))


@family("mimo_v2_flash")
def mimo_v2_flash(c: Config) -> Block:
    """Sliding layers with sinks and twice the key/value heads, narrow values, experts (MiMoV2FlashForCausalLM)."""
    full = gqa(c, qkv_bias=c.attention_bias, value_dim=c.v_head_dim)
    slides = {"kv_heads": 2 * c.num_key_value_heads, "sinks": True, "window": c.sliding_window}
    attn = {FULL: full, SLIDING: with_options(full, **slides)}
    default = [FULL if i == 0 or (i + 1) % 6 == 0 else SLIDING for i in range(c.num_hidden_layers)]
    experts = moe(c, c.moe_intermediate_size, experts=c.num_local_experts, correction=True)
    ffn, ffn_words = {DENSE: glu(c), SPARSE: experts}, mlp_types(c, first_dense(c, 1))
    words = attention_types(c, default)
    unbuilt_mtp(c)
    ignored_fields(
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
    return decoder(c, attn, ffn, words, ffn_words)


# -- Step 3.5 --------------------------------------------------------------------------------------------------------


@family("step3p5")
def step3p5(c: Config) -> Block:
    """A gate on each head, QK norms, three dense layers, then routed and shared experts (Step3p7TextModel)."""
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
    """One type for each layer, without the extra entries of multi-token-prediction modules."""
    stated = c.layer_words(name, allowed, any_length=True)
    extra = c.size("num_nextn_predict_layers", c.raw("num_nextn_predict_layers") or 0)
    if stated is None or len(stated) != c.num_hidden_layers + extra:
        return c.layer_words(name, allowed)
    return stated[: c.num_hidden_layers]


def step_heads(c: Config, words: list[str]) -> list[int]:
    """Query heads of each layer: sliding layers may have their own, or per_layer_config states all."""
    overrides = per_layer_overrides(c, ("num_attention_heads",))
    if overrides is not None:
        return [layer.get("num_attention_heads", c.num_attention_heads) for layer in overrides]
    other = c.section("attention_other_setting").num_attention_heads
    heads = {FULL: c.num_attention_heads, SLIDING: c.num_sliding_attention_heads or other or c.num_attention_heads}
    return [heads[word] for word in words]


def step_ffn_types(c: Config) -> list[str]:
    """The FFN of each layer: mlp_layer_types, or experts in moe_layers_enum, by default from the fourth layer on."""
    stated, listed = without_mtp_entries(c, "mlp_layer_types", (DENSE, SPARSE)), c.raw("moe_layers_enum")
    if stated is not None or listed is None:
        return stated or first_dense(c, 3)
    numbers = listed.split(",") if isinstance(listed, str) else c.layer_indices("moe_layers_enum")
    c.require(all(str(i).strip().isdecimal() for i in numbers), "moe_layers_enum must be numbers of layers")
    sparse = {int(i) for i in numbers}
    return [SPARSE if i in sparse else DENSE for i in range(c.num_hidden_layers)]
