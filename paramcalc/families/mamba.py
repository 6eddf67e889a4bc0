"""State space models: stacks of Mamba mixers alone."""

from __future__ import annotations

from paramcalc.components import Mamba2
from paramcalc.config import Config
from paramcalc.families.mixers import mamba
from paramcalc.families.registry import family
from paramcalc.families.skeletons import causal_lm, rms
from paramcalc.spec import Block, Run, block

MAMBA = dict(vocab_size=50280, hidden_size=768, num_hidden_layers=32, tie_word_embeddings=True) | dict(
    state_size=16, conv_kernel=4, expand=2, use_bias=False, use_conv_bias=True
)
MAMBA1 = MAMBA | dict(intermediate_size=None, time_step_rank="auto")


@family("mamba", "MambaForCausalLM", defaults=MAMBA1)
@family("falcon_mamba", "FalconMambaForCausalLM", defaults=MAMBA1)
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


@family(
    "mamba2",
    "Mamba2ForCausalLM",
    defaults=MAMBA
    | dict(vocab_size=32768, hidden_size=4096, num_hidden_layers=64, num_heads=128, head_dim=64, state_size=128)
    | dict(n_groups=8, tie_word_embeddings=False),
    # Fields of the original implementation that stand in published files; the class fixes or derives them.
    unused=["time_step_rank", "intermediate_size", "rms_norm", "norm_before_gate"],
)
def mamba2_lm(c: Config) -> Block:
    """A stack of Mamba-2 mixers, each behind a norm, without FFNs (Mamba2ForCausalLM)."""
    inner = c.expand * c.hidden_size
    c.require(
        inner == c.num_heads * c.head_dim,
        f"expand x hidden_size ({inner}) is not num_heads x head_dim ({c.num_heads * c.head_dim})",
    )
    mixer = Mamba2(
        width=c.hidden_size,
        inner=inner,
        heads=c.num_heads,
        head_dim=c.head_dim,
        state=c.state_size,
        groups=c.n_groups,
        kernel=c.conv_kernel,
        conv_bias=c.use_conv_bias,
        bias=c.use_bias,
        out_bias=c.use_bias,
    )
    return causal_lm(c, Run(c.num_hidden_layers, block(norm=rms(c), mixer=mixer)), norm=rms(c))
