"""Configs of two libraries that describe weights group by group: compressed-tensors and NVIDIA's ModelOpt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from paramcalc.storage.formats import floats, integers
from paramcalc.storage.formats.format import LAYER_MATRICES, LAYERS_AND_TOWERS, Format, SideTensor, SideTensorUnit
from paramcalc.storage.quantization.placement import QuantizationScheme, SchemeRule

Stated = Mapping[str, Any]
LINEAR_TARGETS = LAYERS_AND_TOWERS.also("head")  # every torch.nn.Linear; a router is none, or is left out


def read_compressed_tensors(stated: Stated) -> QuantizationScheme:
    """Groups of modules with the bits, strategy and format of their weights; `ignore` leaves modules out.

    A name is the whole name of a module, `re:` a regular expression, Linear all of that class.
    """
    if "quant_algo" in stated:
        return read_modelopt(stated)
    rules = [SchemeRule(str(text), exact=True) for text in stated.get("ignore") or ()]
    usual, doubts = None, []
    for group in (stated.get("config_groups") or {}).values():
        form, doubt = _weights(group, str(group.get("format") or stated.get("format") or "dense"))
        doubts += doubt
        for target in group.get("targets") or ():
            if target == "Linear":
                usual = form
            else:
                rules.append(SchemeRule(str(target), form, exact=True))
    cache = _cache_dtype(stated.get("kv_cache_scheme"))
    static = cache is not None and not stated["kv_cache_scheme"].get("dynamic")
    return QuantizationScheme(
        "compressed-tensors", usual, LINEAR_TARGETS, tuple(rules), tuple(doubts), cache, 16 if static else 0
    )


def _weights(group: Stated, layout: str) -> tuple[Format | None, list[str]]:
    """The format of a group's weights, and what is not known of it."""
    weights = group.get("weights")
    if not weights or layout == "dense":
        return None, []
    bits, size = int(weights.get("num_bits", 8)), int(weights.get("group_size") or 0) or None
    strategy = str(weights.get("strategy") or ("group" if size else "tensor"))
    inputs = group.get("input_activations") or {}
    static = inputs if inputs and inputs.get("dynamic") in (False, "local") else {}
    size = size if strategy in ("group", "tensor_group") and size and size > 0 else None
    whole = WeightArgs(bits, strategy, size)
    if weights.get("type") == "float":
        form = _floats(whole, weights, static=bool(static))
    elif "pack" in layout:
        index = str(weights.get("actorder")).lower() in ("group", "true")
        asymmetric = weights.get("symmetric") is False
        form = integers.pack_quantized(bits, size, zeros=asymmetric, index=index) if strategy in PACKED else None
    else:
        form = _bytes(whole, weights, static)
    if form is not None:
        return form, []
    guess = integers.pack_quantized(bits, size)._replace(exact=False)
    return guess, [f"compressed-tensors {layout}: the layout is not known to the byte; bytes are an estimate"]


class WeightArgs(NamedTuple):
    """How the weights of a group are quantised."""

    bits: int
    strategy: str  # what has a scale of its own
    size: int | None  # inputs of a group


PACKED = ("group", "channel")
PER: Mapping[str, SideTensorUnit] = {"tensor": "tensor", "channel": "output", "group": "group"}


def _bytes(whole: WeightArgs, weights: Stated, static: Stated) -> Format | None:
    """Integers of eight bits and fewer, a byte each (int-quantized); asymmetric ones with zero points beside scales."""
    per = PER.get(whole.strategy)
    if per is None or whole.bits > 8:
        return None
    extras = [SideTensor("weight_scale", per, 16, whole.size or 0)]
    extras += [SideTensor("weight_zero_point", per, 8, whole.size or 0)] if weights.get("symmetric") is False else []
    extras += [SideTensor("input_scale", "tensor", 16)] if static else []
    extras += [SideTensor("input_zero_point", "tensor", 8)] if static.get("symmetric") is False else []
    same = whole.bits == 8 and whole.size is None
    name = "w8a8-int8" if same else f"int{whole.bits}-in-bytes{integers.group_suffix(whole.size)}"
    return integers.W8A8._replace(name=name, extras=tuple(extras))


