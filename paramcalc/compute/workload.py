"""For which tokens work is counted, and how often each term is done for them."""

from __future__ import annotations

from typing import Any, Literal, get_args

from paramcalc.assumptions import one_of
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.value import Frozen
from paramcalc.tree.ops import FlopTerm

# Pairs that a window masks are left out; or counted, as the eager reference multiplies them.
Counting = Literal["needed", "reference"]


class Workload(Frozen):
    """`tokens` new ones in each of `batch` sequences, the last of `context` tokens; what came before is cached.

    `causal`: each token sees those before it; else all of the context, as eager attention multiplies the whole square.
    """

    tokens: int
    context: int
    source: int = 0  # tokens that an encoder reads; 0: as many as it always does, or as the context
    alone: bool = False  # there is no decoder: what the encoder reads are the tokens themselves
    batch: int = 1
    causal: bool = False
    counting: Counting = "needed"

    @property
    def past(self) -> int:
        """Tokens whose keys and values are cached."""
        return self.context - self.tokens

    @property
    def stepping(self) -> bool:
        """Whether one token continues a sequence: recurrent mixers then go step by step, not in chunks."""
        return self.tokens == 1 and self.past > 0

    def times(self, work: FlopTerm) -> int:
        """How often a term is done for the whole batch."""
        return self.each(work) if work.per == "call" else self.batch * self.each(work)

    def each(self, work: FlopTerm) -> int:
        """How often it is done for one sequence. The encoder and what is made of it ran before, if there is a past."""
        n, whole = self.tokens, self.source or self.context
        source = 0 if self.past else whole
        read = n if self.alone else source
        match work.per:
            case "token":
                return n + (0 if self.past else work.padding)
            case "pair":
                return self.pairs(work)
            case "cross":
                return n * whole
            case "source":
                return source
            case "read":
                return read
            case "read pair":
                return read * (min(read, int(work.size)) if work.limit == "window" and self.limited else read)
            case "whole chunk":
                return n // int(work.size)
            case "rest":
                return n % int(work.size)
            case "sequence" | "call":
                return 1
            case "tower" | "never":
                return 0
        return self.steps(work)

    def steps(self, work: FlopTerm) -> int:
        """Chunks, pairs of chunks and pairs within them, or single steps, of a recurrence."""
        if work.per == "step":
            return self.tokens if self.stepping else 0
        if self.stepping:
            return 0
        chunks = -(-self.tokens // int(work.size))
        match work.per:
            case "chunk":
                return chunks
            case "chunk pair":
                return (chunks + 1) ** 2
        whole, rest = divmod(self.tokens, int(work.size))
        return whole * int(work.size) ** 2 + rest**2

    @property
    def limited(self) -> bool:
        """Whether pairs that a window masks are left out."""
        return self.counting == "needed"

    def pairs(self, work: FlopTerm) -> int:
        """Pairs of a new token and one it attends to."""
        size = int(work.size)
        if work.limit in ("stride", "seen stride"):
            groups = self.context // size
            most = work.max_keys if work.max_keys is not None and self.limited else groups
            seen = within_stride(self.context, size, most=most) - within_stride(self.past, size, most=most)
            return seen if self.causal or work.limit == "seen stride" else self.tokens * min(groups, most)
        size = size if self.limited else self.context
        if work.limit == "none" or size >= self.context:
            seen = within_window(self.context, self.context) - within_window(self.past, self.context)
            return seen if self.causal else self.tokens * self.context
        if work.limit == "window":
            seen = within_window(self.context, size) - within_window(self.past, size)
            return seen if self.causal else self.tokens * size
        if self.causal:
            return within_chunk(self.context, size) - within_chunk(self.past, size)
        return whole_chunks(self.context, self.context, size) - whole_chunks(self.past, self.context, size)


def within_window(tokens: int, size: int) -> int:
    """Tokens that each of the first `tokens` sees of itself and the `size - 1` before, summed."""
    full = min(tokens, size)
    return full * (full + 1) // 2 + (tokens - full) * size


def within_stride(tokens: int, size: int, *, most: int) -> int:
    """Whole groups of `size` tokens, `most` of them, that each of the first `tokens` has up to it, summed."""
    few = min(tokens, most * size)
    groups, rest = divmod(few, size)
    return size * (groups * (groups - 1) // 2) + (rest + 1) * groups + (tokens - few) * most


def within_chunk(tokens: int, size: int) -> int:
    """Tokens that each of the first `tokens` sees of its chunk up to itself, summed."""
    chunks, rest = divmod(tokens, size)
    return chunks * (size * (size + 1) // 2) + rest * (rest + 1) // 2


def whole_chunks(tokens: int, context: int, size: int) -> int:
    """Tokens of the chunk that each of the first `tokens` of `context` is in, summed."""
    full, rest = context // size * size, context % size
    return min(tokens, full) * size + max(0, tokens - full) * rest


def workload(
    *,
    tokens: int,
    batch: int = 1,
    context: int | None = None,
    source: int | None = None,
    causal: bool = False,
    counting: str = "needed",
) -> Workload:
    """Check what is asked for: `context` is `tokens` unless there is a past.

    Raises ParamcalcError for sizes that are not whole numbers from 1 on, for fewer tokens of context than new ones, and
    for unknown words.
    """
    asked: dict[str, Any] = {"tokens": tokens, "batch": batch, "context": context, "source": source}
    for name, value in asked.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ParamcalcError(f"{name} must be a whole number from 1 on, not {value!r}", "write it like 8")
    if not isinstance(causal, bool):
        raise ParamcalcError(f"causal must be True or False, not {causal!r}")
    whole = tokens if context is None else context
    if whole < tokens:
        raise ParamcalcError(
            f"context ({whole:,}) is less than the new tokens ({tokens:,})", "the context includes the new tokens"
        )
    return Workload(
        tokens=tokens,
        context=whole,
        source=source or 0,
        batch=batch,
        causal=causal,
        counting=one_of(counting, get_args(Counting), "counting"),  # type: ignore[arg-type]  # it is one of them
    )
