"""Nemotron-H: one mixer in each layer, most often Mamba-2."""

from __future__ import annotations

from paramcalc.components import Mlp, Moe, Router
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.decoder import causal_lm, rms
from paramcalc.families.builders.layer_types import FULL, LINEAR, mixer_types
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.builders.recurrent import mamba2_mixer
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear

NEMOTRON_LETTERS = {"M": LINEAR, "E": "moe", "*": FULL, "-": "mlp"}


@family("nemotron_h")
def nemotron_h(c: Config) -> Block:
    """One mixer in each layer: Mamba-2, attention, a plain FFN, or latent experts (NemotronHForCausalLM)."""
    heads, d_h = c.mamba_num_heads, c.mamba_head_dim
    mixer: dict[str, Component] = {
        LINEAR: mamba2_mixer(c, inner=heads * d_h, heads=heads, head_dim=d_h, state=c.ssm_state_size),
        FULL: gqa(c),
        "mlp": Mlp(width=c.hidden_size, hidden=c.intermediate_size, gated=False, bias=c.mlp_bias),
        "moe": nemotron_experts(c),
    }
    unbuilt_mtp(c)
    return causal_lm(c, [block(norm=rms(c), mixer=mixer[word]) for word in nemotron_layer_types(c)], norm=rms(c))


def nemotron_layer_types(c: Config) -> list[str]:
    """The type of each layer: from the list, else from the letters of older files; by default four layers."""
    letters = c.hybrid_override_pattern
    unknown = sorted(set(letters) - set(NEMOTRON_LETTERS))
    c.require(not unknown, f"hybrid_override_pattern has the unknown letters {unknown}", "known: M E * -")
    default = [NEMOTRON_LETTERS[letter] for letter in letters]
    return mixer_types(c, default, tuple(NEMOTRON_LETTERS.values()), any_length=True)


def nemotron_experts(c: Config) -> Component:
    """Routed experts of two matrices and a shared one; in a latent of moe_latent_size channels if present."""
    d, latent, bias = c.hidden_size, c.moe_latent_size, c.mlp_bias
    shared = c.moe_shared_expert_intermediate_size
    experts = Moe(
        width=d,
        expert=Mlp(width=latent or d, hidden=c.moe_intermediate_size, gated=False),
        experts=c.num_local_experts,
        top_k=c.num_experts_per_tok,
        router=Router(width=d, experts=c.num_local_experts, correction=True),
        shared=Mlp(width=d, hidden=shared, gated=False, bias=bias, category="shared_experts"),
    )
    if latent is None:
        return experts
    return block(
        latent_in=Linear(d_in=d, d_out=latent, bias=bias, category="other"),
        moe=experts,
        latent_out=Linear(d_in=latent, d_out=d, bias=bias, category="other"),
    )
