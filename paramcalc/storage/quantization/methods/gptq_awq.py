"""Configs of libraries that pack integers by group: AutoGPTQ and GPTQModel, AutoAWQ, AutoRound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcalc.storage.formats import floats, integers
from paramcalc.storage.formats.format import LAYER_MATRICES, LAYERS_AND_HEAD, Format
from paramcalc.storage.quantization.methods.common import QuantFields, group_size, unconverted_modules
from paramcalc.storage.quantization.placement import QuantizationScheme, SchemeRule

GPTQ_LAYOUTS = ("gptq", "gptq_v2", "marlin")
AWQ_VERSIONS = ("gemm", "exllama")  # the same on disk; GEMV pads groups of zero points to whole words


def read_gptq(stated: QuantFields) -> QuantizationScheme:
    """AutoGPTQ, GPTQModel, optimum. `dynamic` has regular expressions: `-:` leaves modules out, `+:` changes them."""
    bits, size = int(stated.get("bits", 4)), group_size(stated.get("group_size", 128))
    layout = "marlin" if stated.get("is_marlin_format") else str(stated.get("checkpoint_format") or "gptq")
    # AutoGPTQ's own config files; later libraries write no biases that a layer does not have.
    old = "model_file_base_name" in stated and "checkpoint_format" not in stated

    def layer(changed: QuantFields) -> Format:
        own = {"bits": bits, "group_size": size} | dict(changed)
        if layout == "marlin":
            return integers.marlin(group_size(own["group_size"]))
        return integers.gptq(int(own["bits"]), group_size(own["group_size"]), zero_bias=old)

    rules = [_dynamic(text, changed, layer) for text, changed in (stated.get("dynamic") or {}).items()]
    inside = stated.get("modules_in_block_to_quantize")
    names = [name for item in inside or () for name in ([item] if isinstance(item, str) else item)]
    rules += [SchemeRule(str(name), layer({})) for name in names]
    reach = LAYERS_AND_HEAD if stated.get("lm_head") else LAYER_MATRICES
    doubts = () if layout in GPTQ_LAYOUTS else (f"gptq: checkpoint_format {layout!r} is not known; an estimate",)
    return QuantizationScheme(
        "gptq", None if names else layer({}), reach, (*rules, *unconverted_modules(stated)), doubts
    )


def _dynamic(text: str, changed: Any, layer: Callable[[QuantFields], Format]) -> SchemeRule:
    sign, _, regex = text.partition(":")
    negative = sign == "-"
    regex = regex if sign in ("-", "+") else text
    return SchemeRule(f"re:{regex}", None if negative or changed is False else layer(changed))


def read_awq(stated: QuantFields) -> QuantizationScheme:
    """AutoAWQ: w_bit or bits, q_group_size or group_size."""
    bits = int(stated.get("bits") or stated.get("w_bit") or 4)
    size = group_size(stated.get("group_size", stated.get("q_group_size", 128)))
    version = str(stated.get("version") or "gemm").lower()
    doubts = () if version in AWQ_VERSIONS else (f"awq: how version {version!r} pads is not known; an estimate",)
    return QuantizationScheme("awq", integers.awq(bits, size), LAYER_MATRICES, unconverted_modules(stated), doubts)


def read_auto_round(stated: QuantFields) -> QuantizationScheme:
    """Intel's AutoRound packs as GPTQ (without its index) or AWQ does, or writes 4- and 8-bit floats of other kinds.

    `extra_config` has other bits for single modules.
    """
    usual = {"bits": stated.get("bits", 4), "group_size": stated.get("group_size", 128)}
    usual["data_type"] = stated.get("data_type", "int")
    static = stated.get("act_dynamic") is False and int(stated.get("act_bits") or 16) < 16
    doubts: list[str] = []

    def layer(own: QuantFields) -> Format | None:
        merged = usual | {key: own[key] for key in usual if key in own}
        if int(merged["bits"]) >= 16:
            return None
        form = _rounded(merged, str(stated.get("packing_format", "")).lower(), static=static)
        if form is None:
            kind = f"{merged['data_type']} of {merged['bits']} bits"
            doubts.append(f"auto-round: the layout of {kind} is not known to the byte; bytes are an estimate")
        return form or integers.pack_quantized(int(merged["bits"]), 128)._replace(exact=False)

    rules = [SchemeRule(str(name), layer(own), exact=True) for name, own in (stated.get("extra_config") or {}).items()]
    form = layer({})
    return QuantizationScheme(
        "auto-round", form, LAYER_MATRICES, (*rules, *unconverted_modules(stated)), tuple(dict.fromkeys(doubts))
    )


def _rounded(own: QuantFields, packing: str, *, static: bool) -> Format | None:
    bits, size = int(own["bits"]), own["group_size"]
    kind = str(own["data_type"])
    if isinstance(size, list | tuple):  # squares
        square = kind.startswith("fp") and bits == 8 and len({*size}) == 1
        return floats.fp8_block(int(size[0]), static=static, bits=16) if square else None
    size = group_size(size)
    match kind, bits, size:
        case "int", _, _ if "awq" in packing:
            return integers.awq(bits, size)
        case "int", _, _ if "gptq" in packing or not packing:
            return integers.gptq(bits, size, index=False)
        case (("mx_fp" | "mx_fp_rceil" | "mx_fp4"), 4, 32):
            return floats.MXFP4._replace(reach=LAYER_MATRICES)
        case (("mx_fp" | "mx_fp_rceil" | "mx_fp8"), 8, 32):
            return floats.MXFP8
        case (("nv_fp" | "nv_fp4_with_static_gs" | "nv_fp4"), 4, 16):
            return floats.nvfp4(static=int(own.get("act_bits") or 4) < 16)
    return None
