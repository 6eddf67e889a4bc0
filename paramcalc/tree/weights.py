"""The vocabulary of tensors: categories, roles, sharding, and the weights that everything else is folded from."""

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
# A buffer is saved with the model but not trained; mtp weights are shipped with it but not built by its class; a copy
# is shipped once more although the model has it.
WeightRole = Literal["parameter", "buffer", "mtp", "copy"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
TOWER_CATEGORIES: tuple[Category, ...] = ("vision", "projector")  # of what runs for images and sounds, not for tokens


# What a tensor is to those who store it: formats touch matrices, leave norms and biases alone.
TensorKind = Literal["matrix", "bias", "embedding", "norm", "conv", "param"]


# Which of its sides tensor parallelism cuts: outputs, inputs, or rows of a vocabulary.
ShardAxis = Literal["column", "row", "vocab"]


# What is dealt out: query heads, which must divide evenly, key/value heads, which devices may hold copies of, and what
# may leave the last device a smaller share.
ShardUnit = Literal["heads", "kv_heads", "channels", "vocabulary"]


class ShardSpec(NamedTuple):
    """How tensor parallelism divides a tensor: along which side, and into how many shares at most.

    Beyond `units` (heads, key/value heads) devices hold copies. `fused` rows of the side are dealt out in `fused_units`
    of their own (the few groups beside many heads in Mamba-2's projection). Megatron-LM (1909.08053), section 3.
    """

    axis: ShardAxis
    units: int
    unit_kind: ShardUnit = "channels"
    fused: int = 0
    fused_units: int = 1


def by_vocabulary(rows: int) -> ShardSpec:
    """An output matrix divided by the tokens it scores."""
    return ShardSpec("vocab", rows, "vocabulary")


def by_heads(side: ShardAxis, heads: int, *, fused: int = 0, groups: int = 1) -> ShardSpec:
    """Divided into whole heads; `fused` rows in the same matrix into whole groups."""
    return ShardSpec(side, heads, "heads", fused, groups)


class Weight(NamedTuple):
    """One tensor: where it is, its shape, how many copies exist and how many of them one token uses."""

    name: str  # path in the tree: layers.attn.q_proj.weight
    shape: tuple[int, ...]
    category: Category = "other"
    copies: int = 1
    active: int = 1  # copies that one token uses; equal to `copies` for everything but routed experts
    role: WeightRole = "parameter"
    kind: TensorKind = "param"
    experts: int = 1  # how many of the copies are experts side by side in one layer
    split: ShardSpec | None = None  # None: every device of a tensor-parallel group holds all of it
    dtype: str | None = None  # where checkpoints keep it in this one whatever the rest is in
    layers: tuple[range, ...] = ()  # numbers of the layers that have one, where it is a layer's

    @property
    def elements(self) -> int:
        """Scalars in one copy."""
        return prod(map(int, self.shape))


class Tally(NamedTuple):
    """Elements of all tensors of one category and role, and those that one token uses."""

    category: Category
    role: WeightRole
    total: int
    active: int


class Tie(NamedTuple):
    """A matrix that is another one: counted once, at its owner."""

    name: str
    owner: str
    category: Category = "other"


def effective_category(outer: Category | None, inner: Category | None) -> Category | None:
    """The category of something `inner` within something `outer`: the outer one claims it.

    A projection inside attention is attention, an MLP inside the experts is experts. Norms stay norms wherever
    they are, except in a vision tower or a projector, which are counted as wholes.
    """
    if inner == "norm" and outer not in TOWER_CATEGORIES:
        return inner
    return outer or inner
