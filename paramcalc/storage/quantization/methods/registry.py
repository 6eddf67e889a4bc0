"""The table of methods: one reader for each `quant_method`, from its fields to a QuantizationScheme."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from paramcalc.storage.formats import floats, integers
from paramcalc.storage.formats.format import LAYER_MATRICES, MLX_MATRICES, ONLY_EXPERTS, Format
from paramcalc.storage.quantization.methods import estimates
from paramcalc.storage.quantization.methods.common import (
    LINEAR_LAYERS,
    QuantFields,
    group_size,
    read_unknown,
    unconverted_modules,
)
from paramcalc.storage.quantization.methods.compressed_tensors import read_compressed_tensors, read_modelopt
from paramcalc.storage.quantization.methods.gptq_awq import read_auto_round, read_awq, read_gptq
from paramcalc.storage.quantization.methods.quark import read_quark
from paramcalc.storage.quantization.placement import QuantizationScheme, SchemeRule


def read_method(fields: QuantFields) -> QuantizationScheme:
    """The scheme of a quantization_config, by its `quant_method`, or by its fields if it has none (MLX)."""
    method = str(fields.get("quant_method") or _guess_method(fields)).lower().replace("_", "-")
    reader = METHODS.get(method)
    if reader is None:
        return read_unknown(fields, method)
    return reader(fields)


def _guess_method(fields: QuantFields) -> str:
    """The method of a config without `quant_method`, recognised by fields that one library uses."""
    for method, keys in (
        ("modelopt", ("quantization", "quant_algo")),
        ("bitsandbytes", ("load_in_4bit", "load_in_8bit")),
        ("compressed-tensors", ("config_groups",)),
        ("gptq", ("desc_act", "damp_percent", "true_sequential")),
        ("awq", ("zero_point", "w_bit", "q_group_size")),
        ("mlx", ("bits", "group_size")),
    ):
        if any(key in fields for key in keys):
            return method
    return "unnamed"


# -- integers ----------------------------------------------------------------------------------------------------------


def read_mlx(fields: QuantFields) -> QuantizationScheme:
    """MLX: bits and group_size for all modules, with overrides (or false) under the names of modules."""

    def layer(override: QuantFields) -> Format:
        mode = str(override.get("mode", fields.get("mode", "affine")))
        if mode == "affine":
            return integers.mlx(int(override.get("bits", 4)), int(override.get("group_size", 64)))
        nvfp4 = floats.nvfp4()
        modes = {
            "mxfp4": floats.MXFP4,
            "mxfp8": floats.MXFP8,
            "nvfp4": nvfp4._replace(extras=nvfp4.extras[:1]),
        }
        return modes[mode]._replace(applies_to=MLX_MATRICES)

    defaults = {key: fields[key] for key in ("bits", "group_size", "mode") if key in fields}
    rules = [
        SchemeRule(
            name,
            layer(defaults | dict(override))
            if isinstance(override, Mapping)
            else (layer(defaults) if override else None),
            exact=True,
        )
        for name, override in fields.items()
        if isinstance(override, Mapping | bool) and ("." in name or name in ("lm_head", "embed_tokens"))
    ]
    return QuantizationScheme("mlx", layer(defaults), MLX_MATRICES, tuple(rules))


def read_hqq(fields: QuantFields) -> QuantizationScheme:
    """HQQ: one quant_config for all layers, or one for each projection name."""
    config = fields.get("quant_config") or fields

    def layer(override: QuantFields) -> Format:
        params = override.get("weight_quant_params") or override
        return integers.hqq(int(params.get("nbits", 4)), group_size(params.get("group_size", 64)) or 64)

    skipped = unconverted_modules(fields)
    if "weight_quant_params" in config or "nbits" in config:
        by_name: dict[str, QuantFields] = {}
        default_format, parts = layer(config), [config]
    else:
        by_name = {name: override for name, override in config.items() if isinstance(override, Mapping)}
        default_format, parts = None, [*by_name.values()]
    nested = any(override.get(key) for override in parts for key in ("scale_quant_params", "zero_quant_params"))
    reasons = ("hqq: quantised scales and zero points are counted in 16 bits; bytes are an estimate",) if nested else ()
    return QuantizationScheme(
        "hqq",
        default_format,
        LINEAR_LAYERS,
        (*skipped, *(SchemeRule(name, layer(override)) for name, override in by_name.items())),
        reasons,
    )


def read_quanto(fields: QuantFields) -> QuantizationScheme:
    """optimum-quanto: `weights` is int8, int4, int2 or float8."""
    weights = str(fields.get("weights", "int8"))
    form = floats.fp8_channel() if "float8" in weights else integers.quanto(int(weights.removeprefix("int")))
    return QuantizationScheme("quanto", form, LINEAR_LAYERS, unconverted_modules(fields))


def read_torchao(fields: QuantFields) -> QuantizationScheme:
    """torchao: quant_type is a name, or has a config class with its fields under `default`."""
    kind = fields.get("quant_type")
    kind = kind.get("default", kind) if isinstance(kind, Mapping) else kind
    name = str(kind.get("_type", kind) if isinstance(kind, Mapping) else kind).lower().replace("_", "")
    options = kind.get("_data", {}) if isinstance(kind, Mapping) else fields.get("quant_type_kwargs") or {}
    reasons: list[str] = []
    if "int4weightonly" in name:
        form = integers.torchao_int4(int(options.get("group_size", 128)))
    elif "float8" in name:
        per_row = "PerRow" in str(options.get("granularity", ""))
        form = floats.fp8_channel(bits=32) if per_row or "weightonly" in name else floats.fp8_tensor()
    elif "int8weightonly" in name or "int8dynamicactivationint8" in name:
        form = integers.TORCHAO_INT8
        per_row = "PerRow" in str(options.get("granularity", ""))
        if not per_row or options.get("group_size"):  # version 1 of this config, or scales by group
            reasons.append("torchao int8: the dtype of the scales is unknown; bytes are an estimate")
    else:
        return read_unknown(fields, f"torchao {name}")
    if fields.get("include_input_output_embeddings"):
        reasons.append(
            "torchao: the quantised embedding and output matrix are counted as unquantised; bytes are an estimate"
        )
    return QuantizationScheme("torchao", form, LINEAR_LAYERS, unconverted_modules(fields), tuple(reasons))


def read_bitsandbytes(fields: QuantFields) -> QuantizationScheme:
    """bitsandbytes: 8 bits with a scale for each row, or nf4 and fp4 with a scale for each 64 values."""
    skipped = fields.get("llm_int8_skip_modules")
    # A stated list replaces the default exception, the output matrix.
    applies_to = LINEAR_LAYERS if skipped is None else LINEAR_LAYERS._replace(output_matrix=True)
    if fields.get("load_in_8bit") or fields.get("_load_in_8bit"):
        return QuantizationScheme("bitsandbytes", integers.INT8, applies_to, unconverted_modules(fields))
    double = bool(fields.get("bnb_4bit_use_double_quant"))
    form = integers.bnb4(str(fields.get("bnb_4bit_quant_type", "fp4")), double=double)
    return QuantizationScheme("bitsandbytes", form, applies_to, unconverted_modules(fields))


# -- floats ------------------------------------------------------------------------------------------------------------


def read_fp8(fields: QuantFields) -> QuantizationScheme:
    """8-bit floats with a scale for each tile of weight_block_size (DeepSeek-V3), or one scale for each matrix.

    `scale_fmt` ue8m0 with `expert_dtype` fp4 is DeepSeek-V4: scales are 8-bit exponents, experts have 4 bits.
    """
    block, static = fields.get("weight_block_size"), fields.get("activation_scheme") == "static"
    bits = 8 if fields.get("scale_fmt") == "ue8m0" and fields.get("expert_dtype") == "fp4" else 32
    form = floats.fp8_block(int(block[0]), static=static, bits=bits) if block else floats.fp8_tensor(static=static)
    rules = [SchemeRule("experts", floats.MXFP4)] if fields.get("expert_dtype") == "fp4" else []
    rules.append(SchemeRule("indexer.weights_proj"))  # not quantised (DeepSeek-V3.2)
    rules += [SchemeRule("mtp.eh_proj"), SchemeRule("mtp.shared_head")]  # DeepSeek-V3 does not quantise them
    modules = fields.get("modules_to_convert")
    reasons = (
        ("fp8: modules_to_convert includes other modules than linear layers; bytes are an estimate",) if modules else ()
    )
    return QuantizationScheme("fp8", form, LINEAR_LAYERS, (*unconverted_modules(fields), *rules), reasons)


def read_mxfp4(fields: QuantFields) -> QuantizationScheme:
    """MXFP4 (gpt-oss): the matrices of experts, with an 8-bit exponent for each 32 inputs."""
    return QuantizationScheme("mxfp4", floats.MXFP4, ONLY_EXPERTS, unconverted_modules(fields))


def read_fbgemm_fp8(fields: QuantFields) -> QuantizationScheme:
    """FBGEMM (Llama 3.1 405B): a float32 scale for each output."""
    return QuantizationScheme("fbgemm-fp8", floats.FBGEMM, LINEAR_LAYERS, unconverted_modules(fields))


def read_eetq(fields: QuantFields) -> QuantizationScheme:
    """EETQ: 8 bits, a 16-bit scale for each output."""
    return QuantizationScheme("eetq", integers.EETQ, LINEAR_LAYERS, unconverted_modules(fields))


def fixed_format_reader(form: Format, *reasons: str) -> Callable[[QuantFields], QuantizationScheme]:
    """A reader for a method without fields, which always has this format."""
    return lambda fields: QuantizationScheme(
        form.name, form._replace(applies_to=LAYER_MATRICES), LINEAR_LAYERS, unconverted_modules(fields), reasons
    )


NVFP4_ESTIMATE_REASON = (
    "nvfp4: transformers does not save this format and holds the scales twice at run time; bytes are an estimate"
)


def read_bitnet(fields: QuantFields) -> QuantizationScheme:
    """BitNet: packed 2-bit values in files of the `offline` mode, 16 bits in files of the `online` mode."""
    online = fields.get("linear_class") == "autobitlinear" and fields.get("quantization_mode") == "online"
    return QuantizationScheme("bitnet", None if online else integers.BITNET, LINEAR_LAYERS, unconverted_modules(fields))


def read_metal(fields: QuantFields) -> QuantizationScheme:
    """Kernels for Metal: the layout of MLX, for linear layers."""
    form = integers.mlx(int(fields.get("bits", 4)), int(fields.get("group_size", 64)))
    return QuantizationScheme("metal", form, LINEAR_LAYERS, unconverted_modules(fields))


def _readers(
    reader: Callable[[QuantFields], QuantizationScheme], names: Iterable[str]
) -> dict[str, Callable[[QuantFields], QuantizationScheme]]:
    return dict.fromkeys(names, reader)


METHODS: dict[str, Callable[[QuantFields], QuantizationScheme]] = {
    **_readers(read_gptq, ("gptq", "gptq-marlin")),
    **_readers(read_awq, ("awq", "awq-marlin", "gemm", "gemv")),
    **_readers(read_auto_round, ("auto-round", "intel/auto-round", "autoround")),
    "marlin": lambda fields: read_gptq({**fields, "is_marlin_format": True}),
    "mlx": read_mlx,
    "hqq": read_hqq,
    "quanto": read_quanto,
    "torchao": read_torchao,
    "bitsandbytes": read_bitsandbytes,
    "fp8": read_fp8,
    "mxfp4": read_mxfp4,
    "mxfp8": fixed_format_reader(floats.MXFP8),
    "nvfp4": fixed_format_reader(floats.nvfp4(), NVFP4_ESTIMATE_REASON),
    "fbgemm-fp8": read_fbgemm_fp8,
    "eetq": read_eetq,
    "bitnet": read_bitnet,
    "metal": read_metal,
    "quark": read_quark,
    "aqlm": estimates.read_aqlm,
    "vptq": estimates.read_vptq,
    "spqr": estimates.read_spqr,
    "higgs": estimates.read_higgs,
    **_readers(estimates.read_float4, ("fp-quant", "fouroversix")),
    **_readers(estimates.read_bits_and_groups, ("sinq", "gemma")),
    **_readers(estimates.read_exl, ("exl2", "exl3")),
    "gguf": estimates.read_gguf,
    **_readers(read_compressed_tensors, ("compressed-tensors", "sparseml")),
    **_readers(read_modelopt, ("modelopt", "modelopt-fp4", "modelopt-fp8", "modelopt-mixed")),
}
