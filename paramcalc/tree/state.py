"""The state that a mixer keeps of a sequence from one token to the next: keys and values, latents, recurrent states.

A kind of entry and a way in which the number of entries grows are objects that hold all facts about them. Folds and
reports read these facts and know none of them by name: a mixer with a new kind of state needs its component and one
row here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

# Latent attention keeps the latent, or in engines without kernels for it the keys and values made from it.
MlaForm = Literal["any", "latent", "expanded"]
FLOAT32 = "float32"


class EntryKind(NamedTuple):
    """What an entry holds."""

    name: str
    dtype_of: Literal["keys", "values", "state"]  # the option whose dtype it takes
    made_by: str = ""  # the step of a component that makes it; the last one where there is none of this name
    recurrent: bool = False  # made by the component's recurrence, where it has one
    per_column: bool = False  # inputs of a convolution: an entry for each column of its kernel


KEY = EntryKind("key", "keys", "k_proj")
VALUE = EntryKind("value", "values", "v_proj")
LATENT = EntryKind("latent", "keys", "kv_a_proj")
INDEX = EntryKind("index", "keys", "k_proj")
STATE = EntryKind("state", "state", recurrent=True)
CONV = EntryKind("conv", "state", "conv1d", per_column=True)
ENTRY_KINDS = (KEY, VALUE, LATENT, INDEX, STATE, CONV)

# How the number of entries follows the tokens: one for each, one for each up to a limit, one for every so many, slower
# in another way, or not at all. This decides the row of a report that shows them.
GrowthRate = Literal["linear", "limited", "strided", "slower", "fixed"]


class Growth(NamedTuple):
    """How many entries there are. The `size` is an entry's own: of its window or stride, or the number itself."""

    name: str
    entries: Callable[[int, int, int], int]  # from the tokens so far, the size, and the length of an encoder's output
    formula: str  # the same for readers: T tokens, S of an encoder's output, {size}
    rate: GrowthRate
    evicts: bool = False  # drops tokens that engines keep which reserve full pages for every attention layer
    of_source: bool = False  # follows an encoder's output


EVERY_TOKEN = Growth("tokens", lambda tokens, _size, _source: tokens, "T", "linear")
WINDOW = Growth("window", lambda tokens, size, _source: min(tokens, size), "min(T, {size})", "limited", evicts=True)
CHUNK = WINDOW._replace(name="chunk")  # the tokens of the current chunk
BUFFER = WINDOW._replace(name="buffer", evicts=False)  # tokens that wait to be merged into one entry
STRIDE = Growth("stride", lambda tokens, size, _source: tokens // size, "floor(T / {size})", "strided")
ENCODER_OUTPUT = Growth("source", lambda _tokens, _size, source: source, "S", "fixed", of_source=True)
FIXED = Growth("always", lambda _tokens, size, _source: size, "{size}", "fixed")
GROWTHS = (EVERY_TOKEN, WINDOW, CHUNK, BUFFER, STRIDE, ENCODER_OUTPUT, FIXED)


class CacheEntry(NamedTuple):
    """Something a mixer keeps for each sequence: `elements` an entry, as many entries as `growth` gives."""

    kind: EntryKind
    elements: int
    growth: Growth = EVERY_TOKEN
    size: int = 1
    shares: int | None = None  # devices that can divide it (key/value heads); None: each holds all of it
    mla_form: MlaForm = "any"
    dtype: str | None = None  # where the reference fixes it: float32 states
    copies: int = 1  # layers, and passes through layers that are shared
    doubt: str = ""  # why this may not be what the reference keeps: then the figure is no longer exact
    note: str = ""  # where an implementation keeps something else, though the figure stands

    def entries(self, tokens: int, *, source: int) -> int:
        """Entries after so many tokens, next to an encoder's output of `source` tokens."""
        return self.growth.entries(tokens, self.size, source)

    @property
    def formula(self) -> str:
        """The number of entries as a formula."""
        return self.growth.formula.format(size=f"{self.size:,}")

    @property
    def is_state(self) -> bool:
        """Whether reports show it as state, which has a limit, and not as cache, which grows with the context."""
        return self.kind.dtype_of == "state" and self.growth.rate in ("fixed", "limited")


def fixed_state(elements: int, *, shares: int | None = None, dtype: str | None = None) -> CacheEntry:
    """A state of fixed size; `dtype` where the reference computes it in one of its own."""
    return CacheEntry(STATE, elements, FIXED, shares=shares, dtype=dtype)


def conv_state(channels: int, columns: int, *, shares: int | None = None) -> CacheEntry:
    """The last inputs of a convolution over time: as many columns as its kernel has (transformers)."""
    return CacheEntry(CONV, channels, FIXED, columns, shares=shares)
