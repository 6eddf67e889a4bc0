"""The tokens for which operations are counted."""

from __future__ import annotations

from typing import Literal

from paramcalc.base.value import Frozen

# "needed" excludes pairs that a window masks; "reference" counts them, as the eager reference computes them.
Counting = Literal["needed", "reference"]


class Workload(Frozen):
    """`tokens` new tokens in each of `batch` sequences of `context` tokens; the earlier tokens are cached.

    `causal`: each token attends to itself and earlier tokens; otherwise to all of the context, since eager attention
    computes the full square.
    """

    tokens: int
    context: int
    source: int = 0  # tokens that an encoder reads; 0: its fixed length, or the length of the context
    encoder_only: bool = False  # the model has no decoder, and its encoder reads the tokens
    batch: int = 1
    causal: bool = False
    counting: Counting = "needed"

    @property
    def past(self) -> int:
        """The number of cached tokens."""
        return self.context - self.tokens

    @property
    def is_decode_step(self) -> bool:
        """True if one token continues a sequence: recurrent mixers then run one step, not in chunks."""
        return self.tokens == 1 and self.past > 0

    @property
    def excludes_masked_pairs(self) -> bool:
        """True if pairs that a window masks are not counted."""
        return self.counting == "needed"

    @property
    def source_tokens(self) -> int:
        """Tokens of the encoder output."""
        return self.source or self.context

    @property
    def new_source_tokens(self) -> int:
        """Tokens that the encoder of an encoder-decoder model reads now: 0 if earlier tokens are cached."""
        return 0 if self.past else self.source_tokens

    @property
    def encoder_tokens(self) -> int:
        """Tokens that an encoder reads now."""
        return self.tokens if self.encoder_only else self.new_source_tokens
