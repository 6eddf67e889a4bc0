"""The state of a mixer between two tokens of a sequence: keys and values, latents, recurrent states.

An EntryKind and a Growth are objects with all facts about a kind of entry and about the growth of its number. Folds and
reports read these facts and know no kind by name, so a mixer with a new kind of state needs its component and one row
here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

# Latent attention caches the latent, or, in engines without kernels for it, the keys and values made from it.
MlaForm = Literal["any", "latent", "expanded"]
FLOAT32 = "float32"


class EntryKind(NamedTuple):
    """The content of an entry: keys, values, a latent or a state."""

    name: str
    dtype_of: Literal["keys", "values", "state"]  # the option that sets its dtype
    produced_by: str = ""  # the step that produces it; the last step if the component has none of this name
    recurrent: bool = False  # produced by the recurrence of the component, if it has one
    per_column: bool = False  # inputs of a convolution: an entry for each column of its kernel


KEY = EntryKind("key", "keys", "k_proj")
VALUE = EntryKind("value", "values", "v_proj")
LATENT = EntryKind("latent", "keys", "kv_a_proj")
INDEX = EntryKind("index", "keys", "k_proj")
STATE = EntryKind("state", "state", recurrent=True)
CONV = EntryKind("conv", "state", "conv1d", per_column=True)
ENTRY_KINDS = (KEY, VALUE, LATENT, INDEX, STATE, CONV)

# Growth of the number of entries with the tokens: one for each token, one for each up to a limit, one for every `size`
# tokens, slower in another way, or constant. It decides the row of a report that shows them.
GrowthRate = Literal["linear", "limited", "strided", "slower", "fixed"]


class Growth(NamedTuple):
    """The number of entries as a function of tokens and of `size`, the window, stride or constant of a CacheEntry."""

    name: str
    entries: Callable[[int, int, int], int]  # arguments: tokens so far, size, length of the encoder output
    formula: str  # the same as text: T tokens, S entries of the encoder output, {size}
    rate: GrowthRate
    evicts: bool = False  # drops tokens; engines with full pages for every attention layer keep them
    follows_source: bool = False  # depends on the length of the encoder output


EVERY_TOKEN = Growth("tokens", lambda tokens, _size, _source: tokens, "T", "linear")
WINDOW = Growth("window", lambda tokens, size, _source: min(tokens, size), "min(T, {size})", "limited", evicts=True)
CHUNK = WINDOW._replace(name="chunk")  # the tokens of the current chunk
BUFFER = WINDOW._replace(name="buffer", evicts=False)  # tokens not yet merged into one entry
STRIDE = Growth("stride", lambda tokens, size, _source: tokens // size, "floor(T / {size})", "strided")
ENCODER_OUTPUT = Growth("source", lambda _tokens, _size, source: source, "S", "fixed", follows_source=True)
FIXED = Growth("always", lambda _tokens, size, _source: size, "{size}", "fixed")
GROWTHS = (EVERY_TOKEN, WINDOW, CHUNK, BUFFER, STRIDE, ENCODER_OUTPUT, FIXED)


class CacheEntry(NamedTuple):
    """State of a mixer for each sequence: `growth` gives the number of entries, each with `elements` elements."""

    kind: EntryKind
    elements: int
    growth: Growth = EVERY_TOKEN
    size: int = 1
    shares: int | None = None  # number of equal parts that devices can divide (key/value heads); None: replicated
    mla_form: MlaForm = "any"
    dtype: str | None = None  # if the reference fixes it, such as float32 states
    copies: int = 1  # layers, and passes through shared layers
    approximation_reason: str = ""  # why it may differ from the reference; the figure is then not exact
    note: str = ""  # a difference in some implementation; the figure stays exact

    def entries(self, tokens: int, *, source: int) -> int:
        """The number of entries after `tokens` tokens, with an encoder output of `source` tokens."""
        return self.growth.entries(tokens, self.size, source)

    @property
    def formula(self) -> str:
        """The number of entries as a formula."""
        return self.growth.formula.format(size=f"{self.size:,}")

    @property
    def is_state(self) -> bool:
        """True if reports show it as state, which has a limit, and not as KV cache, which grows with the context."""
        return self.kind.dtype_of == "state" and self.growth.rate in ("fixed", "limited")


def fixed_state(elements: int, *, shares: int | None = None, dtype: str | None = None) -> CacheEntry:
    """A state of fixed size; `dtype` if the reference fixes it."""
    return CacheEntry(STATE, elements, FIXED, shares=shares, dtype=dtype)


def conv_state(channels: int, columns: int, *, shares: int | None = None) -> CacheEntry:
    """The last inputs of a convolution over time, with as many columns as its kernel (transformers)."""
    return CacheEntry(CONV, channels, FIXED, columns, shares=shares)
