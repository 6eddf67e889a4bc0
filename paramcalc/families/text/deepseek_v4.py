"""DeepSeek-V4: attention over compressed keys, and several residual streams."""

from __future__ import annotations

from paramcalc.components import CompressedAttention, Compressor
from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import causal_lm
from paramcalc.families.builders.ffn import moe
from paramcalc.families.builders.layer_types import SLIDING
from paramcalc.families.builders.mla import CSA, HCA, lightning_indexer
from paramcalc.families.builders.residual_streams import hyper_connected_layer, hyper_connection, merged_streams
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear, Param

RATIO_LAYER_TYPES = {0: SLIDING, 4: CSA, 128: HCA}


@family("deepseek_v4")
def deepseek_v4(c: Config) -> Block:
    """Attention over compressed keys, experts (some chosen by hash), residual streams (DeepseekV4ForCausalLM)."""
    mix, attn, ffn = (
        hyper_connection(c, (c.hc_mult + 2) * c.hc_mult, 3),
        deepseek_v4_attention(c),
        deepseek_v4_experts(c),
    )
    layers = {(a, f): hyper_connected_layer(c, attn[a], ffn[f], mix) for a in attn for f in ffn}
    hashes = ["hash_moe" if i < c.num_hash_layers else "moe" for i in range(c.num_hidden_layers)]
    words = zip(deepseek_v4_layer_types(c), c.layer_words("mlp_layer_types", ffn) or hashes, strict=True)
    return causal_lm(c, [layers[pair] for pair in words], norm=merged_streams(c))


def deepseek_v4_layer_types(c: Config) -> list[str]:
    """The attention of each layer: `layer_types`, or the original file's ratios, or alternating compressed kinds."""
    ratios, depth = c.layer_indices("compress_ratios"), c.num_hidden_layers
    words = c.layer_words("layer_types", (SLIDING, CSA, HCA))
    if words is None and ratios:
        c.require(set(ratios) <= set(RATIO_LAYER_TYPES), f"compress_ratios is {ratios!r}", "known: 0, 4, 128")
        c.require(len(ratios) >= depth, f"compress_ratios has {len(ratios)} entries for {depth} layers")
        return [RATIO_LAYER_TYPES[ratio] for ratio in ratios[:depth]]  # the rest belong to the MTP modules
    return words or [HCA if i < 2 or i % 2 == 0 else CSA for i in range(depth)]


def deepseek_v4_attention(c: Config) -> dict[str, Component]:
    """The three kinds: a window alone, with all heavily compressed keys, or with selected lightly compressed ones."""
    rates, d_h = c.section("compress_rates"), c.head_dim
    csa, hca = c.compress_rate_csa or getattr(rates, CSA), c.compress_rate_hca or getattr(rates, HCA)
    c.require(c.num_attention_heads * d_h % c.o_groups == 0, f"o_groups ({c.o_groups}) does not divide the heads")
    window = CompressedAttention(
        width=c.hidden_size,
        heads=c.num_attention_heads,
        head_dim=d_h,
        q_rank=c.q_lora_rank,
        groups=c.o_groups,
        out_rank=c.o_lora_rank,
        window=c.sliding_window,
    )
    small = Compressor(width=c.hidden_size, head_dim=c.index_head_dim, rate=csa, overlap=2)
    indexer = lightning_indexer(c, c.q_lora_rank).replace(k_norm=None, compressor=small)
    heavy = Compressor(width=c.hidden_size, head_dim=d_h, rate=hca)
    light = Compressor(width=c.hidden_size, head_dim=d_h, rate=csa, overlap=2)
    return {
        SLIDING: window,
        HCA: window.replace(compressor=heavy),
        CSA: window.replace(compressor=light, indexer=indexer),
    }


def deepseek_v4_experts(c: Config) -> dict[str, Component]:
    """Experts chosen by scores, or by a table from the token id; one shared expert of the same width."""
    e, count, k = c.intermediate_size, c.num_local_experts, c.num_experts_per_tok
    table = Param(shape=(c.vocab_size, k), buffer=True)
    hashed = block("router", gate=Linear(d_in=c.hidden_size, d_out=count), experts_of_token=table)
    return {
        "moe": moe(c, e, experts=count, shared=e, shared_bias=c.mlp_bias, correction=True),
        "hash_moe": moe(c, e, experts=count, shared=e, shared_bias=c.mlp_bias, router=hashed),
    }
