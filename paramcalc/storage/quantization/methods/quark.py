"""Reader for AMD Quark: dtype and qscheme of the weights, with overrides for single layers."""

from __future__ import annotations

from collections.abc import Mapping

from paramcalc.base.dtypes import Dtype
from paramcalc.storage.formats import floats, integers
from paramcalc.storage.formats.format import LAYER_MATRICES, Format, SideTensor
from paramcalc.storage.quantization.methods.common import LINEAR_LAYERS, QuantFields, group_size, unconverted_modules
from paramcalc.storage.quantization.placement import QuantizationScheme, SchemeRule

RECENT_FIELD = "enable_buffer_reuse"  # Quark 0.13 states it for every tensor; the layout was read from its files
QUARK_CACHE_DTYPES = {"fp8_e4m3": "float8_e4m3fn", "int8": "int8"}


def read_quark(fields: QuantFields) -> QuantizationScheme:
    """The scheme of a Quark config, in the layout of its safetensors files (export.weight_format real_quantized)."""
    default_fields = fields.get("global_quant_config") or {}
    by_name: dict[str, QuantFields] = dict(fields.get("layer_quant_config") or {})
    by_name = {**(fields.get("kv_cache_quant_config") or {}), **by_name}
    default_format = quark_layer_format(default_fields)
    rules = tuple(SchemeRule(str(name), quark_layer_format(layer)) for name, layer in by_name.items())
    eight_bit = [
        layer
        for layer in (default_fields, *by_name.values())
        if layer.get("weight") and str(layer["weight"].get("dtype")).startswith(("fp8", "int8", "uint8"))
    ]
    known_scales = all(RECENT_FIELD in layer["weight"] for layer in eight_bit)
    reasons = () if known_scales else ("quark: the dtype of the scales depends on its version; bytes are an estimate",)
    return QuantizationScheme(
        "quark", default_format, LINEAR_LAYERS, (*unconverted_modules(fields), *rules), reasons, _cache_dtype(by_name)
    )


def quark_layer_format(layer: QuantFields) -> Format | None:
    """The format of a layer, or None if unquantised. Raises ValueError for an unknown combination."""
    weight = layer.get("weight")
    if not weight:
        return None
    kind, scheme, size = (
        str(weight.get("dtype")),
        str(weight.get("qscheme", "per_tensor")),
        group_size(weight.get("group_size")),
    )
    static = bool(layer.get("input_tensors")) and not layer["input_tensors"].get("is_dynamic")
    match kind, scheme, size:
        case "fp8_e4m3", "per_tensor", _:
            tensor = floats.fp8_tensor(static=static)
            outputs = [SideTensor("output_scale", "tensor", 16)] if layer.get("output_tensors") else []
            return tensor._replace(extras=(*(extra._replace(bits=16) for extra in tensor.extras), *outputs))
        case "fp8_e4m3", "per_channel", _:
            return floats.fp8_channel(static=static)
        case "fp4", "per_group", 32:
            return floats.MXFP4._replace(applies_to=LAYER_MATRICES)
        case (("fp6_e3m2" | "fp6_e2m3"), "per_group", 32):
            return floats.MXFP6
        case (("int4" | "uint4"), "per_group", int()):
            return integers.awq(4, size)._replace(name=f"quark-int4-g{size}")
        case (("int8" | "uint8"), ("per_tensor" | "per_channel"), _):
            return _int8_format(scheme)
    raise ValueError(f"{kind} {scheme} with groups of {size} is unknown")


def _int8_format(scheme: str) -> Format:
    scale = (
        SideTensor("weight_scale", "tensor", 32) if scheme == "per_tensor" else SideTensor("weight_scale", "output", 16)
    )
    zero = SideTensor("weight_zero_point", scale.per, 8)
    return Format("quark-int8", Dtype("int8", 1, 1), (scale, zero), summary="8 bits", source="Quark: export")


def _cache_dtype(by_name: Mapping[str, QuantFields]) -> str | None:
    """The dtype of the KV cache: the output dtype of the key and value projections."""
    for name, layer in by_name.items():
        if str(name).endswith(("k_proj", "v_proj", "kv_proj", "qkv_proj")) and layer.get("output_tensors"):
            return QUARK_CACHE_DTYPES.get(str(layer["output_tensors"].get("dtype")))
    return None
