"""State space models: stacks of Mamba mixers only."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import causal_lm, rms
from paramcalc.families.builders.recurrent import mamba, mamba2_mixer
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, Run, block


@family("mamba", "falcon_mamba")
def mamba_lm(c: Config) -> Block:
    """A stack of selective state space mixers, each behind a norm, without FFNs (MambaForCausalLM)."""
    mixer = mamba(
        c,
        inner=c.intermediate_size or c.expand * c.hidden_size,
        state=c.state_size,
        kernel=c.conv_kernel,
        dt_rank="time_step_rank",
        bias=c.use_bias,
        conv_bias=c.use_conv_bias,
    )
    return causal_lm(c, Run(c.num_hidden_layers, block(norm=rms(c), mixer=mixer)), norm=rms(c))


@family("mamba2")
def mamba2_lm(c: Config) -> Block:
    """A stack of Mamba-2 mixers, each behind a norm, without FFNs (Mamba2ForCausalLM)."""
    inner = c.expand * c.hidden_size
    c.require(
        inner == c.num_heads * c.head_dim,
        f"expand x hidden_size ({inner}) is not num_heads x head_dim ({c.num_heads * c.head_dim})",
    )
    mixer = mamba2_mixer(c, inner=inner, heads=c.num_heads, head_dim=c.head_dim, state=c.state_size)
    return causal_lm(c, Run(c.num_hidden_layers, block(norm=rms(c), mixer=mixer)), norm=rms(c))
