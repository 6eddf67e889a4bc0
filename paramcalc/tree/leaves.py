"""The leaves of the tree: components without parts that hold tensors or state a product.

Shapes and fields are those of the module of the same name in torch.nn. Letters are explained in
`components/__init__.py`.
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
    """A matrix and an optional bias.

    `tied_to`: path of the component whose matrix it uses; then only the bias is its own. `per`: how often the product
    is computed, by default once for each token.
    Shapes: weight (d_out, d_in), bias (d_out).
    Source: torch.nn.Linear.
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
            whole = self.split is None or self.split.axis == "row"  # added once, after the partial sums
            yield Weight("bias", (self.d_out,), kind="bias", split=None if whole else self.split)

    def own_ties(self) -> Iterator[Tie]:
        if self.tied_to is not None:
            yield Tie("", self.tied_to)

    def inputs(self) -> Size | None:
        return self.d_in

    def own_ops(self) -> Iterator[FlopTerm]:
        """d_in multiplications and additions for each output; tied matrices are multiplied too."""
        yield FlopTerm("", 2 * self.d_in * self.d_out, per=PER[self.per])

    def steps(self) -> Iterator[Step]:
        yield Step("", per_token(self.d_out))


class Embedding(Component):
    """A lookup table.

    Shapes: weight (rows, width), such as (V, d).
    Source: torch.nn.Embedding.
    """

    category: Category | None = "embedding"
    rows: Size
    width: Size
    tied_to: str | None = None
    sharded: bool = True  # by rows under tensor parallelism; False: each device holds all of it (positions)

    def own_weights(self) -> Iterator[Weight]:
        if self.tied_to is None:
            split = by_vocabulary(self.rows) if self.sharded else None
            yield Weight("weight", (self.rows, self.width), kind="embedding", split=split)

    def own_ties(self) -> Iterator[Tie]:
        if self.tied_to is not None:
            yield Tie("", self.tied_to)

    own_ops = Component.no_own_ops  # a lookup

    def steps(self) -> Iterator[Step]:
        yield Step("", per_token(self.width))


class Norm(Component):
    """A normalisation over `width` channels, with a scale (RMSNorm), a scale and a bias (LayerNorm), or neither (OLMo).

    Shapes: weight (width), bias (width); `count` times where each head has its own.
    Source: LayerNorm (1607.06450), RMSNorm (1910.07467); torch.nn.LayerNorm, torch.nn.RMSNorm.
    """

    category: Category | None = "norm"
    width: Size
    scale: bool = True
    bias: bool = False
    count: Size = 1  # heads that have weights of their own (QK norms of StableLM)
    split: ShardSpec | None = None  # only where all heads of a mixer are normalised together (Mamba-2)

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
    """A convolution over time.

    Shapes: weight (channels, per_group, w), bias (channels).
    Source: torch.nn.Conv1d.
    """

    channels: Size
    kernel: Size
    per_group: int = 1  # input channels of each output channel; 1 is depthwise
    bias: bool = True
    split: ShardSpec | None = None
    causal_padding: Size = 0  # positions that the reference computes after the last token and discards
    per: PerWord = "token"

    def own_weights(self) -> Iterator[Weight]:
        yield Weight("weight", (self.channels, self.per_group, self.kernel), kind="conv", split=self.split)
        if self.bias:
            yield Weight("bias", (self.channels,), kind="bias", split=self.split)

    def own_ops(self) -> Iterator[FlopTerm]:
        """w times per_group multiplications and additions for each output channel and position."""
        flops = 2 * self.channels * self.per_group * self.kernel
        yield FlopTerm("", flops, term="convolution", per=PER[self.per], padding=self.causal_padding)

    def steps(self) -> Iterator[Step]:
        yield Step("", per_token(self.channels))


class Param(Component):
    """A parameter or persistent buffer of any shape (attention sinks, A_log, a router's correction).

    Shapes: value (shape).
    Source: torch.nn.Parameter, torch.nn.Buffer.
    """

    shape: tuple[Size, ...]
    buffer: bool = False
    split: ShardSpec | None = None
    dtype: str | None = None
    per: PerWord = "never"  # how often it is multiplied, where it is a matrix
    repeats: Size = 1  # products for each of these, such as one for each head

    def own_weights(self) -> Iterator[Weight]:
        role: WeightRole = "buffer" if self.buffer else "parameter"
        yield Weight("value", self.shape, role=role, split=self.split, dtype=self.dtype)

    def own_ops(self) -> Iterator[FlopTerm]:
        """Two FLOPs for each element of a matrix; none where it is added or scales elementwise."""
        if self.per != "never":
            yield FlopTerm("", 2 * self.repeats * prod(map(int, self.shape)), per=PER[self.per])

    def steps(self) -> Iterator[Step]:
        yield Step("", SAME_SHAPE if self.per != "never" else NO_OUTPUT)


class Product(Component):
    """A matrix product without weights of its own: with another component's matrix, or between activations.

    `flops`: two for each multiplication and addition.
    Shapes: no tensors of its own.
    Source: torch.matmul.
    """

    flops: Size
    per: PerWord = "token"
    term: TermKind = "matmul"

    def own_ops(self) -> Iterator[FlopTerm]:
        """The stated FLOPs."""
        yield FlopTerm("", self.flops, self.term, PER[self.per])

    def steps(self) -> Iterator[Step]:
        yield Step("", SAME_SHAPE)
