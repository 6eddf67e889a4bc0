"""Mamba in most layers, attention in a few, side by side or in turn."""

from __future__ import annotations

from paramcalc.components import Mlp, Moe, Router
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.decoder import causal_lm, decoder, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import FULL, LINEAR, mixer_types
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.builders.recurrent import mamba, mamba2_from_prefixed, mamba2_mixer
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block
from paramcalc.tree.leaves import Linear


@family("jamba")
def jamba(c: Config) -> Block:
    """Mamba with attention in every eighth layer, experts in every second (JambaForCausalLM)."""
    for kind in ("attn", "expert"):
        period, offset = f"{kind}_layer_period", f"{kind}_layer_offset"
        c.require(getattr(c, offset) < getattr(c, period), f"{offset} must be smaller than {period}")
    attn: Component = gqa(c)
    ssm = mamba(
        c,
        inner=c.mamba_expand * c.hidden_size,
        state=c.mamba_d_state,
        kernel=c.mamba_d_conv,
        dt_rank="mamba_dt_rank",
        bias=c.mamba_proj_bias,
        conv_bias=c.mamba_conv_bias,
        inner_norms=True,
    )
    dense = glu(c)
    sparse: Component = moe(c, c.intermediate_size, experts=c.num_experts) if c.num_experts > 1 else dense
    attends = [i % c.attn_layer_period == c.attn_layer_offset for i in range(c.num_hidden_layers)]
    routes = [i % c.expert_layer_period == c.expert_layer_offset for i in range(c.num_hidden_layers)]
    return decoder(c, {True: attn, False: ssm}, {True: sparse, False: dense}, attends, routes)


@family("bamba")
def bamba(c: Config) -> Block:
    """Mamba-2 with attention in the layers that attn_layer_indices lists, each with an FFN (BambaForCausalLM)."""
    chosen, mixer = (
        set(c.layer_indices("attn_layer_indices")),
        {True: gqa(c, bias=c.attention_bias), False: mamba2_from_prefixed(c)},
    )
    return decoder(c, mixer, glu(c, bias=c.mlp_bias), [i in chosen for i in range(c.num_hidden_layers)])


@family("falcon_h1")
def falcon_h1(c: Config) -> Block:
    """Mamba-2 and attention side by side behind one norm in every layer, then an FFN (FalconH1ForCausalLM)."""
    bias = c.attention_bias
    layer = block(
        input_norm=rms(c),
        mixer=mamba2_from_prefixed(c, inner=c.mamba_d_ssm, out_bias=c.projectors_bias, gated_norm=c.mamba_rms_norm),
        attn=gqa(c, bias=bias),
        post_norm=rms(c),
        ffn=glu(c, bias=c.mlp_bias),
    )
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("granitemoehybrid")
def granitemoehybrid(c: Config) -> Block:
    """Granite with Mamba-2 in most layers, and routed experts beside a shared MLP (GraniteMoeHybridForCausalLM)."""
    shared, count = c.shared_intermediate_size, c.num_local_experts
    ffn = moe(c, c.intermediate_size, experts=count, shared=shared) if count else glu(c, shared)
    mixer = {FULL: gqa(c, bias=c.attention_bias), LINEAR: mamba2_from_prefixed(c)}
    return decoder(c, mixer, ffn, mixer_types(c, [LINEAR] * c.num_hidden_layers))


NEMOTRON_LETTERS = {"M": LINEAR, "E": "moe", "*": FULL, "-": "mlp"}


@family("nemotron_h")
def nemotron_h(c: Config) -> Block:
    """One mixer in each layer: Mamba-2, attention, a plain FFN, or experts in a latent (NemotronHForCausalLM)."""
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
    """The word for each layer: from the list, else from the letters of older files; by default four layers."""
    letters = c.hybrid_override_pattern
    unknown = sorted(set(letters) - set(NEMOTRON_LETTERS))
    c.require(not unknown, f"hybrid_override_pattern has the unknown letters {unknown}", "known: M E * -")
    default = [NEMOTRON_LETTERS[letter] for letter in letters]
    return mixer_types(c, default, tuple(NEMOTRON_LETTERS.values()), any_length=True)


def nemotron_experts(c: Config) -> Component:
    """Experts of two matrices beside a shared one, in a latent of moe_latent_size channels where that is stated."""
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
