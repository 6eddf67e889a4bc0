"""OLMo Hybrid: gated DeltaNets in most layers."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import GatedDeltaNet
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import qk_norm_all_heads
from paramcalc.families.builders.decoder import causal_lm, norms_after, pre_norm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.layer_types import FULL, LINEAR, every, mixer_types
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("olmo_hybrid")
def olmo_hybrid(c: Config) -> Block:
    """OLMo 2's attention with norms after it, after three gated DeltaNets with norms before (OlmoHybridForCausalLM)."""
    key_heads = c.linear_num_key_heads or c.num_attention_heads
    derived = symbolic("d_k", int(0.75 * c.hidden_size / key_heads), origin="3/4 d / heads, rounded down")
    key_dim = c.linear_key_head_dim or derived
    delta = GatedDeltaNet(
        width=c.hidden_size,
        key_heads=key_heads,
        value_heads=c.linear_num_value_heads or c.num_attention_heads,
        key_dim=key_dim,
        value_dim=c.linear_value_head_dim or 2 * key_dim,
        kernel=c.linear_conv_kernel_dim,
    )
    layers = {
        FULL: norms_after(rms(c), qk_norm_all_heads(c, bias=c.attention_bias), glu(c)),
        LINEAR: pre_norm(rms(c), delta, glu(c)),
    }
    default = every(4, FULL, otherwise=LINEAR, layers=c.num_hidden_layers)
    words = mixer_types(c, default if FULL in default else [*default[:-1], FULL])
    c.require(set(words) == {FULL, LINEAR}, "layer_types needs layers of both kinds")
    return causal_lm(c, [layers[word] for word in words], norm=rms(c))
