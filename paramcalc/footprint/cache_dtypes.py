"""Dtypes of cached keys, values and states: as requested, else as in the checkpoint, else the activation dtype."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcalc.assumptions import Assumptions
from paramcalc.base.dtypes import Dtype, dtype
from paramcalc.base.errors import ConfigError
from paramcalc.base.exhaustive import assert_never
from paramcalc.footprint.inference_activations import activation_dtype
from paramcalc.model import Model
from paramcalc.storage.quantization.placement import quantization_scheme
from paramcalc.tree.state import CacheEntry

AUTO = "auto"  # the dtype that the checkpoint or the model states


def requested_dtype(name: str | None) -> Dtype | None:
    """The requested dtype; None if the checkpoint decides. Raises ParamcalcError for an unknown dtype."""
    return None if name is None or name.lower() == AUTO else dtype(name)


def checkpoint_cache_dtype(model: Model) -> Dtype | None:
    """The dtype of keys and values in the quantization_config of the checkpoint, or None."""
    try:
        scheme = quantization_scheme(model.quantization)
    except ConfigError:  # reported with the weights, unless --dtype replaces their format
        return None
    return None if scheme is None or scheme.kv_cache is None else dtype(scheme.kv_cache)


def checkpoint_cache_statement(model: Model) -> Any:
    """The raw field of the quantization_config about the KV cache, known or unknown; None without one."""
    config = model.quantization or {}
    inner = config.get("quantization")
    return config.get("kv_cache_scheme") or (inner if isinstance(inner, Mapping) else config).get("kv_cache_quant_algo")


class EntryBytes:
    """Bytes of cache entries: keys, values and states, each in its dtype."""

    def __init__(self, model: Model, assumed: Assumptions) -> None:
        keys, values = requested_dtype(assumed.kv_cache_dtype), requested_dtype(assumed.v_cache_dtype)
        self.context, self.source = assumed.context, assumed.source or assumed.context
        self.activation = activation_dtype(model)
        # None: the activation dtype, or the dtype that the reference fixes for an entry.
        self.stated = keys or checkpoint_cache_dtype(model)
        self.key = self.stated or self.activation
        self.value = values or self.key
        self.state = requested_dtype(assumed.state_dtype)
        self.approximation_reasons: list[str] = []
        if self.stated is None and (stated := checkpoint_cache_statement(model)):
            self.approximation_reasons.append(
                f"the KV-cache quantisation of the checkpoint ({stated!r}) is unknown; counted as unquantised"
            )

    def format(self, entry: CacheEntry) -> Dtype:
        """The dtype of an entry; integers always keep theirs."""
        fixed = None if entry.dtype is None else dtype(entry.dtype)
        if fixed is not None and fixed.name.startswith("int"):
            return fixed
        match entry.kind.dtype_of:
            case "state":
                return self.state or fixed or self.activation
            case "values":
                return self.value
            case "keys":
                return self.stated or fixed or self.activation
            case unknown:
                return assert_never(unknown)

    def bytes(self, entry: CacheEntry) -> int:
        """Bytes of one entry in all layers."""
        return self.format(entry).bytes(int(entry.elements)) * entry.copies

    def total(self, entry: CacheEntry) -> int:
        """Bytes of all entries of one sequence."""
        return self.bytes(entry) * int(entry.entries(self.context, source=self.source))
