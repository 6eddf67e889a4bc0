"""Falcon: multi-query or grouped attention in parallel with the FFN."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha
from paramcalc.families.builders.decoder import causal_lm, layer_norm
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, Run, block

REPEATED_KV = "transformers' Falcon caches a copy of each key and value head for every query head that shares it"


@family("falcon", "RefinedWebModel", "RefinedWeb")
def falcon(c: Config) -> Block:
    """Multi-query or grouped attention in parallel with the FFN, behind one norm or two (FalconForCausalLM).

    Only the new decoder architecture reads num_kv_heads; otherwise multi_query means a single key/value head.
    """
    bias, norm = bool(c.bias), layer_norm(c)
    grouped, multi_query = c.new_decoder_architecture, c.multi_query
    kv = (c.num_kv_heads or c.num_attention_heads) if grouped else 1 if multi_query else c.num_attention_heads
    beside = c.num_ln_in_parallel_attn or (2 if grouped else 1)
    layer = block(
        input_norm=norm,
        attn=mha(c, bias=bias, kv=kv, cache_note=REPEATED_KV if grouped else ""),
        ffn_norm=norm if beside == 2 or not c.parallel_attn else None,
        ffn=mlp(c, c.ffn_hidden_size, bias=bias),
    ).replace(residual="together" if grouped or c.parallel_attn else "each")
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm)
