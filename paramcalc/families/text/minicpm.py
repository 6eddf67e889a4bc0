"""The language models of MiniCPM."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.decoder import decoder, unpublished
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.mla import latent_attention
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("minicpm")
def minicpm(c: Config) -> Block:
    """Llama with a tied head and scaled residuals; MiniCPM-MoE has experts in every layer (MiniCPMForCausalLM)."""
    if c.num_experts:
        unpublished(c)
    ffn = moe(c, c.intermediate_size, experts=c.num_experts) if c.num_experts else glu(c)
    return decoder(c, gqa(c, bias=c.attention_bias), ffn)


@family("minicpm3", "youtu")
def minicpm3(c: Config) -> Block:
    """Dense decoder with latent attention (MiniCPM3ForCausalLM)."""
    return decoder(c, latent_attention(c), glu(c, bias=c.mlp_bias))
