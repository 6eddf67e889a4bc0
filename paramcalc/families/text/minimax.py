"""MiniMax-M2 and M3: softmax attention and experts."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import qk_norm_all_heads, qk_norm_per_head
from paramcalc.families.builders.decoder import decoder, ignored_fields
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, FULL, SPARSE, mlp_types
from paramcalc.families.builders.mla import unweighted_indexer
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("minimax_m2")
def minimax_m2(c: Config) -> Block:
    """QK norms over all heads at once, experts in every layer (MiniMaxM2ForCausalLM)."""
    experts = moe(c, c.intermediate_size, experts=c.num_experts, correction=True)
    ignored_fields(c, use_qk_norm=True, qk_norm_type="per_layer", use_routing_bias=True, shared_intermediate_size=0)
    unbuilt_mtp(c, "num_mtp_modules")
    return decoder(c, qk_norm_all_heads(c), experts)


BLOCK_SPARSE = "minimax_m3_sparse"


@family("minimax_m3_vl_text")
def minimax_m3_text(c: Config) -> Block:
    """QK norms, an indexer that selects blocks in some layers, experts (MiniMaxM3VLForCausalLM)."""
    unbuilt_mtp(c, "num_mtp_modules")
    # The section of the original file; its fields take precedence over the flat ones.
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
    """The layer types of a list of 0 and 1."""
    if flags is None:
        return None
    c.require(isinstance(flags, list), f"flags of layers must be a list, not {flags!r}")
    c.require(len(flags) == c.num_hidden_layers, f"a list of {len(flags)} flags for {c.num_hidden_layers} layers")
    return [word if flag else otherwise for flag in flags]
