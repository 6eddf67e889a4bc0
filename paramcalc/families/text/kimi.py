"""Kimi Linear: Kimi delta attention in most layers, latent attention in a few."""

from __future__ import annotations

from paramcalc.components import KimiDeltaAttention
from paramcalc.config.view import Config
from paramcalc.families.builders.layer_types import FULL, LINEAR
from paramcalc.families.builders.mla import delta_mla_decoder
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("kimi_linear")
def kimi_linear(c: Config) -> Block:
    """Three Kimi delta attentions for each latent attention; routed and shared experts (KimiLinearForCausalLM)."""
    linear, depth = c.section("linear_attn_config"), c.num_hidden_layers
    head_dim = linear.head_dim or c.linear_head_dim
    delta = KimiDeltaAttention(
        width=c.hidden_size,
        heads=linear.num_heads or c.linear_num_heads,
        head_dim=head_dim,
        kernel=linear.short_conv_kernel_size or c.linear_conv_kernel_dim,
        gate_rank=head_dim,
    )
    default = [FULL if i and i % 4 == 0 else LINEAR for i in range(depth)]
    if linear.has("full_attn_layers") and linear.has("kda_layers"):
        full, kda = linear.layer_indices("full_attn_layers"), linear.layer_indices("kda_layers")  # numbered from 1
        c.require(
            sorted(full + kda) == list(range(1, depth + 1)) or c.has("layer_types"),
            f"full_attn_layers and kda_layers do not name each of {depth} layers once",
        )
        default = [FULL if i + 1 in full else LINEAR for i in range(depth)]
    return delta_mla_decoder(c, delta, default)
