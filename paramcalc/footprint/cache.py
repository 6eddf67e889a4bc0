"""Caches and states: what every mixer keeps for a sequence, folded over the layers."""

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
    """What the model keeps of each sequence under the policies that are assumed."""
    return entries_under(model.tree.cache(), assumed)


def entries_under(stated: Iterable[CacheEntry], assumed: Assumptions) -> Iterator[CacheEntry]:
    """What is kept of what mixers state, under the policies that are assumed."""
    for one in stated:
        if one.mla_form not in ("any", assumed.mla):
            continue
        if assumed.kv_policy == "uniform" and one.growth.evicts:
            yield one._replace(growth=EVERY_TOKEN, size=1)
        elif one.kind.per_column and assumed.conv_columns == "kernel-1":
            yield one._replace(size=one.size - 1)
        else:
            yield one


def cache_figures(model: Model, assumed: Assumptions) -> CachesDict:
    """`kv_cache` and `state` of the report."""
    entries, found = EntryBytes(model, assumed), list(cache_entries(model, assumed))
    caches, states = ([one for one in found if one.is_state is state] for state in (False, True))

    def total(these: list[CacheEntry]) -> int:
        return sum(map(entries.total, these))

    grouped: dict[GrowthRate, list[CacheEntry]] = defaultdict(list)
    for one in caches:
        grouped[one.growth.rate].append(one)
    return {
        "kv_cache": {
            "bytes": assumed.batch * total(caches),
            "dtype": entries.key.name if entries.key == entries.value else f"{entries.key.name} / {entries.value.name}",
            "latent": any(one.mla_form == "latent" for one in model.tree.cache()),
            "bytes_per_token": sum(map(entries.bytes, grouped["linear"] + grouped["limited"])),
            "per_sequence": {
                "bytes": total(caches),
                "fixed": total(grouped["fixed"]),
                "per_token": sum(map(entries.bytes, grouped["linear"])),
                "windows": _by_size(grouped["limited"], entries.bytes),
                "strides": _by_size(grouped["strided"], entries.bytes),
            },
        },
        "state": {"bytes": assumed.batch * total(states), "per_sequence": total(states)},
    }


class CacheTotals(NamedTuple):
    """Sums over all layers, as sweeps compare them."""

    per_token: int  # bytes that each token adds while it is inside all windows
    cache: int  # bytes of the batch
    state: int  # the same of recurrent states, those that grow with the context too


def cache_totals(model: Model, assumed: Assumptions) -> CacheTotals:
    """What the model keeps, without the breakdown of `cache_figures`."""
    entries, per_token, cache, state = EntryBytes(model, assumed), 0, 0, 0
    for one in cache_entries(model, assumed):
        if not one.is_state and one.growth.rate in ("linear", "limited"):
            per_token += entries.bytes(one)
        if one.kind.dtype_of == "state":
            state += entries.total(one)
        else:
            cache += entries.total(one)
    return CacheTotals(per_token, assumed.batch * cache, assumed.batch * state)


def _by_size(caches: list[CacheEntry], measure: Callable[[CacheEntry], int]) -> list[LimitedDict]:
    sizes: dict[int, int] = defaultdict(int)
    for one in caches:
        sizes[int(one.size)] += measure(one)
    return [{"tokens": size, "bytes_per_entry": found} for size, found in sorted(sizes.items())]


MLA_NOTES: Mapping[Mla, str] = {
    "latent": "mla latent: one latent and one rotary key are kept for each token; engines without kernels for that "
    "keep the keys and values of all heads (--mla expanded)",
    "expanded": "mla expanded: the keys and values of all heads are kept, as engines do that have no kernels for "
    "latent attention (--mla latent is the default)",
}
KV_POLICY_NOTES: Mapping[KvPolicy, str] = {
    "windowed": "policy windowed: layers with a window keep the tokens inside it; engines that reserve full pages for "
    "every attention layer keep all tokens (--kv-policy uniform)",
    "uniform": "policy uniform: layers with a window keep all tokens too, as engines do that reserve full pages for "
    "every attention layer (--kv-policy windowed is the default)",
}

# -- what is to be said ------------------------------------------------------------------------------------------


def cache_doubts(model: Model, assumed: Assumptions) -> list[str]:
    """Why the figures may not be what the reference keeps. None: they are exact."""
    found = dict.fromkeys(one.doubt for one in cache_entries(model, assumed) if one.doubt)
    return [f"{model.family}: {text}" for text in (*found, *EntryBytes(model, assumed).doubts)]


def cache_notes(model: Model, assumed: Assumptions) -> list[str]:
    """How the figures are meant where implementations differ, and which option gives the others."""
    stated, found = list(model.tree.cache()), list(cache_entries(model, assumed))
    if not found:
        return ["nothing is kept between tokens: all of the input is seen at once"]
    return [
        *_policies(stated, assumed),
        *_defaults(found, assumed),
        *dict.fromkeys(one.note for one in found if one.note),
        *dict.fromkeys(_slower_note(one) for one in found if one.growth.rate == "slower"),
    ]


def _slower_note(one: CacheEntry) -> str:
    return f"{one.kind.name} entries in each layer that keeps them: {one.formula}, where T is the context"


def _policies(stated: list[CacheEntry], assumed: Assumptions) -> Iterator[str]:
    """What the policies mean, of a model where they matter."""
    if any(one.mla_form == "latent" for one in stated):
        yield MLA_NOTES[assumed.mla]
    if any(one.growth.evicts for one in stated):
        yield KV_POLICY_NOTES[assumed.kv_policy]


def _defaults(found: list[CacheEntry], assumed: Assumptions) -> Iterator[str]:
    """What is taken from the reference, and may be another elsewhere."""
    if any(one.kind.per_column for one in found) and assumed.conv_columns == "kernel":
        yield (
            "short convolutions keep as many columns as their kernel has, as transformers does; other engines keep "
            "one fewer (--conv-columns kernel-1)"
        )
    fixed = sorted({one.dtype for one in found if one.kind.dtype_of == "state" and one.dtype})
    if fixed and assumed.state_dtype is None:
        yield f"some states are in {', '.join(fixed)}, as the reference computes them (--state-dtype gives another)"
    if any(one.growth.of_source for one in found) and assumed.source is None:
        yield f"an encoder's output of {assumed.context:,} entries is assumed, as many as the context (--source)"
