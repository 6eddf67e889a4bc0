"""The language models of Muse."""

from __future__ import annotations

from paramcalc.components import Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, head_dim, head_gate, sliding
from paramcalc.families.builders.decoder import decoder, norms_around
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import (
    DENSE,
    FULL,
    SLIDING,
    SPARSE,
    attention_types,
    first_dense,
    mlp_types,
)
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear, Norm, Param


@family("muse_glimmer_text")
def muse_glimmer_text(c: Config) -> Block:
    """Gated attention, norms before and after each sublayer, windows in three layers of four (MuseGlimmerTextModel)."""
    gate = head_gate(c.hidden_size, c.num_attention_heads, head_dim(c))
    attn = sliding(gqa(c, bias=c.attention_bias, gate=gate), c.sliding_window)
    words = attention_types(c, muse_layer_types(c))
    return decoder(c, attn, glu(c), words, layer=norms_around)


def muse_layer_types(c: Config) -> list[str]:
    """Full attention in the last layer and in every fourth before it, sliding attention in the others."""
    last = c.num_hidden_layers - 1
    return [SLIDING if (last - i) % 4 else FULL for i in range(last + 1)]


@family("muse_spark_text")
def muse_spark_text(c: Config) -> Block:
    """Muse Glimmer with gated residuals, and experts in a separate width (MuseSparkTextModel)."""
    gate = head_gate(c.hidden_size, c.num_attention_heads, head_dim(c))
    attn = sliding(gqa(c, bias=c.attention_bias, gate=gate), c.sliding_window)
    residual, ffn = Param(shape=(c.hidden_size,)), {DENSE: glu(c), SPARSE: muse_experts(c)}

    def layer(norm: Component, attn: Component, ffn: Component) -> Block:
        return block(
            input_norm=norm, attn=attn, attn_gate=residual, pre_ffn_norm=norm, ffn=ffn, post_ffn_norm=norm,
            ffn_gate=residual,
        )  # fmt: skip

    words = attention_types(c, muse_layer_types(c))
    return decoder(c, attn, ffn, words, mlp_types(c, first_dense(c, 0)), layer=layer)


def muse_experts(c: Config) -> Block:
    """Experts between two projections, with norms on their input and on their output."""
    d, inner = c.hidden_size, c.moe_hidden_size
    expert = Mlp(width=inner, hidden=c.moe_intermediate_size, gated=True)
    experts = moe(c, c.moe_intermediate_size, experts=c.num_local_experts, correction=True).replace(expert=expert)
    return block(
        latent_in=Linear(d_in=d, d_out=inner, category="other"),
        latent_norm=Norm(width=inner),
        moe=experts,
        expert_norm=Norm(width=inner),
        latent_out=Linear(d_in=inner, d_out=d, category="other"),
    )
