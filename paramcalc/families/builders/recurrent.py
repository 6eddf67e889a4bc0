"""Recurrent mixers from canonical fields. A dense decoder does not load this module."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import GatedDeltaNet, Mamba, Mamba2
from paramcalc.config.view import Config


def delta_net(c: Config) -> GatedDeltaNet:
    """The gated delta rule from the linear_ fields."""
    return GatedDeltaNet(
        width=c.hidden_size,
        key_heads=c.linear_num_key_heads,
        value_heads=c.linear_num_value_heads,
        key_dim=c.linear_key_head_dim,
        value_dim=c.linear_value_head_dim,
        kernel=c.linear_conv_kernel_dim,
    )


def mamba(
    c: Config,
    *,
    inner: int,
    state: int,
    kernel: int,
    dt_rank: str,
    bias: bool,
    conv_bias: bool,
    inner_norms: bool = False,
) -> Mamba:
    """A Mamba mixer; `dt_rank` names the field with the rank of the time step, by default d / 16."""
    rank = c.raw(dt_rank)
    by_width = symbolic("r", -(-c.hidden_size // 16), origin="d / 16, rounded up")
    return Mamba(
        width=c.hidden_size,
        inner=inner,
        state_size=state,
        kernel=kernel,
        dt_rank=by_width if rank in (None, "auto") else symbolic("r", c.size(dt_rank, rank), origin=c.key(dt_rank)),
        conv_bias=conv_bias,
        bias=bias,
        inner_norms=inner_norms,
    )


def mamba2_mixer(c: Config, *, inner: int, heads: int, head_dim: int, state: int) -> Mamba2:
    """Mamba-2 of these sizes; other sizes come from the fields without a prefix."""
    return Mamba2(
        width=c.hidden_size,
        inner=inner,
        heads=heads,
        head_dim=head_dim,
        state_size=state,
        groups=c.n_groups,
        kernel=c.conv_kernel,
        conv_bias=c.use_conv_bias,
        bias=c.use_bias,
        out_bias=c.use_bias,
        chunk=c.chunk_size,
    )


def mamba2_from_prefixed(
    c: Config, *, inner: int | None = None, out_bias: bool | None = None, gated_norm: bool = True
) -> Mamba2:
    """Mamba-2 from the mamba_ fields; its inner width is `inner`, by default mamba_expand times the width."""
    inner = c.mamba_expand * c.hidden_size if inner is None else inner
    heads, stated = c.mamba_n_heads, c.raw("mamba_d_head")
    channels = inner // heads if stated in (None, "auto") else c.size("mamba_d_head", stated)
    c.require(heads * channels == inner, f"mamba_n_heads x mamba_d_head ({heads} x {channels}) is not {inner}")
    return Mamba2(
        width=c.hidden_size,
        inner=inner,
        heads=heads,
        head_dim=channels,
        state_size=c.mamba_d_state,
        groups=c.mamba_n_groups,
        kernel=c.mamba_d_conv,
        conv_bias=c.mamba_conv_bias,
        bias=c.mamba_proj_bias,
        out_bias=c.mamba_proj_bias if out_bias is None else out_bias,
        gated_norm=gated_norm,
        chunk=c.mamba_chunk_size,
    )