def _floats(whole: WeightArgs, weights: Stated, *, static: bool) -> Format | None:
    exponents = "uint8" in str(
        weights.get("scale_dtype") or "uint8"
    )  # files from before they were stated had no others
    match whole:
        case WeightArgs(4, _, 32):
            return floats.MXFP4._replace(reach=LAYER_MATRICES)
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
            tensor = floats.fp8_tensor(static=static)
            return tensor._replace(extras=tuple(extra._replace(bits=16) for extra in tensor.extras))
    return None


def _cache_dtype(stated: Any) -> str | None:
    """The dtype of keys and values that a kv_cache_scheme states."""
    if not isinstance(stated, Mapping):
        return None
    return {("float", 8): "float8_e4m3fn", ("int", 8): "int8"}.get((str(stated.get("type")), stated.get("num_bits", 0)))


# -- ModelOpt ----------------------------------------------------------------------------------------------------------

MODELOPT_ALGORITHMS: dict[str, Format] = {
    "FP8": floats.fp8_tensor(static=True),
    "FP8_PB_WO": floats.fp8_block(),
    "FP8_PER_CHANNEL_PER_TOKEN": floats.fp8_channel(bits=32),
    "NVFP4": floats.nvfp4(static=True),
    "W4A16_NVFP4": floats.nvfp4(),
    "NVFP4_AWQ": floats.nvfp4(static=True),
    "MXFP4": floats.MXFP4._replace(reach=LAYER_MATRICES),
    "MXFP8": floats.MXFP8,
    "W4A16_AWQ": integers.pack_quantized(4, 128)._replace(name="modelopt-int4-g128"),
    "W4A8_AWQ": integers.pack_quantized(4, 128)._replace(name="modelopt-int4-g128"),
}
SMOOTHED = ("NVFP4_AWQ", "W4A16_AWQ", "W4A8_AWQ")  # with a 16-bit scale for each input beside the weights
MODELOPT_CACHE_DTYPES = {"FP8": "float8_e4m3fn", "INT8": "int8"}


def read_modelopt(stated: Stated) -> QuantizationScheme:
    """NVIDIA's ModelOpt, in config.json or in hf_quant_config.json beside it; the head is never quantised.

    MIXED_PRECISION names an algorithm for each module in `quantized_layers`. Where the cache is quantised the file has
    k_proj.k_scale and v_proj.v_scale of each layer, float32 each.
    """
    inner = stated.get("quantization") or stated
    algorithm, size = inner.get("quant_algo"), inner.get("group_size")
    left = [*(inner.get("exclude_modules") or ()), *(stated.get("ignore") or ())]
    rules = [SchemeRule(str(text)) for text in left]
    doubts: list[str] = []
    usual = None
    if str(algorithm).upper() == "MIXED_PRECISION":
        layers = inner.get("quantized_layers") or {}
        rules += list(_mixed(layers.items(), doubts))
    elif algorithm is not None:
        usual = _algorithm(str(algorithm).upper(), size, doubts)
    cache = MODELOPT_CACHE_DTYPES.get(str(inner.get("kv_cache_quant_algo"))) or _cache_dtype(
        stated.get("kv_cache_scheme")
    )
    return QuantizationScheme(
        "modelopt", usual, LAYERS_AND_TOWERS, tuple(rules), tuple(dict.fromkeys(doubts)), cache, 32 if cache else 0
    )


def _mixed(layers: Iterable[tuple[str, Stated]], doubts: list[str]) -> Iterator[SchemeRule]:
    for name, own in layers:
        yield SchemeRule(
            name, _algorithm(str(own.get("quant_algo")).upper(), own.get("group_size"), doubts), exact=True
        )


def _algorithm(name: str, size: Any, doubts: list[str]) -> Format | None:
    form = MODELOPT_ALGORITHMS.get(name)
    if form is None:
        doubts.append(f"modelopt: quant_algo {name} is not known; its weights are counted unquantised")
        return None
    if name.startswith("W4A") and "NVFP4" not in name:
        form = integers.pack_quantized(4, int(size or 128))._replace(
            name=f"modelopt-int4-g{size or 128}", records=(), word=0
        )
    if name in SMOOTHED:
        form = form._replace(extras=(*form.extras, SideTensor("pre_quant_scale", "input", 16)))
    return form
