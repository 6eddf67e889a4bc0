"""The leaves of the tree: what holds tensors, or multiplies, and has no parts.

Shapes and fields are those of torch.nn's module of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component
from paramcalc.tree.ops import PER, FlopTerm, PerWord, TermKind
from paramcalc.tree.steps import NO_OUTPUT, SAME_SHAPE, Step, per_token
from paramcalc.tree.weights import Category, ShardSpec, Tie, Weight, WeightRole, by_vocabulary


class Linear(Component):
    """A matrix of shape (d_out, d_in) and an optional bias (torch.nn.Linear).

    `tied_to` names the component whose matrix it uses: then only a bias is its own. `per`: what it is multiplied with,
    each token unless it says otherwise.
    """

    d_in: Size
    d_out: Size
    bias: bool = False
    tied_to: str | None = None
    split: ShardSpec | None = None
    per: PerWord = "token"

    def own_weights(self) -> Iterator[Weight]:
        if self.tied_to is None:
            yield Weight("weight", (self.d_out, self.d_in), kind="matrix", split=self.split)
        if self.bias:
            whole = self.split is None or self.split.axis == "row"  # added once, after the shares are summed
            yield Weight("bias", (self.d_out,), kind="bias", split=None if whole else self.split)

    def own_ties(self) -> Iterator[Tie]:
        if self.tied_to is not None:
            yield Tie("", self.tied_to)

    def inputs(self) -> Size | None:
        return self.d_in

    def own_ops(self) -> Iterator[FlopTerm]:
        """d_in multiplications and additions for each output; a tied matrix multiplies like any other."""
        yield FlopTerm("", 2 * self.d_in * self.d_out, per=PER[self.per])

    def steps(self) -> Iterator[Step]:
        yield Step("", per_token(self.d_out))


class Embedding(Component):
    """A lookup table of shape (rows, width) (torch.nn.Embedding)."""

    category: Category | None = "embedding"
    rows: Size
    width: Size
    tied_to: str | None = None
    divided: bool = True  # by rows, as a vocabulary; tables of positions are held whole

    def own_weights(self) -> Iterator[Weight]:
        if self.tied_to is None:
            split = by_vocabulary(self.rows) if self.divided else None
            yield Weight("weight", (self.rows, self.width), kind="embedding", split=split)

    def own_ties(self) -> Iterator[Tie]:
        if self.tied_to is not None:
            yield Tie("", self.tied_to)

    own_ops = Component.no_own_ops  # a lookup

    def steps(self) -> Iterator[Step]:
        yield Step("", per_token(self.width))


class Norm(Component):
    """A normalisation over `width` channels: RMSNorm has a scale, LayerNorm usually a bias too, OLMo's neither."""

    category: Category | None = "norm"
    width: Size
    scale: bool = True
    bias: bool = False
    count: Size = 1  # one per head where each has weights of its own (StableLM's QK norms)
    split: ShardSpec | None = None  # only where a mixer's heads are normalised together (Mamba-2)

    def own_weights(self) -> Iterator[Weight]:
        one = Weight("weight", (self.width,), copies=self.count, active=self.count, kind="norm", split=self.split)
        if self.scale:
            yield one
        if self.bias:
            yield one._replace(name="bias")

    own_ops = Component.no_own_ops  # no matrix

    def steps(self) -> Iterator[Step]:
        yield Step("", SAME_SHAPE)


class Conv1d(Component):
    """A convolution over time: (channels_out, channels_in / groups, kernel) and a bias (torch.nn.Conv1d)."""

    channels: Size
    kernel: Size
    per_group: int = 1  # input channels each output channel sees; 1 is depthwise
    bias: bool = True
    split: ShardSpec | None = None
    spare: Size = 0  # positions that the reference computes beyond the last token and cuts off
    per: PerWord = "token"

    def own_weights(self) -> Iterator[Weight]:
        yield Weight("weight", (self.channels, self.per_group, self.kernel), kind="conv", split=self.split)
        if self.bias:
            yield Weight("bias", (self.channels,), kind="bias", split=self.split)

    def own_ops(self) -> Iterator[FlopTerm]:
        """Kernel x inputs for each output channel and position."""
        flops = 2 * self.channels * self.per_group * self.kernel
        yield FlopTerm("", flops, term="convolution", per=PER[self.per], padding=self.spare)

    def steps(self) -> Iterator[Step]:
        yield Step("", per_token(self.channels))


class Param(Component):
    """A bare parameter or persistent buffer of any shape (attention sinks, A_log, a router's correction)."""

    shape: tuple[Size, ...]
    buffer: bool = False
    split: ShardSpec | None = None
    dtype: str | None = None
    per: PerWord = "never"  # what it is multiplied with, where it is a matrix: its outputs and inputs are its elements
    times: Size = 1  # how often for each of these: once for each head

    def own_weights(self) -> Iterator[Weight]:
        role: WeightRole = "buffer" if self.buffer else "parameter"
        yield Weight("value", self.shape, role=role, split=self.split, dtype=self.dtype)

    def own_ops(self) -> Iterator[FlopTerm]:
        """What a matrix does that is no Linear; nothing where it is merely added or scales."""
        if self.per != "never":
            yield FlopTerm("", 2 * self.times * prod(map(int, self.shape)), per=PER[self.per])

    def steps(self) -> Iterator[Step]:
        yield Step("", SAME_SHAPE if self.per != "never" else NO_OUTPUT)


class Product(Component):
    """A product without weights of its own: by a matrix that is handed over, or by what the token itself makes.

    `flops`: two for each multiplication and addition.
    """

    flops: Size
    per: PerWord = "token"
    term: TermKind = "matmul"

    def own_ops(self) -> Iterator[FlopTerm]:
        """What is stated."""
        yield FlopTerm("", self.flops, self.term, PER[self.per])

    def steps(self) -> Iterator[Step]:
        yield Step("", SAME_SHAPE)
