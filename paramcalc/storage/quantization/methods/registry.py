"""What each quantization method's config means: one reader for each `quant_method`, from its fields to a Scheme."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from paramcalc.storage.formats import floats, integers
from paramcalc.storage.formats.format import EXPERTS, LAYERS, MLX, Format
from paramcalc.storage.quantization.methods import estimates
from paramcalc.storage.quantization.methods.common import LINEARS, Stated, left_out, unknown, whole
from paramcalc.storage.quantization.methods.compressed_tensors import compressed_tensors, modelopt
from paramcalc.storage.quantization.methods.gptq_awq import auto_round, awq, gptq
from paramcalc.storage.quantization.methods.quark import quark
from paramcalc.storage.quantization.placement import Rule, Scheme


def read(stated: Stated) -> Scheme:
    """The scheme of a quantization_config, by its `quant_method`; MLX's has none."""
    method = str(stated.get("quant_method") or _unnamed(stated)).lower().replace("_", "-")
    reader = METHODS.get(method)
    if reader is None:
        return unknown(stated, method)
    return reader(stated)


def _unnamed(stated: Stated) -> str:
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


def mlx(stated: Stated) -> Scheme:
    """MLX: bits and group_size for all, and under the names of modules others, or false."""

    def layer(own: Stated) -> Format:
        mode = str(own.get("mode", stated.get("mode", "affine")))
        if mode == "affine":
            return integers.mlx(int(own.get("bits", 4)), int(own.get("group_size", 64)))
        single = floats.nvfp4()
        modes = {
            "mxfp4": floats.MXFP4,
            "mxfp8": floats.MXFP8,
            "nvfp4": single._replace(extras=single.extras[:1]),
        }
        return modes[mode]._replace(reach=MLX)

    usual = {key: stated[key] for key in ("bits", "group_size", "mode") if key in stated}
    rules = [
        Rule(
            name, layer(usual | dict(own)) if isinstance(own, Mapping) else (layer(usual) if own else None), exact=True
        )
        for name, own in stated.items()
        if isinstance(own, Mapping | bool) and ("." in name or name in ("lm_head", "embed_tokens"))
    ]
    return Scheme("mlx", layer(usual), MLX, tuple(rules))


def hqq(stated: Stated) -> Scheme:
    """HQQ: one quant_config for all layers, or one for each name of a projection."""
    config = stated.get("quant_config") or stated

    def layer(own: Stated) -> Format:
        params = own.get("weight_quant_params") or own
        return integers.hqq(int(params.get("nbits", 4)), whole(params.get("group_size", 64)) or 64)

    skipped = left_out(stated)
    if "weight_quant_params" in config or "nbits" in config:
        named: dict[str, Stated] = {}
        usual, parts = layer(config), [config]
    else:
        named = {name: own for name, own in config.items() if isinstance(own, Mapping)}
        usual, parts = None, [*named.values()]
    nested = any(own.get(key) for own in parts for key in ("scale_quant_params", "zero_quant_params"))
    doubts = (
        ("hqq: scales and zeros that are quantised themselves are counted in 16 bits; an estimate",) if nested else ()
    )
    return Scheme("hqq", usual, LINEARS, (*skipped, *(Rule(name, layer(own)) for name, own in named.items())), doubts)


def quanto(stated: Stated) -> Scheme:
    """Quanto: `weights` is int8, int4, int2 or float8."""
    weights = str(stated.get("weights", "int8"))
    form = floats.fp8_channel() if "float8" in weights else integers.quanto(int(weights.removeprefix("int")))
    return Scheme("quanto", form, LINEARS, left_out(stated))


def torchao(stated: Stated) -> Scheme:
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
        return unknown(stated, f"torchao {name}")
    if stated.get("include_input_output_embeddings"):
        doubts.append("torchao: embedding and output matrix are converted too, and not counted so; an estimate")
    return Scheme("torchao", form, LINEARS, left_out(stated), tuple(doubts))


def bitsandbytes(stated: Stated) -> Scheme:
    """bitsandbytes: 8 bits with a scale a row, or nf4 and fp4 with a scale for each 64 values."""
    skipped = stated.get("llm_int8_skip_modules")
    reach = (
        LINEARS if skipped is None else LINEARS._replace(output=True)
    )  # a list of one's own replaces the usual exception
    if stated.get("load_in_8bit") or stated.get("_load_in_8bit"):
        return Scheme("bitsandbytes", integers.INT8, reach, left_out(stated))
    double = bool(stated.get("bnb_4bit_use_double_quant"))
    form = integers.bnb4(str(stated.get("bnb_4bit_quant_type", "fp4")), double=double)
    return Scheme("bitsandbytes", form, reach, left_out(stated))


