"""Ling with Kimi delta attention and latent attention."""

from __future__ import annotations

from paramcalc.components import KimiDeltaAttention
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import head_gate
from paramcalc.families.builders.layer_types import FULL, LINEAR, every
from paramcalc.families.builders.mla import delta_mla_decoder
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("bailing_hybrid")
def bailing_hybrid(c: Config) -> Block:
    """Kimi Linear with full-rank gates, and a gate per head on latent attention (BailingHybridForCausalLM)."""
    d, h = c.hidden_size, c.num_attention_heads
    delta = KimiDeltaAttention(
        width=d,
        # The class derives the linear_ fields from the others if the file omits them.
        heads=c.linear_num_heads or h,
        head_dim=c.linear_head_dim or c.head_dim,
        kernel=c.linear_conv_kernel_dim or c.short_conv_kernel_size,
    )
    default = every(c.layer_group_size, FULL, otherwise=LINEAR, layers=c.num_hidden_layers)
    return delta_mla_decoder(c, delta, default, gate=head_gate(d, h))
