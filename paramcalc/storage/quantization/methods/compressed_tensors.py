"""Readers for compressed-tensors and NVIDIA ModelOpt, whose configs describe groups of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from paramcalc.storage.formats import floats, integers
from paramcalc.storage.formats.format import LAYER_MATRICES, LAYERS_AND_TOWERS, Format, SideTensor, SideTensorUnit
from paramcalc.storage.quantization.placement import QuantizationScheme, SchemeRule

Stated = Mapping[str, Any]
LINEAR_TARGETS = LAYERS_AND_TOWERS.with_categories("head")  # every torch.nn.Linear; routers are not one, or are ignored


def read_compressed_tensors(fields: Stated) -> QuantizationScheme:
    """The scheme of a compressed-tensors config: groups of modules with bits, strategy and format of their weights.

    `ignore` lists modules that stay unquantised. A target is the full name of a module, a regular expression after
    `re:`, or the class `Linear`.
    """
    if "quant_algo" in fields:
        return read_modelopt(fields)
    rules = [SchemeRule(str(text), exact=True) for text in fields.get("ignore") or ()]
    default_format, reasons = None, []
    for group in (fields.get("config_groups") or {}).values():
        form, group_reasons = _group_format(group, str(group.get("format") or fields.get("format") or "dense"))
        reasons += group_reasons
        for target in group.get("targets") or ():
            if target == "Linear":
                default_format = form
            else:
                rules.append(SchemeRule(str(target), form, exact=True))
    cache = _cache_dtype(fields.get("kv_cache_scheme"))
    static = cache is not None and not fields["kv_cache_scheme"].get("dynamic")
    return QuantizationScheme(
        "compressed-tensors", default_format, LINEAR_TARGETS, tuple(rules), tuple(reasons), cache, 16 if static else 0
    )


def _group_format(group: Stated, layout: str) -> tuple[Format | None, list[str]]:
    """The format of the weights of a group, and the reasons why it is an estimate."""
    weights = group.get("weights")
    if not weights or layout == "dense":
        return None, []
    bits, size = int(weights.get("num_bits", 8)), int(weights.get("group_size") or 0) or None
    strategy = str(weights.get("strategy") or ("group" if size else "tensor"))
    activations = group.get("input_activations") or {}
    static = activations if activations and activations.get("dynamic") in (False, "local") else {}
    size = size if strategy in ("group", "tensor_group") and size and size > 0 else None
    args = WeightArgs(bits, strategy, size)
    if weights.get("type") == "float":
        form = _float_format(args, weights, static=bool(static))
    elif "pack" in layout:
        index = str(weights.get("actorder")).lower() in ("group", "true")
        asymmetric = weights.get("symmetric") is False
        form = (
            integers.pack_quantized(bits, size, zeros=asymmetric, index=index)
            if strategy in PACKED_STRATEGIES
            else None
        )
    else:
        form = _int8_format(args, weights, static)
    if form is not None:
        return form, []
    estimate = integers.pack_quantized(bits, size)._replace(exact=False)
    return estimate, [f"compressed-tensors {layout}: the exact layout is unknown; bytes are an estimate"]


class WeightArgs(NamedTuple):
    """Bits, strategy and group size of the weights of a group."""

    bits: int
    strategy: str  # the unit that has its own scale: tensor, channel, group, block
    size: int | None  # inputs in a group


PACKED_STRATEGIES = ("group", "channel")
SCALE_UNITS: Mapping[str, SideTensorUnit] = {"tensor": "tensor", "channel": "output", "group": "group"}


def _int8_format(args: WeightArgs, weights: Stated, static: Stated) -> Format | None:
    """Integers of at most 8 bits in a byte each (int-quantized); asymmetric formats have zero points next to scales."""
    per = SCALE_UNITS.get(args.strategy)
    if per is None or args.bits > 8:
        return None
    extras = [SideTensor("weight_scale", per, 16, args.size or 0)]
    extras += [SideTensor("weight_zero_point", per, 8, args.size or 0)] if weights.get("symmetric") is False else []
    extras += [SideTensor("input_scale", "tensor", 16)] if static else []
    extras += [SideTensor("input_zero_point", "tensor", 8)] if static.get("symmetric") is False else []
    plain_int8 = args.bits == 8 and args.size is None
    name = "w8a8-int8" if plain_int8 else f"int{args.bits}-in-bytes{integers.group_suffix(args.size)}"
    return integers.W8A8._replace(name=name, extras=tuple(extras))


def _float_format(args: WeightArgs, weights: Stated, *, static: bool) -> Format | None:
    # Before configs stated scale_dtype, all scales of such groups were 8-bit exponents.
    exponents = "uint8" in str(weights.get("scale_dtype") or "uint8")
    match args:
        case WeightArgs(4, _, 32):
            return floats.MXFP4._replace(applies_to=LAYER_MATRICES)
        case WeightArgs(4, _, 16):
            return floats.nvfp4(static=static)
        case WeightArgs(6, _, 32):
            return floats.MXFP6
        case WeightArgs(8, "group", 32) if exponents:
            return floats.MXFP8
        case WeightArgs(8, "block", _):
            block = weights.get("block_structure") or [128, 128]
            return floats.fp8_block(int(block[0]), static=static, bits=16) if len({*block}) == 1 else None
        case WeightArgs(8, "channel", _):
            return floats.fp8_channel(static=static)
        case WeightArgs(8, "group", int(size)):
            return floats.fp8_group(size, static=static)
        case WeightArgs(8, "tensor", _):
            form = floats.fp8_tensor(static=static)
            return form._replace(extras=tuple(extra._replace(bits=16) for extra in form.extras))
    return None


def _cache_dtype(fields: Any) -> str | None:
    """The dtype of the KV cache in a kv_cache_scheme, or None."""
    if not isinstance(fields, Mapping):
        return None
    return {("float", 8): "float8_e4m3fn", ("int", 8): "int8"}.get((str(fields.get("type")), fields.get("num_bits", 0)))


# -- ModelOpt ----------------------------------------------------------------------------------------------------------

MODELOPT_ALGORITHMS: dict[str, Format] = {
    "FP8": floats.fp8_tensor(static=True),
    "FP8_PB_WO": floats.fp8_block(),
    "FP8_PER_CHANNEL_PER_TOKEN": floats.fp8_channel(bits=32),
    "NVFP4": floats.nvfp4(static=True),
    "W4A16_NVFP4": floats.nvfp4(),
    "NVFP4_AWQ": floats.nvfp4(static=True),
    "MXFP4": floats.MXFP4._replace(applies_to=LAYER_MATRICES),
    "MXFP8": floats.MXFP8,
    "W4A16_AWQ": integers.pack_quantized(4, 128)._replace(name="modelopt-int4-g128"),
    "W4A8_AWQ": integers.pack_quantized(4, 128)._replace(name="modelopt-int4-g128"),
}
PRE_SCALED_ALGORITHMS = ("NVFP4_AWQ", "W4A16_AWQ", "W4A8_AWQ")  # each matrix has a 16-bit scale for each input too
MODELOPT_CACHE_DTYPES = {"FP8": "float8_e4m3fn", "INT8": "int8"}


def read_modelopt(fields: Stated) -> QuantizationScheme:
    """The scheme of an NVIDIA ModelOpt config, from config.json or hf_quant_config.json.

    The head is never quantised. With MIXED_PRECISION, `quantized_layers` gives an algorithm for each module. If the
    KV cache is quantised, the file has k_proj.k_scale and v_proj.v_scale for each layer, one float32 each.
    """
    inner = fields.get("quantization") or fields
    algorithm, size = inner.get("quant_algo"), inner.get("group_size")
    excluded = [*(inner.get("exclude_modules") or ()), *(fields.get("ignore") or ())]
    rules = [SchemeRule(str(text)) for text in excluded]
    reasons: list[str] = []
    default_format = None
    if str(algorithm).upper() == "MIXED_PRECISION":
        layers = inner.get("quantized_layers") or {}
        rules += list(_mixed_rules(layers.items(), reasons))
    elif algorithm is not None:
        default_format = _algorithm_format(str(algorithm).upper(), size, reasons)
    cache = MODELOPT_CACHE_DTYPES.get(str(inner.get("kv_cache_quant_algo"))) or _cache_dtype(
        fields.get("kv_cache_scheme")
    )
    return QuantizationScheme(
        "modelopt",
        default_format,
        LAYERS_AND_TOWERS,
        tuple(rules),
        tuple(dict.fromkeys(reasons)),
        cache,
        32 if cache else 0,
    )


def _mixed_rules(layers: Iterable[tuple[str, Stated]], reasons: list[str]) -> Iterator[SchemeRule]:
    for name, layer in layers:
        yield SchemeRule(
            name, _algorithm_format(str(layer.get("quant_algo")).upper(), layer.get("group_size"), reasons), exact=True
        )


def _algorithm_format(name: str, size: Any, reasons: list[str]) -> Format | None:
    form = MODELOPT_ALGORITHMS.get(name)
    if form is None:
        reasons.append(f"modelopt: quant_algo {name} is unknown; its weights are counted as unquantised")
        return None
    if name.startswith("W4A") and "NVFP4" not in name:
        form = integers.pack_quantized(4, int(size or 128))._replace(
            name=f"modelopt-int4-g{size or 128}", records=(), word=0
        )
    if name in PRE_SCALED_ALGORITHMS:
        form = form._replace(extras=(*form.extras, SideTensor("pre_quant_scale", "input", 16)))
    return form
