"""Pairs of tokens that attention multiplies: all of them, or those within a window, a chunk or a stride."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from paramcalc.tree.workload import Workload


def within_window(tokens: int, size: int) -> int:
    """Pairs of each of the first `tokens` with itself and the `size - 1` before it."""
    full = min(tokens, size)
    return full * (full + 1) // 2 + (tokens - full) * size


def within_stride(tokens: int, size: int, *, most: int) -> int:
    """Pairs of each of the first `tokens` with the whole groups of `size` tokens up to it, at most `most` of them."""
    few = min(tokens, most * size)
    groups, rest = divmod(few, size)
    return size * (groups * (groups - 1) // 2) + (rest + 1) * groups + (tokens - few) * most


def within_chunk(tokens: int, size: int) -> int:
    """Pairs of each of the first `tokens` with those of its chunk up to itself."""
    chunks, rest = divmod(tokens, size)
    return chunks * (size * (size + 1) // 2) + rest * (rest + 1) // 2


def whole_chunks(tokens: int, context: int, size: int) -> int:
    """Pairs of each of the first `tokens` of `context` with all of its chunk."""
    full, rest = context // size * size, context % size
    return min(tokens, full) * size + max(0, tokens - full) * rest


def all_pairs(work: Workload) -> int:
    """Pairs of each new token with all of the context, or with those before it."""
    if work.causal:
        return within_window(work.context, work.context) - within_window(work.past, work.context)
    return work.tokens * work.context


def window_pairs(work: Workload, size: int) -> int:
    """Pairs of each new token with the last `size` tokens."""
    if not work.causal:
        return work.tokens * size
    return within_window(work.context, size) - within_window(work.past, size)


def chunk_pairs(work: Workload, size: int) -> int:
    """Pairs of each new token with the chunk of `size` tokens that it is in."""
    if work.causal:
        return within_chunk(work.context, size) - within_chunk(work.past, size)
    return whole_chunks(work.context, work.context, size) - whole_chunks(work.past, work.context, size)


def seen_stride_pairs(work: Workload, size: int, max_keys: int | None) -> int:
    """Pairs of each new token with the merged keys of `size` tokens each that end before it."""
    most = max_keys if max_keys is not None and work.limited else work.context // size
    return within_stride(work.context, size, most=most) - within_stride(work.past, size, most=most)


def stride_pairs(work: Workload, size: int, max_keys: int | None) -> int:
    """Pairs of each new token with all merged keys, or with those that end before it."""
    if work.causal:
        return seen_stride_pairs(work, size, max_keys)
    groups = work.context // size
    return work.tokens * (min(groups, max_keys) if max_keys is not None and work.limited else groups)


def masked(pairs: Callable[[Workload, int], int]) -> Callable[[Workload, int, int | None], int]:
    """All pairs where the mask reaches further than the context, or where masked pairs are counted too."""

    def counted(work: Workload, size: int, _max_keys: int | None) -> int:
        return pairs(work, size) if work.limited and size < work.context else all_pairs(work)

    return counted


class Limit(NamedTuple):
    """Which tokens a token is multiplied with; `size` is the term's."""

    name: str
    pairs: Callable[[Workload, int, int | None], int]  # of new tokens: (workload, size, most keys for each)
    in_encoder: Callable[[int, int], int] = lambda tokens, _size: tokens  # keys for each token: (tokens, size)
    masks: bool = False  # eager attention multiplies the pairs that are left out


NO_LIMIT = Limit("none", lambda work, _size, _max_keys: all_pairs(work))
WINDOW_LIMIT = Limit("window", masked(window_pairs), min, masks=True)
CHUNK_LIMIT = Limit("chunk", masked(chunk_pairs), masks=True)
STRIDE_LIMIT = Limit("stride", stride_pairs)
SEEN_STRIDE_LIMIT = Limit("seen stride", seen_stride_pairs)  # multiplied only by those that it ends before
LIMITS = (NO_LIMIT, WINDOW_LIMIT, CHUNK_LIMIT, STRIDE_LIMIT, SEEN_STRIDE_LIMIT)