# -- floats ------------------------------------------------------------------------------------------------------------


def fp8(stated: Stated) -> Scheme:
    """8-bit floats in squares of weight_block_size (DeepSeek-V3), or with one scale for each matrix.

    `scale_fmt` ue8m0 with `expert_dtype` fp4 is DeepSeek-V4's: exponents for scales, experts in 4 bits.
    """
    block, static = stated.get("weight_block_size"), stated.get("activation_scheme") == "static"
    bits = 8 if stated.get("scale_fmt") == "ue8m0" and stated.get("expert_dtype") == "fp4" else 32
    form = floats.fp8_block(int(block[0]), static=static, bits=bits) if block else floats.fp8_tensor(static=static)
    own = [Rule("experts", floats.MXFP4)] if stated.get("expert_dtype") == "fp4" else []
    own.append(Rule("indexer.weights_proj"))  # kept in a wider dtype (DeepSeek-V3.2)
    own += [Rule("mtp.eh_proj"), Rule("mtp.shared_head")]  # no part of what DeepSeek-V3 quantises
    more = stated.get("modules_to_convert")
    doubts = ("fp8: modules_to_convert names more than linear layers; bytes are an estimate",) if more else ()
    return Scheme("fp8", form, LINEARS, (*left_out(stated), *own), doubts)


def mxfp4(stated: Stated) -> Scheme:
    """gpt-oss: the experts' matrices, each 32 inputs with an exponent."""
    return Scheme("mxfp4", floats.MXFP4, EXPERTS, left_out(stated))


def fbgemm_fp8(stated: Stated) -> Scheme:
    """FBGEMM (Llama 3.1 405B): a float32 scale for each output."""
    return Scheme("fbgemm-fp8", floats.FBGEMM, LINEARS, left_out(stated))


def eetq(stated: Stated) -> Scheme:
    """EETQ: 8 bits, a 16-bit scale for each output."""
    return Scheme("eetq", integers.EETQ, LINEARS, left_out(stated))


def on_the_fly(form: Format, *doubts: str) -> Callable[[Stated], Scheme]:
    """A method without fields of its own."""
    return lambda stated: Scheme(form.name, form._replace(reach=LAYERS), LINEARS, left_out(stated), doubts)


UNWRITTEN = "nvfp4: transformers writes no such files, and holds scales twice while it computes; bytes are an estimate"


def bitnet(stated: Stated) -> Scheme:
    """BitNet: two bits, packed when the file was written (`offline`) and in 16 bits before."""
    online = stated.get("linear_class") == "autobitlinear" and stated.get("quantization_mode") == "online"
    return Scheme("bitnet", None if online else integers.BITNET, LINEARS, left_out(stated))


def metal(stated: Stated) -> Scheme:
    """Metal's kernels: MLX's layout, for linear layers."""
    form = integers.mlx(int(stated.get("bits", 4)), int(stated.get("group_size", 64)))
    return Scheme("metal", form, LINEARS, left_out(stated))


def _all(reader: Callable[[Stated], Scheme], names: Iterable[str]) -> dict[str, Callable[[Stated], Scheme]]:
    return dict.fromkeys(names, reader)


METHODS: dict[str, Callable[[Stated], Scheme]] = {
    **_all(gptq, ("gptq", "gptq-marlin")),
    **_all(awq, ("awq", "awq-marlin", "gemm", "gemv")),
    **_all(auto_round, ("auto-round", "intel/auto-round", "autoround")),
    "marlin": lambda stated: gptq({**stated, "is_marlin_format": True}),
    "mlx": mlx,
    "hqq": hqq,
    "quanto": quanto,
    "torchao": torchao,
    "bitsandbytes": bitsandbytes,
    "fp8": fp8,
    "mxfp4": mxfp4,
    "mxfp8": on_the_fly(floats.MXFP8),
    "nvfp4": on_the_fly(floats.nvfp4(), UNWRITTEN),
    "fbgemm-fp8": fbgemm_fp8,
    "eetq": eetq,
    "bitnet": bitnet,
    "metal": metal,
    "quark": quark,
    "aqlm": estimates.aqlm,
    "vptq": estimates.vptq,
    "spqr": estimates.spqr,
    "higgs": estimates.higgs,
    **_all(estimates.float4, ("fp-quant", "fouroversix")),
    **_all(estimates.by_bits, ("sinq", "gemma")),
    **_all(estimates.exl, ("exl2", "exl3")),
    "gguf": estimates.gguf,
    **_all(compressed_tensors, ("compressed-tensors", "sparseml")),
    **_all(modelopt, ("modelopt", "modelopt-fp4", "modelopt-fp8", "modelopt-mixed")),
}
