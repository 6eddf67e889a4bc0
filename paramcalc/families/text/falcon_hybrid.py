"""Falcon-H1: Mamba-2 and attention in parallel."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.decoder import causal_lm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.recurrent import mamba2_from_prefixed
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, Run, block


@family("falcon_h1")
def falcon_h1(c: Config) -> Block:
    """Mamba-2 and attention in parallel behind one norm in every layer, then an FFN (FalconH1ForCausalLM)."""
    bias = c.attention_bias
    layer = block(
        input_norm=rms(c),
        mixer=mamba2_from_prefixed(c, inner=c.mamba_d_ssm, out_bias=c.projectors_bias, gated_norm=c.mamba_rms_norm),
        attn=gqa(c, bias=bias),
        post_norm=rms(c),
        ffn=glu(c, bias=c.mlp_bias),
    )
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))
