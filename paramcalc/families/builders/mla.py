"""Parts of decoders with multi-head latent attention (MLA): DeepSeek and its relatives."""

from __future__ import annotations

from typing import Any

from paramcalc.components import Indexer, LatentAttention
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, with_options
from paramcalc.families.builders.decoder import decoder
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import (
    DENSE,
    FULL,
    LINEAR,
    SPARSE,
    first_dense,
    ignored_frequency,
    mixer_types,
    mlp_types,
)
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block
from paramcalc.tree.leaves import Norm

INDEXED, CSA, HCA = "indexed_attention", "compressed_sparse_attention", "heavily_compressed_attention"


def latent_attention(c: Config, **options: Any) -> LatentAttention:
    """Latent attention from the q_lora_rank, kv_lora_rank, qk_ and v_ fields; values have d / h channels by default.

    `options`: a gate on the heads, and fields of `LatentAttention` and of its value objects (`sinks=`, `picks=`).
    """
    plain = LatentAttention(
        width=c.hidden_size,
        heads=c.num_attention_heads,
        q_rank=c.q_lora_rank,
        kv_rank=c.kv_lora_rank,
        nope_dim=c.qk_nope_head_dim,
        rope_dim=c.qk_rope_head_dim,
        value_dim=c.v_head_dim or equal_heads(c),
        bias=c.attention_bias,
    )
    return with_options(plain, **options) if options else plain


def shared_width(c: Config) -> int | None:
    """The width of all shared experts together, which are one MLP; even with none of them its biases remain."""
    return None if c.n_shared_experts is None else c.n_shared_experts * c.moe_intermediate_size


def mla_moe(c: Config) -> Component:
    """Routed experts with correction biases, and shared ones as one MLP."""
    shared, e = shared_width(c), c.moe_intermediate_size
    return moe(c, e, experts=c.num_local_experts, shared=shared, shared_count=c.n_shared_experts, correction=True)


def moe_layer_freq_types(c: Config) -> list[str]:
    """Dense layers first, then sparse ones: at multiples of moe_layer_freq, or where its list has a 1."""
    first, listed = c.first_k_dense_replace, isinstance(c.raw("moe_layer_freq"), list)
    flags = c.per_layer("moe_layer_freq") if listed else None
    flags = flags or [i % c.moe_layer_freq == 0 for i in range(c.num_hidden_layers)]
    return [SPARSE if i >= first and flag else DENSE for i, flag in enumerate(flags)]


def lightning_indexer(c: Config, q_rank: int) -> Indexer:
    """DeepSeek-V3.2's indexer: queries from the latent vector, one normalised key, a weight for each head."""
    return Indexer(
        width=c.hidden_size,
        query_width=q_rank,
        heads=c.index_n_heads,
        head_dim=c.index_head_dim,
        top_k=c.index_topk,
        k_norm=Norm(width=c.index_head_dim, bias=True),
    )


def unweighted_indexer(width: int, heads: int, head_dim: int, *, top_k: int) -> Indexer:
    """An indexer over the layer's input, with normalised queries and key, and no weights for its heads."""
    norm = Norm(width=head_dim)
    plain = Indexer(width=width, query_width=width, heads=heads, head_dim=head_dim, top_k=top_k, weighted=False)
    return plain.replace(q_norm=norm, k_norm=norm)


def indexed_latent_attention(c: Config) -> LatentAttention:
    """Latent attention with an indexer."""
    attn: LatentAttention = latent_attention(c, indexer=lightning_indexer(c, c.q_lora_rank))
    return attn


def indexer_types(c: Config) -> list[str]:
    """The layers with an indexer of their own: all of them unless indexer_types says otherwise."""
    return c.layer_words("indexer_types", ("full", "shared")) or ["full"] * c.num_hidden_layers


def delta_mla_decoder(c: Config, delta: Component, default: list[str], *, gate: Component | None = None) -> Block:
    """Kimi's decoder: delta attention and latent attention, a few dense layers first, then experts."""
    attn = latent_attention(c, gate=gate)
    ffn_words = mlp_types(c, first_dense(c, c.first_k_dense_replace))
    ignored_frequency(c)
    unbuilt_mtp(c)
    ffn = {DENSE: glu(c), SPARSE: mla_moe(c)}
    return decoder(c, {FULL: attn, LINEAR: delta}, ffn, mixer_types(c, default), ffn_words)
