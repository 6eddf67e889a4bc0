"""The tokens for which operations are counted."""

from __future__ import annotations

from typing import Literal

from paramcalc.base.value import Frozen

# Pairs that a window masks are left out; or counted, as the eager reference multiplies them.
Counting = Literal["needed", "reference"]


class Workload(Frozen):
    """`tokens` new ones in each of `batch` sequences, the last of `context` tokens; the earlier ones are cached.

    `causal`: each token attends to those before it; else to all of the context, as eager attention multiplies the whole
    square.
    """

    tokens: int
    context: int
    source: int = 0  # tokens that an encoder reads; 0: as many as it always does, or as the context
    alone: bool = False  # there is no decoder: the encoder reads the tokens themselves
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

    @property
    def limited(self) -> bool:
        """Whether pairs that a window masks are left out."""
        return self.counting == "needed"

    @property
    def source_tokens(self) -> int:
        """Tokens of an encoder's output."""
        return self.source or self.context

    @property
    def new_source_tokens(self) -> int:
        """Those that an encoder reads now: it ran before, if there is a past."""
        return 0 if self.past else self.source_tokens

    @property
    def encoder_tokens(self) -> int:
        """Tokens that pass through an encoder now."""
        return self.tokens if self.alone else self.new_source_tokens
