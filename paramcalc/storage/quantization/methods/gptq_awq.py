"""Readers for libraries that pack integers in groups: AutoGPTQ and GPTQModel, AutoAWQ, AutoRound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcalc.storage.formats import floats, integers
from paramcalc.storage.formats.format import LAYER_MATRICES, LAYERS_AND_HEAD, Format
from paramcalc.storage.quantization.methods.common import QuantFields, group_size, unconverted_modules
from paramcalc.storage.quantization.placement import QuantizationScheme, SchemeRule

GPTQ_LAYOUTS = ("gptq", "gptq_v2", "marlin")
AWQ_VERSIONS = ("gemm", "exllama")  # the same layout on disk; GEMV pads the zero points of a group to whole words


def read_gptq(fields: QuantFields) -> QuantizationScheme:
    """The scheme of AutoGPTQ, GPTQModel and optimum.

    `dynamic` maps regular expressions to changes: `-:` excludes the modules, `+:` overrides their fields.
    """
    bits, size = int(fields.get("bits", 4)), group_size(fields.get("group_size", 128))
    layout = "marlin" if fields.get("is_marlin_format") else str(fields.get("checkpoint_format") or "gptq")
    # The config files of AutoGPTQ itself; later libraries store no bias for a layer without one.
    from_auto_gptq = "model_file_base_name" in fields and "checkpoint_format" not in fields

    def layer(changed: QuantFields) -> Format:
        merged = {"bits": bits, "group_size": size} | dict(changed)
        if layout == "marlin":
            return integers.marlin(group_size(merged["group_size"]))
        return integers.gptq(int(merged["bits"]), group_size(merged["group_size"]), zero_bias=from_auto_gptq)

    rules = [_dynamic_rule(text, changed, layer) for text, changed in (fields.get("dynamic") or {}).items()]
    listed = fields.get("modules_in_block_to_quantize")
    names = [name for item in listed or () for name in ([item] if isinstance(item, str) else item)]
    rules += [SchemeRule(str(name), layer({})) for name in names]
    applies_to = LAYERS_AND_HEAD if fields.get("lm_head") else LAYER_MATRICES
    reasons = (
        () if layout in GPTQ_LAYOUTS else (f"gptq: checkpoint_format {layout!r} is unknown; bytes are an estimate",)
    )
    return QuantizationScheme(
        "gptq", None if names else layer({}), applies_to, (*rules, *unconverted_modules(fields)), reasons
    )


def _dynamic_rule(text: str, changed: Any, layer: Callable[[QuantFields], Format]) -> SchemeRule:
    sign, _, regex = text.partition(":")
    negative = sign == "-"
    regex = regex if sign in ("-", "+") else text
    return SchemeRule(f"re:{regex}", None if negative or changed is False else layer(changed))


def read_awq(fields: QuantFields) -> QuantizationScheme:
    """The scheme of AutoAWQ, with either set of names: w_bit or bits, q_group_size or group_size."""
    bits = int(fields.get("bits") or fields.get("w_bit") or 4)
    size = group_size(fields.get("group_size", fields.get("q_group_size", 128)))
    version = str(fields.get("version") or "gemm").lower()
    reasons = (
        ()
        if version in AWQ_VERSIONS
        else (f"awq: the padding of version {version!r} is unknown; bytes are an estimate",)
    )
    return QuantizationScheme("awq", integers.awq(bits, size), LAYER_MATRICES, unconverted_modules(fields), reasons)


def read_auto_round(fields: QuantFields) -> QuantizationScheme:
    """The scheme of Intel AutoRound: the layout of GPTQ (without g_idx) or AWQ, or 4- and 8-bit floats.

    `extra_config` overrides the bits of single modules.
    """
    defaults = {"bits": fields.get("bits", 4), "group_size": fields.get("group_size", 128)}
    defaults["data_type"] = fields.get("data_type", "int")
    static = fields.get("act_dynamic") is False and int(fields.get("act_bits") or 16) < 16
    reasons: list[str] = []

    def layer(override: QuantFields) -> Format | None:
        merged = defaults | {key: override[key] for key in defaults if key in override}
        if int(merged["bits"]) >= 16:
            return None
        form = _auto_round_format(merged, str(fields.get("packing_format", "")).lower(), static=static)
        if form is None:
            kind = f"{merged['data_type']} of {merged['bits']} bits"
            reasons.append(f"auto-round: the exact layout of {kind} is unknown; bytes are an estimate")
        return form or integers.pack_quantized(int(merged["bits"]), 128)._replace(exact=False)

    rules = [
        SchemeRule(str(name), layer(override), exact=True)
        for name, override in (fields.get("extra_config") or {}).items()
    ]
    form = layer({})
    return QuantizationScheme(
        "auto-round", form, LAYER_MATRICES, (*rules, *unconverted_modules(fields)), tuple(dict.fromkeys(reasons))
    )


def _auto_round_format(fields: QuantFields, packing: str, *, static: bool) -> Format | None:
    bits, size = int(fields["bits"]), fields["group_size"]
    kind = str(fields["data_type"])
    if isinstance(size, list | tuple):  # tiles
        square = kind.startswith("fp") and bits == 8 and len({*size}) == 1
        return floats.fp8_block(int(size[0]), static=static, bits=16) if square else None
    size = group_size(size)
    match kind, bits, size:
        case "int", _, _ if "awq" in packing:
            return integers.awq(bits, size)
        case "int", _, _ if "gptq" in packing or not packing:
            return integers.gptq(bits, size, index=False)
        case (("mx_fp" | "mx_fp_rceil" | "mx_fp4"), 4, 32):
            return floats.MXFP4._replace(applies_to=LAYER_MATRICES)
        case (("mx_fp" | "mx_fp_rceil" | "mx_fp8"), 8, 32):
            return floats.MXFP8
        case (("nv_fp" | "nv_fp4_with_static_gs" | "nv_fp4"), 4, 16):
            return floats.nvfp4(static=int(fields.get("act_bits") or 4) < 16)
    return None
