"""What a component multiplies: its matrix terms, each with what it is done for (every token, every pair of tokens)."""

from __future__ import annotations

from typing import Literal, NamedTuple

from paramcalc.base.symbolic import Size
from paramcalc.tree.weights import Category

# What a term is: activations by a weight, activations by activations, a convolution, or a recurrence over states.
TermKind = Literal["matmul", "attention", "convolution", "recurrence"]
TERM_KINDS: tuple[TermKind, ...] = ("matmul", "attention", "convolution", "recurrence")
# What it is done for, in each sequence: each new token, each token of the source (an encoder's output), each pair of a
# new token and one it sees or one of the source, each token that an encoder reads and each pair of those, each chunk of
# `size` new tokens (and each pair of such chunks, or of tokens within one), each chunk that is full and each token of
# the rest, each token where they come one at a time ("step"), each sequence, or once however many there are ("call");
# for images and sounds, or never in a forward pass.
Per = Literal[
    "token",
    "source",
    "pair",
    "cross",
    "read",
    "read pair",
    "chunk",
    "chunk pair",
    "whole chunk",
    "rest",
    "block pair",
    "step",
    "sequence",
    "call",
    "tower",
    "never",
]
# What limits the pairs: a mask, to the last `size` tokens or to the current chunk of `size`; or that `size` tokens make
# one key, perhaps multiplied only by those who see it, whatever else multiplies whole squares.
Limit = Literal["none", "window", "chunk", "stride", "seen stride"]


class FlopTerm(NamedTuple):
    """A matrix term: `flops` (2 for each multiplication and addition) for each of what `per` says."""

    name: str  # path in the tree: layers.0-31.attn.q_proj
    flops: Size
    term: TermKind = "matmul"
    per: Per = "token"
    category: Category = "other"
    limit: Limit = "none"
    size: int = 1
    padding: int = 0  # positions that the reference computes beside and cuts off: the padding of a causal convolution
    max_keys: int | None = (
        None  # keys at most, where an indexer picks them: as a window it is not what the reference does
    )
    inexact: str = ""  # why it is not quite what the reference multiplies, where it is not
    copies: int = 1  # layers and their passes, experts that one token uses
