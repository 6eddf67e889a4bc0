"""In which dtype keys, values and states are kept: as asked, as the checkpoint says, or as the model computes."""

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

AUTO = "auto"  # what the checkpoint or the model states


def requested_dtype(name: str | None) -> Dtype | None:
    """The dtype that is asked for; None where it is left to the checkpoint."""
    return None if name is None or name.lower() == AUTO else dtype(name)


def checkpoint_cache_dtype(model: Model) -> Dtype | None:
    """The dtype of keys and values that the checkpoint's quantisation states; None where it states none."""
    try:
        found = quantization_scheme(model.quantization)
    except ConfigError:  # an error of the weights, unless their format is asked for and nothing here is looked at
        return None
    return None if found is None or found.kv_cache is None else dtype(found.kv_cache)


def checkpoint_cache_statement(model: Model) -> Any:
    """What a checkpoint's quantisation says about its cache, understood or not."""
    said = model.quantization or {}
    inner = said.get("quantization")
    return said.get("kv_cache_scheme") or (inner if isinstance(inner, Mapping) else said).get("kv_cache_quant_algo")


class EntryBytes:
    """How many bytes an entry takes: keys, values and states each in their dtype."""

    def __init__(self, model: Model, assumed: Assumptions) -> None:
        keys, values = requested_dtype(assumed.kv_cache_dtype), requested_dtype(assumed.v_cache_dtype)
        self.context, self.source = assumed.context, assumed.source or assumed.context
        self.activation = activation_dtype(model)
        # None: the model's, or what the reference keeps something in.
        self.stated = keys or checkpoint_cache_dtype(model)
        self.key = self.stated or self.activation
        self.value = values or self.key
        self.state = requested_dtype(assumed.state_dtype)
        self.doubts: list[str] = []
        if self.stated is None and (stated := checkpoint_cache_statement(model)):
            how = f"how the checkpoint quantises its cache ({stated!r}) is not known"
            self.doubts.append(f"{how}; it is taken as unquantised")

    def format(self, one: CacheEntry) -> Dtype:
        """The dtype in which it is kept; integers are never anything else."""
        fixed = None if one.dtype is None else dtype(one.dtype)
        if fixed is not None and fixed.name.startswith("int"):
            return fixed
        match one.kind.dtype_of:
            case "state":
                return self.state or fixed or self.activation
            case "values":
                return self.value
            case "keys":
                return self.stated or fixed or self.activation
            case unknown:
                return assert_never(unknown)

    def bytes(self, one: CacheEntry) -> int:
        """Bytes of one entry of it in all layers."""
        return self.format(one).bytes(int(one.elements)) * one.copies

    def total(self, one: CacheEntry) -> int:
        """Bytes of all entries that one sequence has."""
        return self.bytes(one) * int(one.entries(self.context, source=self.source))
