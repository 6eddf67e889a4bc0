"""The fold over the state of all layers: bytes of the KV cache and of recurrent state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from paramcalc.assumptions import Assumptions, KvPolicy, Mla
from paramcalc.footprint.cache_dtypes import EntryBytes
from paramcalc.model import Model
from paramcalc.tree.state import EVERY_TOKEN, CacheEntry, GrowthRate

if TYPE_CHECKING:
    from paramcalc.reports.shapes.memory import CachesDict, LimitedDict


def cache_entries(model: Model, assumed: Assumptions) -> Iterator[CacheEntry]:
    """The cache entries of a model for each sequence, under the assumed policies."""
    return apply_policies(model.tree.cache(), assumed)


def apply_policies(entries: Iterable[CacheEntry], assumed: Assumptions) -> Iterator[CacheEntry]:
    """The entries that mixers state, changed or dropped by the assumed policies."""
    for entry in entries:
        if entry.mla_form not in ("any", assumed.mla):
            continue
        if assumed.kv_policy == "uniform" and entry.growth.evicts:
            yield entry._replace(growth=EVERY_TOKEN, size=1)
        elif entry.kind.per_column and assumed.conv_columns == "kernel-1":
            yield entry._replace(size=entry.size - 1)
        else:
            yield entry


def cache_figures(model: Model, assumed: Assumptions) -> CachesDict:
    """`kv_cache` and `state` of the report."""
    sizes, entries = EntryBytes(model, assumed), list(cache_entries(model, assumed))
    caches, states = ([entry for entry in entries if entry.is_state is state] for state in (False, True))

    def total(some: list[CacheEntry]) -> int:
        return sum(map(sizes.total, some))

    grouped: dict[GrowthRate, list[CacheEntry]] = defaultdict(list)
    for entry in caches:
        grouped[entry.growth.rate].append(entry)
    return {
        "kv_cache": {
            "bytes": assumed.batch * total(caches),
            "dtype": sizes.key.name if sizes.key == sizes.value else f"{sizes.key.name} / {sizes.value.name}",
            "latent": any(entry.mla_form == "latent" for entry in model.tree.cache()),
            "bytes_per_token": sum(map(sizes.bytes, grouped["linear"] + grouped["limited"])),
            "per_sequence": {
                "bytes": total(caches),
                "fixed": total(grouped["fixed"]),
                "per_token": sum(map(sizes.bytes, grouped["linear"])),
                "windows": _by_size(grouped["limited"], sizes.bytes),
                "strides": _by_size(grouped["strided"], sizes.bytes),
            },
        },
        "state": {"bytes": assumed.batch * total(states), "per_sequence": total(states)},
    }


class CacheTotals(NamedTuple):
    """Sums over all layers, as sweeps compare them."""

    per_token: int  # bytes that each token adds while it is inside all windows
    cache: int  # bytes of the batch
    state: int  # bytes of the recurrent states of the batch, including states that grow with the context


def cache_totals(model: Model, assumed: Assumptions) -> CacheTotals:
    """The totals of `cache_figures` without its breakdown."""
    sizes, per_token, cache, state = EntryBytes(model, assumed), 0, 0, 0
    for entry in cache_entries(model, assumed):
        if not entry.is_state and entry.growth.rate in ("linear", "limited"):
            per_token += sizes.bytes(entry)
        if entry.kind.dtype_of == "state":
            state += sizes.total(entry)
        else:
            cache += sizes.total(entry)
    return CacheTotals(per_token, assumed.batch * cache, assumed.batch * state)


def _by_size(caches: list[CacheEntry], measure: Callable[[CacheEntry], int]) -> list[LimitedDict]:
    sizes: dict[int, int] = defaultdict(int)
    for entry in caches:
        sizes[int(entry.size)] += measure(entry)
    return [{"tokens": size, "bytes_per_entry": total} for size, total in sorted(sizes.items())]


MLA_NOTES: Mapping[Mla, str] = {
    "latent": "mla latent: the cache has one latent and one rotary key for each token; engines without kernels for "
    "this cache the keys and values of all heads (--mla expanded)",
    "expanded": "mla expanded: the cache has the keys and values of all heads, as in engines without kernels for "
    "latent attention (--mla latent is the default)",
}
KV_POLICY_NOTES: Mapping[KvPolicy, str] = {
    "windowed": "policy windowed: sliding-window layers cache only the tokens in the window; engines that reserve full "
    "pages for every attention layer cache all tokens (--kv-policy uniform)",
    "uniform": "policy uniform: sliding-window layers cache all tokens too, as in engines that reserve full pages for "
    "every attention layer (--kv-policy windowed is the default)",
}

# -- warnings and notes ------------------------------------------------------------------------------------------


def cache_approximation_reasons(model: Model, assumed: Assumptions) -> list[str]:
    """Reasons why the figures may differ from the reference; none if they are exact."""
    reasons = dict.fromkeys(
        entry.approximation_reason for entry in cache_entries(model, assumed) if entry.approximation_reason
    )
    return [f"{model.family}: {text}" for text in (*reasons, *EntryBytes(model, assumed).approximation_reasons)]


def cache_notes(model: Model, assumed: Assumptions) -> list[str]:
    """Notes about choices on which implementations differ, and the option for each alternative."""
    stated, entries = list(model.tree.cache()), list(cache_entries(model, assumed))
    if not entries:
        return ["no KV cache or state: the model reads all of the input at once"]
    return [
        *_policy_notes(stated, assumed),
        *_default_notes(entries, assumed),
        *dict.fromkeys(entry.note for entry in entries if entry.note),
        *dict.fromkeys(_slower_note(entry) for entry in entries if entry.growth.rate == "slower"),
    ]


def _slower_note(entry: CacheEntry) -> str:
    return f"{entry.kind.name} entries in each layer that has them: {entry.formula}, where T is the context"


def _policy_notes(stated: list[CacheEntry], assumed: Assumptions) -> Iterator[str]:
    """The meaning of the policies that change the figures of this model."""
    if any(entry.mla_form == "latent" for entry in stated):
        yield MLA_NOTES[assumed.mla]
    if any(entry.growth.evicts for entry in stated):
        yield KV_POLICY_NOTES[assumed.kv_policy]


def _default_notes(entries: list[CacheEntry], assumed: Assumptions) -> Iterator[str]:
    """Defaults from the reference on which engines differ."""
    if any(entry.kind.per_column for entry in entries) and assumed.conv_columns == "kernel":
        yield (
            "the state of a short convolution has as many columns as its kernel, as in transformers; other engines "
            "have one fewer (--conv-columns kernel-1)"
        )
    fixed = sorted({entry.dtype for entry in entries if entry.kind.dtype_of == "state" and entry.dtype})
    if fixed and assumed.state_dtype is None:
        yield f"some states are {', '.join(fixed)}, as in the reference (--state-dtype changes it)"
    if any(entry.growth.follows_source for entry in entries) and assumed.source is None:
        yield f"the encoder output is assumed to be as long as the context, {assumed.context:,} entries (--source)"
