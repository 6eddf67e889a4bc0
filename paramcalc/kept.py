"""What a mixer keeps of a sequence between one token and the next: keys and values, latents, states."""

from __future__ import annotations

from typing import Literal, NamedTuple

# How many entries there are: one for each token, for each of the last `size` tokens, for each token of the current
# chunk of `size`, for each `size` tokens, for each token of an encoder's output, or `size` whatever the length.
Span = Literal["tokens", "window", "chunk", "stride", "source", "always"]
# What an entry is, which decides its dtype: the cache's (keys and values may differ) or the state's.
What = Literal["key", "value", "latent", "index", "state", "conv"]
# Latent attention keeps the latent, or in engines without kernels for it the keys and values made from it.
Form = Literal["any", "latent", "expanded"]
STATES: tuple[What, ...] = ("state", "conv")


class Kept(NamedTuple):
    """Something a mixer keeps for each sequence: `elements` an entry, as many entries as `span` says."""

    what: What
    elements: int
    span: Span = "tokens"
    size: int = 1
    shares: int | None = None  # devices that can divide it (key/value heads); None: each holds all of it
    form: Form = "any"
    dtype: str | None = None  # where the reference fixes it: float32 states
    copies: int = 1  # layers, and passes through layers that are shared

    def entries(self, tokens: int, *, source: int) -> int:
        """Entries after so many tokens, with an encoder's output of `source` tokens beside them."""
        match self.span:
            case "tokens":
                return tokens
            case "window":
                return min(tokens, self.size)
            case "chunk":
                return min(tokens, self.size)
            case "stride":
                return tokens // self.size
            case "source":
                return source
            case "always":
                return self.size
