"""State space models and their hybrids with attention: Mamba, Mamba-2, Jamba."""

from __future__ import annotations

from paramcalc.components import Mamba2
from paramcalc.config import Config
from paramcalc.families.registry import family
from paramcalc.families.skeletons import causal_lm, glu, gqa, mamba, moe, pre_norm, rms
from paramcalc.spec import Block, Component, Run, block

MAMBA = dict(
    vocab_size=50280,
    hidden_size=768,
    num_hidden_layers=32,
    state_size=16,
    conv_kernel=4,
    expand=2,
    time_step_rank="auto",
    use_bias=False,
    use_conv_bias=True,
    tie_word_embeddings=True,
)


@family("mamba", "MambaForCausalLM", defaults=MAMBA | dict(intermediate_size=None))
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
    | dict(
        vocab_size=32768,
        hidden_size=4096,
        num_hidden_layers=64,
        num_heads=128,
        head_dim=64,
        state_size=128,
        n_groups=8,
        tie_word_embeddings=False,
    ),
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
    )
    return causal_lm(c, Run(c.num_hidden_layers, block(norm=rms(c), mixer=mixer)), norm=rms(c))


@family(
    "jamba",
    "JambaForCausalLM",
    names=dict(num_local_experts="num_experts"),
    defaults=dict(
        vocab_size=65536,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=None,
        num_experts=16,
        num_experts_per_tok=2,
        expert_layer_period=2,
        expert_layer_offset=1,
        attn_layer_period=8,
        attn_layer_offset=4,
        mamba_d_state=16,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_dt_rank="auto",
        mamba_conv_bias=True,
        mamba_proj_bias=False,
    ),
)
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

    def layer(i: int) -> tuple[bool, bool]:
        is_attention = i % c.attn_layer_period == c.attn_layer_offset
        return is_attention, i % c.expert_layer_period == c.expert_layer_offset

    layers = {
        (a, e): pre_norm(rms(c), attn if a else ssm, sparse if e else dense)
        for a in (True, False)
        for e in (True, False)
    }
    return causal_lm(c, [layers[layer(i)] for i in range(c.num_hidden_layers)], norm=rms(c))
