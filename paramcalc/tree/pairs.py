"""Pairs of tokens in attention: all pairs, or those in a sliding window, a chunk or a stride."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from paramcalc.tree.workload import Workload


def causal_window_pairs(tokens: int, size: int) -> int:
    """Pairs of each of the first `tokens` tokens with itself and the `size - 1` tokens before it."""
    full = min(tokens, size)
    return full * (full + 1) // 2 + (tokens - full) * size


def causal_stride_pairs(tokens: int, size: int, *, most: int) -> int:
    """Pairs of each of the first `tokens` tokens with the full groups of `size` tokens up to it, at most `most`."""
    few = min(tokens, most * size)
    groups, rest = divmod(few, size)
    return size * (groups * (groups - 1) // 2) + (rest + 1) * groups + (tokens - few) * most


def causal_chunk_pairs(tokens: int, size: int) -> int:
    """Pairs of each of the first `tokens` tokens with the tokens of its chunk up to itself."""
    chunks, rest = divmod(tokens, size)
    return chunks * (size * (size + 1) // 2) + rest * (rest + 1) // 2


def whole_chunks(tokens: int, context: int, size: int) -> int:
    """Pairs of each of the first `tokens` tokens of `context` with all tokens of its chunk."""
    full, rest = context // size * size, context % size
    return min(tokens, full) * size + max(0, tokens - full) * rest


def all_pairs(work: Workload) -> int:
    """Pairs of each new token with all of the context; if causal, with itself and earlier tokens."""
    if work.causal:
        return causal_window_pairs(work.context, work.context) - causal_window_pairs(work.past, work.context)
    return work.tokens * work.context


def window_pairs(work: Workload, size: int) -> int:
    """Pairs of each new token with the last `size` tokens."""
    if not work.causal:
        return work.tokens * size
    return causal_window_pairs(work.context, size) - causal_window_pairs(work.past, size)


def chunk_pairs(work: Workload, size: int) -> int:
    """Pairs of each new token with the tokens of its chunk of `size`; if causal, up to itself."""
    if work.causal:
        return causal_chunk_pairs(work.context, size) - causal_chunk_pairs(work.past, size)
    return whole_chunks(work.context, work.context, size) - whole_chunks(work.past, work.context, size)


def preceding_stride_pairs(work: Workload, size: int, max_keys: int | None) -> int:
    """Pairs of each new token with the merged keys (`size` tokens each) that end at or before it."""
    most = max_keys if max_keys is not None and work.excludes_masked_pairs else work.context // size
    return causal_stride_pairs(work.context, size, most=most) - causal_stride_pairs(work.past, size, most=most)


def stride_pairs(work: Workload, size: int, max_keys: int | None) -> int:
    """Pairs of each new token with all merged keys; if causal, with those that end at or before it."""
    if work.causal:
        return preceding_stride_pairs(work, size, max_keys)
    groups = work.context // size
    return work.tokens * (min(groups, max_keys) if max_keys is not None and work.excludes_masked_pairs else groups)


def excluding_masked(pairs: Callable[[Workload, int], int]) -> Callable[[Workload, int, int | None], int]:
    """Limit `pairs` to a mask; all pairs if the mask is longer than the context or masked pairs are counted."""

    def counted(work: Workload, size: int, _max_keys: int | None) -> int:
        return pairs(work, size) if work.excludes_masked_pairs and size < work.context else all_pairs(work)

    return counted


class Limit(NamedTuple):
    """The tokens that a token attends to; `size` comes from the term."""

    name: str
    pairs: Callable[[Workload, int, int | None], int]  # pairs of the new tokens: (workload, size, max_keys)
    in_encoder: Callable[[int, int], int] = lambda tokens, _size: tokens  # keys of each token: (tokens, size)
    masks: bool = False  # eager attention also computes the excluded pairs


NO_LIMIT = Limit("none", lambda work, _size, _max_keys: all_pairs(work))
WINDOW_LIMIT = Limit("window", excluding_masked(window_pairs), min, masks=True)
CHUNK_LIMIT = Limit("chunk", excluding_masked(chunk_pairs), masks=True)
STRIDE_LIMIT = Limit("stride", stride_pairs)
PRECEDING_STRIDE_LIMIT = Limit(
    "preceding stride", preceding_stride_pairs
)  # only merged keys that end at or before a token, even if not causal
LIMITS = (NO_LIMIT, WINDOW_LIMIT, CHUNK_LIMIT, STRIDE_LIMIT, PRECEDING_STRIDE_LIMIT)
