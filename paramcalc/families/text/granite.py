"""Granite with attention sinks or experts; plain Granite equals Llama."""

from __future__ import annotations

from paramcalc.components import Moe
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, sliding
from paramcalc.families.builders.decoder import decoder
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import attention_types, full_first
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("granite_swa")
def granite_swa(c: Config) -> Block:
    """Granite with a sink per head, full attention in every fourth layer from the first on (GraniteSWAForCausalLM)."""
    attn = sliding(gqa(c, bias=c.attention_bias, sinks=True), c.sliding_window)
    return decoder(c, attn, glu(c, bias=c.mlp_bias), attention_types(c, full_first(c, 4)))


@family("granitemoe", "granitemoeshared")
def granitemoe(c: Config) -> Block:
    """Granite with experts in every layer, and an optional shared one (GraniteMoeForCausalLM)."""
    return decoder(c, gqa(c, bias=c.attention_bias), granite_experts(c))


def granite_experts(c: Config) -> Moe:
    """Routed experts, and a shared one if its width is present."""
    return moe(c, c.intermediate_size, experts=c.num_local_experts, shared=c.shared_intermediate_size or None)


@family("granitemoe_swa")
def granitemoe_swa(c: Config) -> Block:
    """Granite's experts with attention sinks, full attention in every fourth layer (GraniteMoeSWAForCausalLM)."""
    attn = sliding(gqa(c, bias=c.attention_bias, sinks=True), c.sliding_window)
    return decoder(c, attn, granite_experts(c), attention_types(c, full_first(c, 4)))
