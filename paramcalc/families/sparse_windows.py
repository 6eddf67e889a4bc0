"""Sparse decoders whose layers differ in attention too: sliding, chunked or indexed in some, full in others."""

from __future__ import annotations

from paramcalc.components import Attention
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import (
    gqa,
    head_dim,
    head_gate,
    qk_norm_per_head,
    sized_attention,
    sliding,
    with_options,
)
from paramcalc.families.builders.decoder import decoder, ignored_fields, norms_around, parallel
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
from paramcalc.families.builders.mla import unweighted_indexer
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block
from paramcalc.tree.leaves import Norm

CHUNKED_ATTENTION = "chunked_attention"
BLOCK_SPARSE = "minimax_m3_sparse"


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


@family("dots1")
def dots1(c: Config) -> Block:
    """Qwen3's attention, dense layers first, then routed and shared experts (Dots1ForCausalLM)."""
    window, e = c.sliding_window, c.moe_intermediate_size
    ignored_fields(c, moe_layer_freq=1)
    attn = sliding(qk_norm_per_head(c, bias=c.attention_bias), window)
    ffn: dict[str, Component] = {DENSE: glu(c)}
    if c.first_k_dense_replace < c.num_hidden_layers:
        n, count = c.required("n_shared_experts"), c.required("num_local_experts")
        ffn[SPARSE] = moe(c, e, experts=count, shared=n * e, shared_count=n, correction=True)
    first = c.num_hidden_layers if window is None else c.max_window_layers
    words = attention_types(c, [FULL if i < first else SLIDING for i in range(c.num_hidden_layers)])
    return decoder(c, attn, ffn, words, first_dense(c, c.first_k_dense_replace))


@family("exaone_moe")
def exaone_moe(c: Config) -> Block:
    """Normed queries and keys, sliding layers, dense layers first, then experts (ExaoneMoeForCausalLM)."""
    window, e, n = c.sliding_window, c.moe_intermediate_size, c.num_shared_experts
    c.require(bool(c.raw("layer_types")) or window is not None, "sliding_window is null and layer_types is missing")
    words = full_every(c, c.sliding_window_pattern)
    ffn = {DENSE: glu(c), SPARSE: moe(c, e, experts=c.num_experts, shared=n * e, shared_count=n, correction=True)}
    ffn_words = mlp_types(c, first_dense(c, c.first_k_dense_replace))
    unbuilt_mtp(c)
    return decoder(c, sliding(qk_norm_per_head(c), window), ffn, words, ffn_words)


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


@family("laguna")
def laguna(c: Config) -> Block:
    """A gate per head or channel, heads of their own number in each layer, experts (LagunaForCausalLM)."""
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


@family("minimax_m3_vl_text")
def minimax_m3_text(c: Config) -> Block:
    """Normed queries and keys, in some layers an indexer that picks blocks; experts (MiniMaxM3VLForCausalLM)."""
    unbuilt_mtp(c, "num_mtp_modules")
    # The original file's section, whose fields take precedence over the flat ones.
    legacy = c.section("sparse_attention_config")
    heads, blocks = legacy.sparse_num_index_heads or c.index_n_heads, legacy.sparse_topk_blocks or c.index_topk_blocks
    keep = blocks * (legacy.sparse_block_size or c.index_block_size)
    indexer = unweighted_indexer(c.hidden_size, heads, legacy.sparse_index_dim or c.index_head_dim, top_k=keep)
    attn = {FULL: qk_norm_per_head(c), BLOCK_SPARSE: qk_norm_per_head(c, indexer=indexer)}
    experts = moe(c, c.intermediate_size, experts=c.num_experts, shared=c.shared_intermediate_size, correction=True)
    flags, moe_flags = legacy.raw("sparse_attention_freq"), c.per_layer("moe_layer_freq")
    words = (
        c.layer_words("layer_types", attn)
        or types_from_flags(c, flags, BLOCK_SPARSE, FULL)
        or [FULL] * c.num_hidden_layers
    )
    ffn_words = mlp_types(c, types_from_flags(c, moe_flags, SPARSE, DENSE) or [SPARSE] * c.num_hidden_layers)
    ffn = {DENSE: glu(c, c.dense_intermediate_size), SPARSE: experts}
    return decoder(c, attn, ffn, words, ffn_words)


def types_from_flags(c: Config, flags: list[int] | None, word: str, otherwise: str) -> list[str] | None:
    """A list of 0 and 1, one for each layer, as words."""
    if flags is None:
        return None
    c.require(isinstance(flags, list), f"flags of layers must be a list, not {flags!r}")
    c.require(len(flags) == c.num_hidden_layers, f"a list of {len(flags)} flags for {c.num_hidden_layers} layers")
    return [word if flag else otherwise for flag in flags]


@family("llama4_text")
def llama4_text(c: Config) -> Block:
    """Chunked and full attention; experts beside a shared one in the layers of moe_layers (Llama4ForCausalLM)."""
    width, depth, full = c.intermediate_size, c.num_hidden_layers, gqa(c, bias=c.attention_bias)
    attn = {FULL: full, CHUNKED_ATTENTION: with_options(full, window=c.attention_chunk_size)}
    rotary = c.per_layer("no_rope_layers") if c.raw("no_rope_layers") else None
    rotary = rotary or [(i + 1) % c.no_rope_layer_interval for i in range(depth)]
    chunks = c.attention_chunk_size is not None
    words = c.layer_words("layer_types", attn) or [CHUNKED_ATTENTION if flag and chunks else FULL for flag in rotary]
    step, listed = c.interleave_moe_layer_step, c.raw("moe_layers") is not None
    sparse = set(c.layer_indices("moe_layers") if listed else range(step - 1, depth, step))
    ffn_words = [SPARSE if i in sparse else DENSE for i in range(depth)]
    ffn = {
        DENSE: glu(c, c.intermediate_size_mlp),
        SPARSE: moe(c, width, experts=c.num_local_experts, shared=width),
    }
    return decoder(c, attn, ffn, words, ffn_words)
