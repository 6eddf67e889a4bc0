"""Caches and states: what every mixer keeps for a sequence, folded over the layers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from paramcalc.dtypes import Dtype, dtype
from paramcalc.footprint.assumptions import Assumptions
from paramcalc.kept import STATES, Kept
from paramcalc.model import Model


def kept(model: Model, assumed: Assumptions) -> Iterator[Kept]:
    """What the model keeps of each sequence under the policies that are assumed."""
    for one in model.tree.cache():
        if one.form not in ("any", assumed.mla):
            continue
        if assumed.kv_policy == "uniform" and one.span in ("window", "chunk"):
            yield one._replace(span="tokens", size=1)
        elif one.what == "conv" and assumed.conv_columns == "kernel-1":
            yield one._replace(size=one.size - 1)
        else:
            yield one


class Entries:
    """How many bytes an entry takes: keys, values and states each in their dtype."""

    def __init__(self, model: Model, assumed: Assumptions) -> None:
        cache = assumed.kv_cache_dtype or model.dtype
        self.key: Dtype = dtype(cache)
        self.value: Dtype = dtype(assumed.v_cache_dtype or cache)
        self.stated = assumed.state_dtype
        self.activation = model.dtype

    def format(self, one: Kept) -> Dtype:
        """The dtype in which it is kept."""
        if one.what in STATES:
            return dtype(self.stated or one.dtype or self.activation)
        return self.value if one.what == "value" else self.key

    def bytes(self, one: Kept) -> int:
        """Bytes of one entry of it in all layers."""
        return self.format(one).bytes(int(one.elements)) * one.copies


def figures(model: Model, assumed: Assumptions) -> dict[str, Any]:
    """`kv_cache` and `state` of the report."""
    entries, found = Entries(model, assumed), list(kept(model, assumed))
    caches, states = ([one for one in found if (one.what in STATES) is state] for state in (False, True))

    def total(these: list[Kept]) -> int:
        source = assumed.source or assumed.context
        return sum(entries.bytes(one) * int(one.entries(assumed.context, source=source)) for one in these)

    growing = [one for one in caches if one.span in ("tokens", "window", "chunk")]
    return {
        "kv_cache": {
            "bytes": assumed.batch * total(caches),
            "dtype": entries.key.name if entries.key == entries.value else f"{entries.key.name} / {entries.value.name}",
            "latent": any(one.form == "latent" for one in model.tree.cache()),
            "bytes_per_token": sum(map(entries.bytes, growing)),
            "per_sequence": {
                "bytes": total(caches),
                "fixed": total([one for one in caches if one.span in ("source", "always")]),
                "per_token": sum(entries.bytes(one) for one in caches if one.span == "tokens"),
                "windows": _by_size(caches, ("window", "chunk"), entries.bytes),
                "strides": _by_size(caches, ("stride",), entries.bytes),
            },
        },
        "state": {"bytes": assumed.batch * total(states), "per_sequence": total(states)},
    }


def _by_size(caches: list[Kept], spans: tuple[str, ...], measure: Callable[[Kept], int]) -> list[dict[str, int]]:
    sizes: dict[int, int] = defaultdict(int)
    for one in caches:
        if one.span in spans:
            sizes[int(one.size)] += measure(one)
    return [{"tokens": size, "bytes_per_entry": found} for size, found in sorted(sizes.items())]
