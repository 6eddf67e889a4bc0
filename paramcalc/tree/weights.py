"""Tensors: their categories, roles and sharding. All other results are folded from `Weight`."""

from __future__ import annotations

from math import prod
from typing import Literal, NamedTuple, get_args

Category = Literal[
    "embedding",
    "attention",
    "recurrent",
    "ffn",
    "experts",
    "shared_experts",
    "router",
    "norm",
    "head",
    "vision",
    "projector",
    "other",
]
# A buffer is saved with the model but not trained; mtp weights are in the checkpoint, but the reference class does not
# build them; a copy is in the checkpoint a second time.
WeightRole = Literal["parameter", "buffer", "mtp", "copy"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
TOWER_CATEGORIES: tuple[Category, ...] = ("vision", "projector")  # of what runs for images and sounds, not for tokens


# Kind of a tensor for storage formats, which quantise matrices but not norms and biases.
TensorKind = Literal["matrix", "bias", "embedding", "norm", "conv", "param"]


# The side that tensor parallelism divides: outputs, inputs, or rows of a vocabulary.
ShardAxis = Literal["column", "row", "vocab"]


# The units that are distributed: query heads, which must divide evenly; key/value heads, of which several devices may
# hold copies; channels and rows of a vocabulary, of which the last device may hold fewer.
ShardUnit = Literal["heads", "kv_heads", "channels", "vocabulary"]


class ShardSpec(NamedTuple):
    """How tensor parallelism divides a tensor: along which side, and into how many shares at most.

    With more devices than `units` (heads, key/value heads), some hold copies. `fused` rows of the side are divided into
    `fused_units` of their own (the groups next to the heads in Mamba-2's projection). Megatron-LM (1909.08053),
    section 3.
    """

    axis: ShardAxis
    units: int
    unit_kind: ShardUnit = "channels"
    fused: int = 0
    fused_units: int = 1


def by_vocabulary(rows: int) -> ShardSpec:
    """Division of an embedding or an output matrix by tokens of the vocabulary."""
    return ShardSpec("vocab", rows, "vocabulary")


def by_heads(side: ShardAxis, heads: int, *, fused: int = 0, groups: int = 1) -> ShardSpec:
    """Division into whole heads, and of `fused` rows in the same matrix into whole groups."""
    return ShardSpec(side, heads, "heads", fused, groups)


class Weight(NamedTuple):
    """One tensor: its path, its shape, the number of copies, and how many of them one token uses."""

    name: str  # path in the tree: layers.attn.q_proj.weight
    shape: tuple[int, ...]
    category: Category = "other"
    copies: int = 1
    active: int = 1  # copies that one token uses; equal to `copies` except for routed experts
    role: WeightRole = "parameter"
    kind: TensorKind = "param"
    experts: int = 1  # number of the copies that are experts of the same layer
    split: ShardSpec | None = None  # None: replicated in each device of a tensor-parallel group
    dtype: str | None = None  # in checkpoints, where it does not follow that of the model
    layers: tuple[range, ...] = ()  # numbers of the layers that have the tensor

    @property
    def elements(self) -> int:
        """Scalars in one copy."""
        return prod(map(int, self.shape))


class Tally(NamedTuple):
    """Elements of all tensors of one category and role, and of those that one token uses."""

    category: Category
    role: WeightRole
    total: int
    active: int


class Tie(NamedTuple):
    """A matrix that is the same tensor as another: counted once, at its owner."""

    name: str
    owner: str
    category: Category = "other"


def effective_category(outer: Category | None, inner: Category | None) -> Category | None:
    """The category of a tensor whose own category is `inner` in a component of category `outer`.

    The outer category applies: a projection in attention is attention, an MLP in the experts is experts. Norms remain
    norms, except in vision towers and projectors, which are counted as a whole.
    """
    if inner == "norm" and outer not in TOWER_CATEGORIES:
        return inner
    return outer or inner
