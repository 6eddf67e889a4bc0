"""What a mixer keeps of a sequence between one token and the next: keys and values, latents, states."""

from __future__ import annotations

from typing import Literal, NamedTuple

# How many entries there are: one for each token, for each of the last `size` tokens, for each token of the current
# chunk of `size`, for each `size` tokens, for each of at most `size` tokens that wait to be merged into one, for each
# token of an encoder's output, or `size` whatever the length.
Span = Literal["tokens", "window", "chunk", "stride", "buffer", "source", "always"]
# What an entry is, which decides its dtype: the cache's (keys and values may differ) or the state's.
EntryKind = Literal["key", "value", "latent", "index", "state", "conv"]
# Latent attention keeps the latent, or in engines without kernels for it the keys and values made from it.
MlaForm = Literal["any", "latent", "expanded"]
STATE_KINDS: tuple[EntryKind, ...] = ("state", "conv")
GROWING: tuple[Span, ...] = ("tokens", "window", "chunk")
FLOAT32 = "float32"


class CacheEntry(NamedTuple):
    """Something a mixer keeps for each sequence: `elements` an entry, as many entries as `span` says."""

    kind: EntryKind
    elements: int
    span: Span = "tokens"
    size: int = 1
    shares: int | None = None  # devices that can divide it (key/value heads); None: each holds all of it
    mla_form: MlaForm = "any"
    dtype: str | None = None  # where the reference fixes it: float32 states
    copies: int = 1  # layers, and passes through layers that are shared
    doubt: str = ""  # why this may not be what the reference keeps: then the figure is no longer exact
    note: str = ""  # where an implementation keeps something else, though the figure stands

    def entries(self, tokens: int, *, source: int) -> int:
        """Entries after so many tokens, with an encoder's output of `source` tokens beside them."""
        match self.span:
            case "tokens":
                return tokens
            case "window" | "chunk" | "buffer":
                return min(tokens, self.size)
            case "stride":
                return tokens // self.size
            case "source":
                return source
            case "always":
                return self.size


def fixed_state(elements: int, *, shares: int | None = None, dtype: str | None = None) -> CacheEntry:
    """A state of fixed size; `dtype` where the reference computes it in one of its own."""
    return CacheEntry("state", elements, "always", shares=shares, dtype=dtype)


def conv_state(channels: int, columns: int, *, shares: int | None = None) -> CacheEntry:
    """The last inputs of a convolution over time: as many columns as its kernel has (transformers)."""
    return CacheEntry("conv", channels, "always", columns, shares=shares)
