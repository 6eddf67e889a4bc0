"""MiniMax-01 and M1: lightning attention in most layers, and experts."""

from __future__ import annotations

from paramcalc.components import LightningAttention
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, head_dim
from paramcalc.families.builders.decoder import decoder
from paramcalc.families.builders.ffn import moe
from paramcalc.families.builders.layer_types import FULL, LINEAR, every, mixer_types
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("minimax")
def minimax(c: Config) -> Block:
    """Alternating full and lightning attention, experts in every layer (MiniMaxForCausalLM)."""
    lightning = LightningAttention(
        width=c.hidden_size, heads=c.num_attention_heads, head_dim=head_dim(c), block_size=c.block_size
    )
    attn = {FULL: gqa(c, window=c.sliding_window), LINEAR: lightning}
    words = mixer_types(c, every(2, LINEAR, otherwise=FULL, layers=c.num_hidden_layers))
    return decoder(c, attn, moe(c, c.intermediate_size, experts=c.num_experts), words)


@family("minimax_text_01", "minimax_m1")
def minimax_text_01(c: Config) -> Block:
    """Lightning attention where attn_type_list has 0, full where it has 1, and experts (MiniMaxText01ForCausalLM).

    A shared expert with a gate is optional.
    """
    words = c.per_layer("attn_type_list")
    if words is None:
        raise c.missing("attn_type_list")
    c.require(
        all(type(word) is int and word in (0, 1) for word in words), "attn_type_list has words other than 0 and 1"
    )
    lightning = LightningAttention(
        width=c.hidden_size, heads=c.num_attention_heads, head_dim=head_dim(c), block_size=None
    )
    shared = c.shared_intermediate_size or None
    experts = moe(c, c.intermediate_size, experts=c.num_experts, shared=shared, shared_gate=shared is not None)
    return decoder(c, {0: lightning, 1: gqa(c)}, experts, words)
