"""Recurrent mixers: state space models, gated linear recurrences and short convolutions, with a state of fixed size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component
from paramcalc.tree.leaves import Conv1d, Linear, Norm, Param
from paramcalc.tree.ops import PER_CHUNK, PER_CHUNK_PAIR, PER_STEP, FlopTerm
from paramcalc.tree.state import FLOAT32, CacheEntry, conv_state, fixed_state
from paramcalc.tree.steps import Step
from paramcalc.tree.weights import Category, ShardSpec, Weight, by_heads


class Mamba(Component):
    """Mamba's selective state space mixer, with a time step of rank r.

    The state is (d_inner, n) and the last inputs of the convolution. In Zamba each head has an x and a dt of its own
    channels, which hold the same number of elements.
    Shapes: in (2 d_inner, d), depthwise convolution (d_inner, 1, w), x (r + 2 n, d_inner), dt (d_inner, r), A
    (d_inner, n), D (d_inner), out (d, d_inner).
    Source: Gu and Dao 2023 (2312.00752), section 3.4; MambaMixer.
    """

    category: Category | None = "recurrent"
    width: Size
    inner: Size
    state_size: Size
    kernel: Size
    dt_rank: Size
    conv_bias: bool = True
    bias: bool = False
    inner_norms: bool = False  # on dt, B and C (Jamba)

    def parts(self) -> Mapping[str, Component]:
        norms = (
            {"dt_norm": self.dt_rank, "b_norm": self.state_size, "c_norm": self.state_size} if self.inner_norms else {}
        )
        column, row = ShardSpec("column", self.inner), ShardSpec("row", self.inner)
        return {
            "in_proj": Linear(d_in=self.width, d_out=2 * self.inner, bias=self.bias, split=column),
            "conv1d": Conv1d(
                channels=self.inner,
                kernel=self.kernel,
                bias=self.conv_bias,
                causal_padding=self.kernel - 1,
                split=column,
            ),
            "x_proj": Linear(d_in=self.inner, d_out=self.dt_rank + 2 * self.state_size, split=row),
            **{name: Norm(width=width) for name, width in norms.items()},
            "dt_proj": Linear(d_in=self.dt_rank, d_out=self.inner, bias=True, split=column),
            "A_log": Param(shape=(self.inner, self.state_size), split=column),
            "D": Param(shape=(self.inner,), split=column),
            "out_proj": Linear(d_in=self.inner, d_out=self.width, bias=self.bias, split=row),
        }

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width}

    def own_ops(self) -> Iterator[FlopTerm]:
        """C times the state for each channel; decay and update of the state are elementwise."""
        yield FlopTerm("scan", 2 * self.inner * self.state_size, "recurrence")

    def own_state(self) -> Iterator[CacheEntry]:
        """The state of each inner channel, and the last inputs of the convolution."""
        yield fixed_state(self.inner * self.state_size, shares=self.inner, dtype=FLOAT32)
        yield conv_state(self.inner, self.kernel, shares=self.inner)

    def label(self) -> str:
        return "mamba"


class Mamba2(Component):
    """Mamba-2's state space dual mixer: h heads of d_h channels, d_inner = h d_h, and B and C for each of G groups.

    The state is (h, d_h, n) and the last inputs of the convolution.
    Shapes: in (2 d_inner + 2 G n + h, d), depthwise convolution (d_inner + 2 G n, 1, w), A, D and dt bias (h), gated
    norm (d_inner), out (d, d_inner).
    Source: Dao and Gu 2024 (2405.21060), section 7; Mamba2Mixer.
    """

    category: Category | None = "recurrent"
    width: Size
    inner: Size
    heads: Size
    head_dim: Size
    state_size: Size
    groups: Size
    kernel: Size
    conv_bias: bool = True
    bias: bool = False
    out_bias: bool = False
    gated_norm: bool = True  # False: the gate alone (Falcon-H1)
    chunk: Size = 256  # tokens processed at a time; the last chunk is padded

    def parts(self) -> Mapping[str, Component]:
        shared = 2 * self.groups * self.state_size
        channels, column = self.inner + shared, by_heads("column", self.heads)
        fused = by_heads("column", self.heads, fused=shared, groups=self.groups)
        norm = {"norm": Norm(width=self.inner, split=column)} if self.gated_norm else {}
        per_head = Param(shape=(self.heads,), split=column)
        return {
            "in_proj": Linear(d_in=self.width, d_out=self.inner + channels + self.heads, bias=self.bias, split=fused),
            "conv1d": Conv1d(
                channels=channels, kernel=self.kernel, bias=self.conv_bias, causal_padding=self.kernel - 1, split=fused
            ),
            "dt_bias": per_head,
            "A_log": per_head,
            "D": per_head,
            **norm,
            "out_proj": Linear(
                d_in=self.inner, d_out=self.width, bias=self.out_bias, split=by_heads("row", self.heads)
            ),
        }

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width}

    def own_ops(self) -> Iterator[FlopTerm]:
        """C B^T and its product with x within a chunk, writes and reads of the state, and states passed between chunks.

        Section 6 of the paper, as in mamba2's torch_chunk_scan: the reference combines the decayed states of all chunks
        for each chunk, so that n chunks take (n + 1)^2 products. One token at a time, only the read is a product.
        """
        c, h, p, n = self.chunk, self.heads, self.head_dim, self.state_size
        yield FlopTerm("within_chunks", 2 * c * c * h * (n + p) + 4 * c * h * p * n, "recurrence", PER_CHUNK, size=c)
        yield FlopTerm("between_chunks", 2 * h * p * n, "recurrence", PER_CHUNK_PAIR, size=c)
        yield FlopTerm("step", 2 * h * p * n, "recurrence", PER_STEP)

    def own_state(self) -> Iterator[CacheEntry]:
        """The state of each head, and the last inputs of the convolution."""
        yield fixed_state(self.heads * self.head_dim * self.state_size, shares=self.heads, dtype=FLOAT32)
        yield conv_state(self.inner, self.kernel, shares=self.heads)
        yield conv_state(2 * self.groups * self.state_size, self.kernel, shares=self.groups)

    def label(self) -> str:
        return "mamba2"


class RgLru(Component):
    """Griffin's recurrent block: a convolution and a real-gated linear recurrent unit, multiplied by a GELU branch.

    The state is d_inner channels and the last w - 1 inputs of the convolution.
    Shapes: x and y (d_inner, d), depthwise convolution (d_inner, 1, w), block-diagonal input and recurrence gate
    (h, d_inner / h, d_inner / h), decay (d_inner), out (d, d_inner); all matrices have biases.
    Source: Griffin (2402.19427), sections 2.3 and 2.4; RecurrentGemmaRecurrentBlock.
    """

    category: Category | None = "recurrent"
    width: Size
    inner: Size
    heads: Size
    kernel: Size

    def parts(self) -> Mapping[str, Component]:
        column = by_heads("column", self.heads)
        branch = Linear(d_in=self.width, d_out=self.inner, bias=True, split=column)
        share = self.inner // self.heads
        matrix = Param(shape=(self.heads, share, share), split=column, per="token")
        bias = Param(shape=(self.heads, share), split=column)
        return {
            "y_proj": branch,
            "x_proj": branch,
            "conv1d": Conv1d(channels=self.inner, kernel=self.kernel, causal_padding=self.kernel - 1, split=column),
            "input_gate": matrix,
            "input_gate_bias": bias,
            "recurrent_gate": matrix,
            "recurrent_gate_bias": bias,
            "decay": Param(shape=(self.inner,), split=column),
            "out_proj": Linear(d_in=self.inner, d_out=self.width, bias=True, split=by_heads("row", self.heads)),
        }

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width}

    own_ops = Component.no_own_ops  # the recurrence is elementwise

    def own_state(self) -> Iterator[CacheEntry]:
        """The state of each channel, and the last w - 1 inputs of the convolution, as in the reference."""
        yield fixed_state(self.inner, shares=self.inner, dtype=FLOAT32)
        yield fixed_state(self.inner, shares=self.inner)._replace(size=self.kernel - 1)

    def label(self) -> str:
        return "rg-lru"


class CausalConv(Conv1d):
    """A short depthwise convolution over time, whose taps may be computed for each token (`taps`).

    The state is the last inputs, in `dtype`.
    Shapes: (channels, 1, w); with computed taps, static ones (w, channels) and the matrices of `taps`.
    Source: InklingShortConvolution, Inkling2DynamicShortConvolution.
    """

    category: Category | None = "recurrent"
    bias: bool = False
    dilation: Size = 1
    taps: Component | None = None
    dtype: str | None = None

    def parts(self) -> Mapping[str, Component]:
        if self.taps is None:
            return {}
        return {"static": Param(shape=(self.kernel, self.channels)), "weights": self.taps}

    def own_weights(self) -> Iterator[Weight]:
        return super().own_weights() if self.taps is None else iter(())

    def own_ops(self) -> Iterator[FlopTerm]:
        return super().own_ops() if self.taps is None else iter(())

    def steps(self) -> Iterator[Step]:
        return super().steps() if self.taps is None else Component.steps(self)

    def own_state(self) -> Iterator[CacheEntry]:
        """The last w inputs; with a dilation, all inputs in its receptive field but the newest."""
        if self.dilation == 1:
            yield conv_state(self.channels, self.kernel)._replace(dtype=self.dtype)
        else:
            yield fixed_state(self.channels, dtype=self.dtype)._replace(size=(self.kernel - 1) * self.dilation)


class ShortConv(Component):
    """A short convolution between two gates.

    The state is the last inputs of the convolution.
    Shapes: in (3 d, d) for both gates and the input, depthwise convolution (d, 1, w), out (d, d).
    Source: LFM2 (2511.23404), section 2; Lfm2ShortConv.
    """

    category: Category | None = "recurrent"
    width: Size
    kernel: Size
    bias: bool = False

    def parts(self) -> Mapping[str, Component]:
        d, column = self.width, ShardSpec("column", self.width)
        return {
            "in_proj": Linear(d_in=d, d_out=3 * d, bias=self.bias, split=column),
            "conv1d": Conv1d(
                channels=d, kernel=self.kernel, bias=self.bias, causal_padding=self.kernel - 1, split=column
            ),
            "out_proj": Linear(d_in=d, d_out=d, bias=self.bias, split=ShardSpec("row", d)),
        }

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width}

    own_ops = Component.no_own_ops

    def own_state(self) -> Iterator[CacheEntry]:
        """The last inputs of the convolution."""
        yield conv_state(self.width, self.kernel, shares=self.width)

    def label(self) -> str:
        return "short conv"
