"""What a component multiplies: its matrix terms, each with what it is done for (every token, every pair of tokens)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from paramcalc.dims import Size

if TYPE_CHECKING:
    from paramcalc.spec import Category

# What a term is: activations by a weight, activations by activations, a convolution, or a recurrence over states.
Term = Literal["matmul", "attention", "convolution", "recurrence"]
TERMS: tuple[Term, ...] = ("matmul", "attention", "convolution", "recurrence")
# What it is done for, in each sequence: each new token, each token of an encoder's input, each pair of a new token and
# one it sees, each pair of a new token and one of the source, each pair within the source, each chunk of `size` new
# tokens (and each pair of such chunks, or of tokens within one), each token where they come one at a time ("step"),
# each sequence, or once however many there are ("call"); for images and sounds, or never in a forward pass.
Per = Literal[
    "token",
    "source",
    "pair",
    "cross",
    "source pair",
    "chunk",
    "chunk pair",
    "block pair",
    "step",
    "sequence",
    "call",
    "tower",
    "never",
]
# How a mask limits the pairs: to the last `size` tokens, or to the current chunk of `size`.
Limit = Literal["none", "window", "chunk"]


class Work(NamedTuple):
    """A matrix term: `flops` (2 for each multiplication and addition) for each of what `per` says."""

    name: str  # path in the tree: layers.0-31.attn.q_proj
    flops: Size
    term: Term = "matmul"
    per: Per = "token"
    category: Category = "other"
    limit: Limit = "none"
    size: int = 1
    spare: int = 0  # positions that the reference computes beside and cuts off: the padding of a causal convolution
    copies: int = 1  # layers and their passes, experts that one token uses
