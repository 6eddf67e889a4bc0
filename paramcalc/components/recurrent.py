"""Recurrent mixers: selective state spaces that keep a state of fixed size instead of a growing cache."""

from __future__ import annotations

from collections.abc import Mapping

from paramcalc.dims import Size
from paramcalc.spec import Category, Component, Conv1d, Linear, Norm, Param


class Mamba(Component):
    """Mamba's selective state space mixer (Gu and Dao 2023, 2312.00752, section 3.4; MambaMixer).

    Shapes: in (2 d_i, d), depthwise conv (d_i, 1, kernel), x (r + 2 n, d_i), dt (d_i, r), A (d_i, n), D (d_i),
    out (d, d_i), with d_i inner channels, n state channels and rank r of the time step.
    """

    category: Category | None = "recurrent"
    width: Size
    inner: Size
    state: Size
    kernel: Size
    dt_rank: Size
    conv_bias: bool = True
    bias: bool = False
    inner_norms: bool = False  # on dt, B and C (Jamba)

    def parts(self) -> Mapping[str, Component]:
        norms = {"dt_norm": self.dt_rank, "b_norm": self.state, "c_norm": self.state} if self.inner_norms else {}
        return {
            "in_proj": Linear(d_in=self.width, d_out=2 * self.inner, bias=self.bias),
            "conv1d": Conv1d(channels=self.inner, kernel=self.kernel, bias=self.conv_bias),
            "x_proj": Linear(d_in=self.inner, d_out=self.dt_rank + 2 * self.state),
            **{name: Norm(width=width) for name, width in norms.items()},
            "dt_proj": Linear(d_in=self.dt_rank, d_out=self.inner, bias=True),
            "A_log": Param(shape=(self.inner, self.state)),
            "D": Param(shape=(self.inner,)),
            "out_proj": Linear(d_in=self.inner, d_out=self.width, bias=self.bias),
        }

    def label(self) -> str:
        return "mamba"


class Mamba2(Component):
    """Mamba-2's state space dual mixer (Dao and Gu 2024, 2405.21060, section 7; Mamba2Mixer).

    Shapes: in (2 d_i + 2 groups n + heads, d), depthwise conv over d_i + 2 groups n channels, one A, D and dt bias per
    head, a gated norm over d_i, out (d, d_i); d_i = heads x head_dim inner channels.
    """

    category: Category | None = "recurrent"
    width: Size
    inner: Size
    heads: Size
    head_dim: Size
    state: Size
    groups: Size
    kernel: Size
    conv_bias: bool = True
    bias: bool = False

    def parts(self) -> Mapping[str, Component]:
        channels = self.inner + 2 * self.groups * self.state
        return {
            "in_proj": Linear(d_in=self.width, d_out=self.inner + channels + self.heads, bias=self.bias),
            "conv1d": Conv1d(channels=channels, kernel=self.kernel, bias=self.conv_bias),
            "dt_bias": Param(shape=(self.heads,)),
            "A_log": Param(shape=(self.heads,)),
            "D": Param(shape=(self.heads,)),
            "norm": Norm(width=self.inner),
            "out_proj": Linear(d_in=self.inner, d_out=self.width, bias=self.bias),
        }

    def label(self) -> str:
        return "mamba2"
