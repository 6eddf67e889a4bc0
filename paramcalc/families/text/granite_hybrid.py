"""Granite with Mamba-2 in most layers."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.decoder import decoder
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import FULL, LINEAR, mixer_types
from paramcalc.families.builders.recurrent import mamba2_from_prefixed
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("granitemoehybrid")
def granitemoehybrid(c: Config) -> Block:
    """Granite with Mamba-2 in most layers, routed experts and a shared MLP (GraniteMoeHybridForCausalLM)."""
    shared, count = c.shared_intermediate_size, c.num_local_experts
    ffn = moe(c, c.intermediate_size, experts=count, shared=shared) if count else glu(c, shared)
    mixer = {FULL: gqa(c, bias=c.attention_bias), LINEAR: mamba2_from_prefixed(c)}
    return decoder(c, mixer, ffn, mixer_types(c, [LINEAR] * c.num_hidden_layers))
