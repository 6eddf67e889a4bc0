"""LFM: short convolutions in most layers, attention in a few."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import ShortConv
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import head_gate, qk_norm_per_head, sliding
from paramcalc.families.builders.decoder import decoder, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, FULL, SLIDING, SPARSE, first_dense, mixer_types
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Norm

CONV_LAYER = "conv"


def short_conv(c: Config) -> ShortConv:
    """LFM2's convolution over conv_L_cache tokens."""
    return ShortConv(width=c.hidden_size, kernel=c.conv_L_cache, bias=c.conv_bias)


def lfm2_mixers(c: Config) -> dict[str, Component]:
    """Attention with QK norms, and short convolutions."""
    return {FULL: qk_norm_per_head(c), CONV_LAYER: short_conv(c)}


@family("lfm2")
def lfm2(c: Config) -> Block:
    """Short convolutions and attention; the FFN width is 2/3 of the field, rounded up (Lfm2ForCausalLM)."""
    hidden, multiple, factor = c.block_ff_dim or c.intermediate_size, c.block_multiple_of, c.block_ffn_dim_multiplier
    if c.block_auto_adjust_ff_dim:
        rounded = -(-int(factor * (2 * hidden // 3)) // multiple) * multiple
        hidden = symbolic("d_ff", rounded, origin="2/3 of the stated width, adjusted")
    full = set(c.layer_indices("full_attn_idxs")) if c.raw("full_attn_idxs") is not None else range(c.num_hidden_layers)
    words = mixer_types(c, [FULL if i in full else CONV_LAYER for i in range(c.num_hidden_layers)], (FULL, CONV_LAYER))
    return decoder(c, lfm2_mixers(c), glu(c, hidden), words)


@family("lfm2_moe")
def lfm2_moe(c: Config) -> Block:
    """LFM2 with experts after the first num_dense_layers layers (Lfm2MoeForCausalLM)."""
    c.require(c.has("layer_types"), "layer_types is required and missing", "the class has no default for it")
    experts = moe(c, c.moe_intermediate_size, experts=c.num_experts, correction=c.use_expert_bias)
    ffn, words = {DENSE: glu(c), SPARSE: experts}, mixer_types(c, [], (FULL, CONV_LAYER))
    return decoder(c, lfm2_mixers(c), ffn, words, first_dense(c, c.num_dense_layers))


@family("lfm3")
def lfm3(c: Config) -> Block:
    """LFM2 with sliding attention too, a gate per head, norms before and after each sublayer (Lfm3ForCausalLM)."""
    after = rms(c) if c.use_sandwich_norm else None
    gate = head_gate(c.hidden_size, c.num_attention_heads) if c.use_attention_gate else None
    mixer = sliding(qk_norm_per_head(c, bias=c.attention_bias, gate=gate), c.sliding_window) | {
        CONV_LAYER: short_conv(c)
    }

    def layer(norm: Norm, attn: Component, ffn: Component) -> Block:
        return block(input_norm=norm, attn=attn, post_attn_norm=after, pre_ffn_norm=norm, ffn=ffn, post_norm=after)

    default = [FULL if i % 4 == 2 else SLIDING if i % 4 == 0 and i else CONV_LAYER for i in range(c.num_hidden_layers)]
    return decoder(c, mixer, glu(c), mixer_types(c, default, tuple(mixer)), layer=layer)
