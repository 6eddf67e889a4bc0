"""What each quantization method's config means: one reader for each `quant_method`, from its fields to a Scheme."""

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


def read_method(stated: QuantFields) -> QuantizationScheme:
    """The scheme of a quantization_config, by its `quant_method`; MLX's has none."""
    method = str(stated.get("quant_method") or _unnamed(stated)).lower().replace("_", "-")
    reader = METHODS.get(method)
    if reader is None:
        return read_unknown(stated, method)
    return reader(stated)


def _unnamed(stated: QuantFields) -> str:
    """The method of a config that does not say: each library has fields of its own."""
    for method, keys in (
        ("modelopt", ("quantization", "quant_algo")),
        ("bitsandbytes", ("load_in_4bit", "load_in_8bit")),
        ("compressed-tensors", ("config_groups",)),
        ("gptq", ("desc_act", "damp_percent", "true_sequential")),
        ("awq", ("zero_point", "w_bit", "q_group_size")),
        ("mlx", ("bits", "group_size")),
    ):
        if any(key in stated for key in keys):
            return method
    return "unnamed"


# -- integers ----------------------------------------------------------------------------------------------------------


def read_mlx(stated: QuantFields) -> QuantizationScheme:
    """MLX: bits and group_size for all, and under the names of modules others, or false."""

    def layer(own: QuantFields) -> Format:
        mode = str(own.get("mode", stated.get("mode", "affine")))
        if mode == "affine":
            return integers.mlx(int(own.get("bits", 4)), int(own.get("group_size", 64)))
        single = floats.nvfp4()
        modes = {
            "mxfp4": floats.MXFP4,
            "mxfp8": floats.MXFP8,
            "nvfp4": single._replace(extras=single.extras[:1]),
        }
        return modes[mode]._replace(reach=MLX_MATRICES)

    usual = {key: stated[key] for key in ("bits", "group_size", "mode") if key in stated}
    rules = [
        SchemeRule(
            name, layer(usual | dict(own)) if isinstance(own, Mapping) else (layer(usual) if own else None), exact=True
        )
        for name, own in stated.items()
        if isinstance(own, Mapping | bool) and ("." in name or name in ("lm_head", "embed_tokens"))
    ]
    return QuantizationScheme("mlx", layer(usual), MLX_MATRICES, tuple(rules))


def read_hqq(stated: QuantFields) -> QuantizationScheme:
    """HQQ: one quant_config for all layers, or one for each name of a projection."""
    config = stated.get("quant_config") or stated

    def layer(own: QuantFields) -> Format:
        params = own.get("weight_quant_params") or own
        return integers.hqq(int(params.get("nbits", 4)), group_size(params.get("group_size", 64)) or 64)

    skipped = unconverted_modules(stated)
    if "weight_quant_params" in config or "nbits" in config:
        named: dict[str, QuantFields] = {}
        usual, parts = layer(config), [config]
    else:
        named = {name: own for name, own in config.items() if isinstance(own, Mapping)}
        usual, parts = None, [*named.values()]
    nested = any(own.get(key) for own in parts for key in ("scale_quant_params", "zero_quant_params"))
    doubts = (
        ("hqq: scales and zeros that are quantised themselves are counted in 16 bits; an estimate",) if nested else ()
    )
    return QuantizationScheme(
        "hqq", usual, LINEAR_LAYERS, (*skipped, *(SchemeRule(name, layer(own)) for name, own in named.items())), doubts
    )


def read_quanto(stated: QuantFields) -> QuantizationScheme:
    """Quanto: `weights` is int8, int4, int2 or float8."""
    weights = str(stated.get("weights", "int8"))
    form = floats.fp8_channel() if "float8" in weights else integers.quanto(int(weights.removeprefix("int")))
    return QuantizationScheme("quanto", form, LINEAR_LAYERS, unconverted_modules(stated))


def read_torchao(stated: QuantFields) -> QuantizationScheme:
    """torchao: quant_type is a word, or under `default` the class of a config with its fields."""
    kind = stated.get("quant_type")
    kind = kind.get("default", kind) if isinstance(kind, Mapping) else kind
    name = str(kind.get("_type", kind) if isinstance(kind, Mapping) else kind).lower().replace("_", "")
    fields = kind.get("_data", {}) if isinstance(kind, Mapping) else stated.get("quant_type_kwargs") or {}
    doubts: list[str] = []
    if "int4weightonly" in name:
        form = integers.torchao_int4(int(fields.get("group_size", 128)))
    elif "float8" in name:
        per_row = "PerRow" in str(fields.get("granularity", ""))
        form = floats.fp8_channel(bits=32) if per_row or "weightonly" in name else floats.fp8_tensor()
    elif "int8weightonly" in name or "int8dynamicactivationint8" in name:
        form = integers.TORCHAO_INT8
        per_row = "PerRow" in str(fields.get("granularity", ""))
        if not per_row or fields.get("group_size"):  # as torchao wrote it before version 2 of this config, or by group
            doubts.append("torchao int8: how wide the scales are is not known; bytes are an estimate")
    else:
        return read_unknown(stated, f"torchao {name}")
    if stated.get("include_input_output_embeddings"):
        doubts.append("torchao: embedding and output matrix are converted too, and not counted so; an estimate")
    return QuantizationScheme("torchao", form, LINEAR_LAYERS, unconverted_modules(stated), tuple(doubts))


