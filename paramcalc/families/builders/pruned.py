"""Decoders whose layers were pruned to sizes of their own, which their files list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paramcalc.components import Attention, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import HEADS_KEY, WIDTH_KEYS, Parts
from paramcalc.tree.component import Component

Words = Sequence[Any] | None


def pruned_parts(c: Config, parts: Parts, words: Words) -> tuple[Parts, Words]:
    """Attention or FFNs in the sizes that the file lists, and the word of each layer: what it was, and its size.

    Unchanged where there is no list. A list for parts that cannot be resized is not read, and so reported.
    """
    by_word = {"": parts} if isinstance(parts, Component) else parts
    if all(map(has_plain_heads, by_word.values())):
        key = HEADS_KEY
    elif all(isinstance(part, Mlp) and part.inner is None for part in by_word.values()):
        key = next(filter(c.has, WIDTH_KEYS), "")
    else:
        return parts, words
    if not key or not c.has(key):
        return parts, words
    sizes = [c.size(key, size) for size in c.per_layer(key) or []]
    c.doubts.append(f"{c.family}: {key} gives each layer a size of its own; {c.architecture} does not read it")
    pairs = list(zip(words or [""] * len(sizes), sizes, strict=True))
    return {(word, size): resized(c, by_word[word], key, size) for word, size in set(pairs)}, pairs


def has_plain_heads(part: Component) -> bool:
    """True for attention in which nothing but the projections depends on the number of query heads."""
    return (
        isinstance(part, Attention)
        and part.inner is None
        and part.indexer is None
        and part.projections.out_in is None
        and (part.q_norm is None or (int(part.q_norm.width), int(part.q_norm.count)) == (int(part.head_dim), 1))
    )


def resized(c: Config, part: Component, key: str, size: int) -> Component:
    """Attention with so many query heads, or an FFN of that width; key/value heads remain unless each query head has
    its own."""
    if not isinstance(part, Attention):
        return part.replace(hidden=size)
    kv = size if part.kv_heads == part.heads else part.kv_heads
    if size % kv:
        raise c.error(key, f"has {size}, which is not divisible by {c.key('num_key_value_heads')} ({kv})")
    return part.replace(heads=size, kv_heads=kv)
