"""Helpers for several quantisation methods: unconverted modules, group sizes, and estimates for unknown layouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcalc.storage.formats import integers
from paramcalc.storage.formats.format import LAYER_MATRICES, Format
from paramcalc.storage.quantization.placement import QuantizationScheme, SchemeRule

QuantFields = Mapping[str, Any]
# transformers converts every torch.nn.Linear except the output matrix.
LINEAR_LAYERS = LAYER_MATRICES.with_categories("vision", "projector", "other", "head", "norm")._replace(
    output_matrix=False
)
UNCONVERTED_KEYS = (
    "modules_to_not_convert",
    "ignored_layers",
    "ignore",
    "exclude",
    "exclude_modules",
    "llm_int8_skip_modules",
    "skip_modules",
    "linear_weights_not_to_quantize",
)


def unconverted_modules(fields: QuantFields) -> tuple[SchemeRule, ...]:
    """Rules for the modules that stay unquantised, read from any of the keys that methods use for them."""
    lists = (fields.get(key) or () for key in UNCONVERTED_KEYS)
    return tuple(SchemeRule(str(text)) for names in lists for text in ([names] if isinstance(names, str) else names))


def group_size(value: Any) -> int | None:
    """The group size, or None (a whole row) for -1, 0 or null. Raises ValueError or TypeError if not a number."""
    size = -1 if value is None else int(value)
    return size if size > 0 else None


def estimated_scheme(form: Format, method: str) -> QuantizationScheme:
    """A scheme whose bytes are an estimate, with the reason."""
    reason = f"{method}: the exact layout is unknown; bytes are an estimate, as {form.name}"
    return QuantizationScheme(method, form._replace(exact=False), LINEAR_LAYERS, estimate_reasons=(reason,))


def read_unknown(fields: QuantFields, method: str) -> QuantizationScheme:
    """The scheme of an unknown method, an estimate.

    The stated bits and group size are counted with a 16-bit scale; a config without bits is counted as unquantised.
    """
    bits = fields.get("bits") or fields.get("nbits") or fields.get("num_bits") or fields.get("w_bit")
    if isinstance(bits, int) and bits in integers.BITS:
        estimate = integers.pack_quantized(bits, group_size(fields.get("group_size")))
        return estimated_scheme(estimate, f"quant_method {method!r}")._replace(rules=unconverted_modules(fields))
    reason = f"quant_method {method!r} is unknown: bytes are those of unquantised weights, an overestimate"
    return QuantizationScheme(method, None, estimate_reasons=(reason,))