def read_bitsandbytes(stated: QuantFields) -> QuantizationScheme:
    """bitsandbytes: 8 bits with a scale a row, or nf4 and fp4 with a scale for each 64 values."""
    skipped = stated.get("llm_int8_skip_modules")
    reach = (
        LINEAR_LAYERS if skipped is None else LINEAR_LAYERS._replace(output=True)
    )  # a list of one's own replaces the usual exception
    if stated.get("load_in_8bit") or stated.get("_load_in_8bit"):
        return QuantizationScheme("bitsandbytes", integers.INT8, reach, unconverted_modules(stated))
    double = bool(stated.get("bnb_4bit_use_double_quant"))
    form = integers.bnb4(str(stated.get("bnb_4bit_quant_type", "fp4")), double=double)
    return QuantizationScheme("bitsandbytes", form, reach, unconverted_modules(stated))


# -- floats ------------------------------------------------------------------------------------------------------------


def read_fp8(stated: QuantFields) -> QuantizationScheme:
    """8-bit floats in squares of weight_block_size (DeepSeek-V3), or with one scale for each matrix.

    `scale_fmt` ue8m0 with `expert_dtype` fp4 is DeepSeek-V4's: exponents for scales, experts in 4 bits.
    """
    block, static = stated.get("weight_block_size"), stated.get("activation_scheme") == "static"
    bits = 8 if stated.get("scale_fmt") == "ue8m0" and stated.get("expert_dtype") == "fp4" else 32
    form = floats.fp8_block(int(block[0]), static=static, bits=bits) if block else floats.fp8_tensor(static=static)
    own = [SchemeRule("experts", floats.MXFP4)] if stated.get("expert_dtype") == "fp4" else []
    own.append(SchemeRule("indexer.weights_proj"))  # kept in a wider dtype (DeepSeek-V3.2)
    own += [SchemeRule("mtp.eh_proj"), SchemeRule("mtp.shared_head")]  # no part of what DeepSeek-V3 quantises
    more = stated.get("modules_to_convert")
    doubts = ("fp8: modules_to_convert names more than linear layers; bytes are an estimate",) if more else ()
    return QuantizationScheme("fp8", form, LINEAR_LAYERS, (*unconverted_modules(stated), *own), doubts)


def read_mxfp4(stated: QuantFields) -> QuantizationScheme:
    """gpt-oss: the experts' matrices, each 32 inputs with an exponent."""
    return QuantizationScheme("mxfp4", floats.MXFP4, ONLY_EXPERTS, unconverted_modules(stated))


def read_fbgemm_fp8(stated: QuantFields) -> QuantizationScheme:
    """FBGEMM (Llama 3.1 405B): a float32 scale for each output."""
    return QuantizationScheme("fbgemm-fp8", floats.FBGEMM, LINEAR_LAYERS, unconverted_modules(stated))


def read_eetq(stated: QuantFields) -> QuantizationScheme:
    """EETQ: 8 bits, a 16-bit scale for each output."""
    return QuantizationScheme("eetq", integers.EETQ, LINEAR_LAYERS, unconverted_modules(stated))


def on_the_fly(form: Format, *doubts: str) -> Callable[[QuantFields], QuantizationScheme]:
    """A method without fields of its own."""
    return lambda stated: QuantizationScheme(
        form.name, form._replace(reach=LAYER_MATRICES), LINEAR_LAYERS, unconverted_modules(stated), doubts
    )


NVFP4_DOUBT = (
    "nvfp4: transformers writes no such files, and holds scales twice while it computes; bytes are an estimate"
)


def read_bitnet(stated: QuantFields) -> QuantizationScheme:
    """BitNet: two bits, packed when the file was written (`offline`) and in 16 bits before."""
    online = stated.get("linear_class") == "autobitlinear" and stated.get("quantization_mode") == "online"
    return QuantizationScheme("bitnet", None if online else integers.BITNET, LINEAR_LAYERS, unconverted_modules(stated))


def read_metal(stated: QuantFields) -> QuantizationScheme:
    """Metal's kernels: MLX's layout, for linear layers."""
    form = integers.mlx(int(stated.get("bits", 4)), int(stated.get("group_size", 64)))
    return QuantizationScheme("metal", form, LINEAR_LAYERS, unconverted_modules(stated))


def _all(
    reader: Callable[[QuantFields], QuantizationScheme], names: Iterable[str]
) -> dict[str, Callable[[QuantFields], QuantizationScheme]]:
    return dict.fromkeys(names, reader)


METHODS: dict[str, Callable[[QuantFields], QuantizationScheme]] = {
    **_all(read_gptq, ("gptq", "gptq-marlin")),
    **_all(read_awq, ("awq", "awq-marlin", "gemm", "gemv")),
    **_all(read_auto_round, ("auto-round", "intel/auto-round", "autoround")),
    "marlin": lambda stated: read_gptq({**stated, "is_marlin_format": True}),
    "mlx": read_mlx,
    "hqq": read_hqq,
    "quanto": read_quanto,
    "torchao": read_torchao,
    "bitsandbytes": read_bitsandbytes,
    "fp8": read_fp8,
    "mxfp4": read_mxfp4,
    "mxfp8": on_the_fly(floats.MXFP8),
    "nvfp4": on_the_fly(floats.nvfp4(), NVFP4_DOUBT),
    "fbgemm-fp8": read_fbgemm_fp8,
    "eetq": read_eetq,
    "bitnet": read_bitnet,
    "metal": read_metal,
    "quark": read_quark,
    "aqlm": estimates.read_aqlm,
    "vptq": estimates.read_vptq,
    "spqr": estimates.read_spqr,
    "higgs": estimates.read_higgs,
    **_all(estimates.read_float4, ("fp-quant", "fouroversix")),
    **_all(estimates.read_by_bits, ("sinq", "gemma")),
    **_all(estimates.read_exl, ("exl2", "exl3")),
    "gguf": estimates.read_gguf,
    **_all(read_compressed_tensors, ("compressed-tensors", "sparseml")),
    **_all(read_modelopt, ("modelopt", "modelopt-fp4", "modelopt-fp8", "modelopt-mixed")),
}
