"""The formats that have names: `gptq-int4-g128`, `nf4-dq`, `mxfp4`. Families of names are patterns with a builder."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from paramcalc.dtypes import ALIASES, PLAIN, Dtype
from paramcalc.errors import ParamcalcError, nearest
from paramcalc.footprint.formats import EXPERTS, MLX, WITH_HEAD, Extra, Format, Reach, plain

BITS = {1: (8, 1), 2: (4, 1), 3: (8, 3), 4: (2, 1), 5: (8, 5), 6: (4, 3), 7: (8, 7), 8: (1, 1), 16: (1, 2)}


def packed(bits: int) -> Dtype:
    """Values of so many bits, packed without gaps."""
    return Dtype(f"int{bits}", *BITS[bits])


def group(size: int | None) -> str:
    """The ending of a name for a group of so many inputs, or of a whole row."""
    return f"-g{size or 'none'}"


# -- GPTQ, AWQ, and what else packs integers ---------------------------------------------------------------------


def gptq(bits: int = 4, size: int | None = 128, *, zero_bias: bool = False) -> Format:
    """GPTQ (2210.17323) as AutoGPTQ and GPTQModel store it.

    qweight (d_in bits / 32, d_out) int32, scales (groups, d_out) fp16, qzeros (groups, d_out bits / 32) int32, g_idx
    (d_in) int32. AutoGPTQ wrote a bias of zeros for each matrix without one (`zero_bias`).
    """
    extras = [Extra("scales", "group", 16, size or 0), Extra("qzeros", "group", bits, size or 0, word=32)]
    extras.append(Extra("g_idx", "input", 32))
    if zero_bias:
        extras.append(Extra("bias", "output", 16))
    return Format(
        f"gptq-int{bits}{group(size)}",
        packed(bits),
        tuple(extras),
        rows=32,
        columns=32,
        summary=f"{bits} bits; fp16 scale and {bits}-bit zero for {_each(size)}; an int32 index for each input",
        source="GPTQModel: nn_modules/qlinear, 2210.17323",
    )


def awq(bits: int = 4, size: int | None = 128) -> Format:
    """AWQ (2306.00978) as AutoAWQ's GEMM stores it: qweight (d_in, d_out / 8) int32, qzeros and scales by group."""
    return Format(
        f"awq-int{bits}{group(size)}",
        packed(bits),
        (Extra("scales", "group", 16, size or 0), Extra("qzeros", "group", bits, size or 0, word=32)),
        rows=32 // bits,
        columns=size or 1,
        summary=f"{bits} bits; fp16 scale and {bits}-bit zero for {_each(size)}",
        source="AutoAWQ: modules/linear/gemm.py, 2306.00978",
    )


def integers(
    bits: int = 4, size: int | None = 128, *, zeros: bool = False, index: bool = False, scale_bits: int = 16
) -> Format:
    """Compressed-tensors' pack-quantized: weight_packed (d_out, d_in bits / 32) int32, weight_scale by group.

    `zeros`: asymmetric, packed zero points beside the scales; `index`: an int32 group for each input. The file also
    has weight_shape, two int64.
    """
    extras = [Extra("weight_scale", "group", scale_bits, size or 0)]
    extras += [Extra("weight_zero_point", "group", bits, size or 0, word=32)] if zeros else []
    extras += [Extra("weight_g_idx", "input", 32)] if index else []
    return Format(
        f"w{bits}a16{group(size)}" + ("-asym" if zeros else ""),
        packed(bits),
        tuple(extras),
        records=(Extra("weight_shape", "tensor", 128),),
        word=32,
        summary=f"{bits} bits; 16-bit scale{' and zero' if zeros else ''} for {_each(size)}",
        source="compressed-tensors: pack-quantized",
    )


def mlx(bits: int = 4, size: int = 64) -> Format:
    """MLX's affine quantisation: weight (d_out, d_in bits / 32) uint32, scales and biases by group, 16 bits each."""
    return Format(
        f"mlx-int{bits}-g{size}",
        packed(bits),
        (Extra("scales", "group", 16, size), Extra("biases", "group", 16, size)),
        word=32,
        reach=MLX,
        columns=size,
        summary=f"{bits} bits; 16-bit scale and bias for each {size} inputs; embeddings, head and routers too",
        source="mlx.core.quantize",
    )


def hqq(bits: int = 4, size: int = 64) -> Format:
    """HQQ: W_q packed in bytes, 3 bits ten to an int32; 16-bit scale and zero for each group."""
    return Format(
        f"hqq-int{bits}-g{size}",
        Dtype("int3", 10, 4) if bits == 3 else packed(bits),
        (Extra("scale", "block", 16, size), Extra("zero", "block", 16, size)),
        summary=f"{bits} bits; 16-bit scale and zero for each {size} values",
        source="hqq: core/quantize.py",
    )


def torchao_int4(size: int = 128) -> Format:
    """torchao's int4 weight only: values in tiles, scale and zero in bfloat16 for each group."""
    return Format(
        f"torchao-int4-g{size}",
        packed(4),
        (Extra("scale_and_zero", "group", 32, size),),
        columns=size,
        summary=f"4 bits; bf16 scale and zero for each {size} inputs",
        source="torchao: Int4WeightOnlyConfig",
    )


def quanto(bits: int = 4, size: int | None = 128) -> Format:
    """Quanto: qint2 and qint4 with 16-bit scale and shift for each group, 8 bits with one scale for each output."""
    narrow = bits < 8
    extras = (Extra("scale", "group", 16, size or 0), Extra("shift", "group", 16, size or 0))
    return Format(
        f"quanto-int{bits}",
        packed(bits),
        extras if narrow else (Extra("scale", "output", 16),),
        summary=f"{bits} bits; " + (f"16-bit scale and shift for {_each(size)}" if narrow else "16-bit scale a row"),
        source="optimum-quanto: tensor/weights",
    )


def _each(size: int | None) -> str:
    return f"each {size} inputs" if size else "each row"


# -- bitsandbytes --------------------------------------------------------------------------------------------------


ABSMAX = "float32 absmax for each 64 values"


def bnb4(kind: str = "nf4", *, double: bool = False, text: int = 0) -> Format:
    """4 bits of bitsandbytes (QLoRA, 2305.14314): a float32 absmax for each 64 values.

    `double`: absmax in 8 bits, with a float32 for each 256 of them. Files keep the code tables, and a text of `text`
    bytes about each matrix.
    """
    absmax = (Extra("absmax", "block", 32, 64),)
    nested = (Extra("absmax", "block", 8, 64), Extra("nested_absmax", "block", 32, 64 * 256))
    records = [Extra("quant_map", "tensor", 16 * 32), Extra("quant_state", "tensor", 8 * text)]
    records += [Extra("nested_quant_map", "tensor", 256 * 32)] if double else []
    return Format(
        f"{kind}-dq" if double else kind,
        Dtype(kind, 2, 1),
        nested if double else absmax,
        records=tuple(records),
        summary="4 bits; " + ("8-bit absmax for 64 values, float32 for 256 of those" if double else ABSMAX),
        source="bitsandbytes: Params4bit, 2305.14314",
    )


INT8 = Format(
    "int8",
    Dtype("int8", 1, 1),
    (Extra("SCB", "output", 32),),
    records=(Extra("weight_format", "tensor", 8),),
    summary="LLM.int8: 8 bits; float32 scale for each output",
    source="bitsandbytes: Int8Params, 2208.07339",
)

# -- 8-bit and 4-bit floats ------------------------------------------------------------------------------------------


def fp8(name: str, scale: Extra, *, static: bool = False, rule: str = "", source: str = "") -> Format:
    """8-bit floats (e4m3) with scales; `static`: activations have a scale too, a scalar for each matrix."""
    return Format(
        name,
        Dtype("float8_e4m3fn", 1, 1),
        (scale, Extra("input_scale", "tensor", 32)) if static else (scale,),
        summary=f"8 bits; {rule}",
        source=source,
    )


def fp8_tensor(*, static: bool = False) -> Format:
    """One float32 scale for each matrix."""
    rule, source = "float32 scale for each matrix", "vLLM: fp8; ModelOpt: FP8"
    return fp8("fp8", Extra("weight_scale", "tensor", 32), static=static, rule=rule, source=source)


def fp8_channel(*, bits: int = 16, static: bool = False) -> Format:
    """One scale for each output, in the model's dtype."""
    rule, source = "16-bit scale for each output", "compressed-tensors: FP8_DYNAMIC"
    return fp8("fp8-channel", Extra("weight_scale", "output", bits), static=static, rule=rule, source=source)


def fp8_block(size: int = 128, *, static: bool = False, bits: int = 32) -> Format:
    """One scale for each square of `size` by `size` (DeepSeek-V3, 2412.19437, section 3.3.2)."""
    rule, source = f"float32 scale for each {size} x {size}", "DeepSeek-V3: README_WEIGHTS.md"
    return fp8(
        f"fp8-block{size}", Extra("weight_scale_inv", "tile", bits, size), static=static, rule=rule, source=source
    )


FBGEMM = fp8(
    "fbgemm-fp8",
    Extra("weight_scale", "output", 32),
    rule="float32 scale for each output",
    source="transformers: integrations/fbgemm_fp8.py",
)
W8A8 = Format(
    "w8a8-int8",
    Dtype("int8", 1, 1),
    (Extra("weight_scale", "output", 16),),
    summary="8 bits; 16-bit scale for each output",
    source="compressed-tensors: int-quantized",
)
EETQ = Format(
    "eetq",
    Dtype("int8", 1, 1),
    (Extra("weight_scales", "output", 16),),
    summary="8 bits; 16-bit scale for each output",
    source="transformers: integrations/eetq.py",
)
MXFP4 = Format(
    "mxfp4",
    Dtype("e2m1", 2, 1),
    (Extra("scales", "group", 8, 32),),
    reach=EXPERTS,
    columns=32,
    summary="4 bits; 8-bit exponent for each 32 inputs; experts only, or all layers where there are none",
    source="OCP Microscaling v1.0; gpt-oss",
)
MXFP8 = Format(
    "mxfp8",
    Dtype("float8_e4m3fn", 1, 1),
    (Extra("weight_scale", "group", 8, 32),),
    columns=32,
    summary="8 bits; 8-bit exponent for each 32 inputs",
    source="OCP Microscaling v1.0",
)


def nvfp4(*, static: bool = False) -> Format:
    """NVIDIA's 4-bit floats: an 8-bit float for each 16 inputs, one float32 for the matrix, one for static inputs."""
    extras = (Extra("weight_scale", "group", 8, 16), Extra("weight_scale_2", "tensor", 32))
    return Format(
        "nvfp4",
        Dtype("e2m1", 2, 1),
        (*extras, Extra("input_scale", "tensor", 32)) if static else extras,
        columns=16,
        summary="4 bits; 8-bit float for each 16 inputs; float32 for the matrix",
        source="ModelOpt: NVFP4",
    )


BITNET = Format(
    "bitnet",
    Dtype("int2", 4, 1),
    (Extra("weight_scale", "tensor", 16),),
    rows=4,
    summary="2 bits; one 16-bit scale for each matrix",
    source="transformers: integrations/bitnet.py, 2402.17764",
)

# -- average bits ------------------------------------------------------------------------------------------------------


def exl2(bits: str = "4.0", *, head: bool = False) -> Format:
    """ExLlamaV2: layers mixed to an average of so many bits, scales included; the head (6 or 8) apart."""
    each = Fraction(bits)
    if not 1 <= each <= 16:
        raise ParamcalcError(f"{bits} bits per weight: not between 1 and 16", "write it like exl2-4.65bpw")
    return Format(
        f"exl2-{bits}bpw",
        Dtype("exl2", 8 * each.denominator, each.numerator),
        reach=Reach(frozenset({"head"})) if head else WITH_HEAD,
        exact=False,
        summary=f"{bits} bits on average, scales included; the head in 6; an estimate",
        source="exllamav2: doc/convert.md",
    )


# -- names -------------------------------------------------------------------------------------------------------------

FIXED = {
    f.name: f
    for f in (
        *(plain(kind) for kind in PLAIN if kind.name not in ("int8", "int4")),
        INT8,
        bnb4("nf4"),
        bnb4("nf4", double=True),
        bnb4("fp4"),
        bnb4("fp4", double=True),
        fp8_tensor(),
        fp8_channel(),
        fp8_block(),
        FBGEMM,
        W8A8,
        EETQ,
        MXFP4,
        MXFP8,
        nvfp4(),
        BITNET,
    )
}
# int4 alone is no format: packed values need scales. The most common ones are meant.
NICKNAMES = {
    "int4": "w4a16-g128",
    "llm.int8": "int8",
    "bnb-int8": "int8",
    "bnb-nf4": "nf4",
    "bnb-nf4-dq": "nf4-dq",
    "bnb-fp4": "fp4",
    "w8a8": "w8a8-int8",
    "fp8-tensor": "fp8",
    "fp8-dynamic": "fp8-channel",
    "fp8-block": "fp8-block128",
    "gptq": "gptq-int4-g128",
    "awq": "awq-int4-g128",
    "hqq": "hqq-int4-g64",
    "mlx": "mlx-int4-g64",
    "mlx-4bit": "mlx-int4-g64",
    "mlx-8bit": "mlx-int8-g64",
    "quanto": "quanto-int4",
    "torchao-int4": "torchao-int4-g128",
}
_GROUP = r"(?:-g(\d+|none))?"
PATTERNS: dict[str, Callable[[re.Match[str]], Format]] = {
    rf"gptq-int([2348]){_GROUP}": lambda m: gptq(int(m[1]), _size(m[2], 128)),
    rf"awq-int([48]){_GROUP}": lambda m: awq(int(m[1]), _size(m[2], 128)),
    rf"w([2-8])a16{_GROUP}(-asym)?": lambda m: integers(int(m[1]), _size(m[2], 128), zeros=bool(m[3])),
    rf"mlx-int([2-68]){_GROUP}": lambda m: mlx(int(m[1]), _size(m[2], 64) or 64),
    rf"hqq-int([12348]){_GROUP}": lambda m: hqq(int(m[1]), _size(m[2], 64) or 64),
    rf"torchao-int4{_GROUP}": lambda m: torchao_int4(_size(m[1], 128) or 128),
    r"quanto-int([248])": lambda m: quanto(int(m[1])),
    r"(?:exl2-)?(\d+(?:\.\d+)?)(?:bpw)": lambda m: exl2(m[1]),
    r"exl2-(\d+(?:\.\d+)?)": lambda m: exl2(m[1]),
}
EXAMPLES = (
    "gptq-int4-g128",
    "gptq-int8-g128",
    "awq-int4-g128",
    "w4a16-g128",
    "w8a16-gnone",
    "mlx-int4-g64",
    "mlx-int8-g64",
    "hqq-int4-g64",
    "torchao-int4-g128",
    "quanto-int4",
    "quanto-int8",
    "exl2-4.65bpw",
)


def _size(text: str | None, default: int) -> int | None:
    """The group that a name states: `g128`, `gnone` for a whole row, or the usual one."""
    if text is None:
        return default
    return None if text == "none" or int(text) == 0 else int(text)


def format_named(name: str) -> Format:
    """The format of that name, in any case. Raises ParamcalcError with the choices."""
    found = known(name)
    if found is None:
        shown = ", ".join((*FIXED, *EXAMPLES))
        hint = nearest(name.lower(), [*FIXED, *EXAMPLES, *NICKNAMES, *ALIASES], fallback=f"known: {shown}")
        raise ParamcalcError(f"unknown format {name!r}", hint)
    return found


def known(name: str) -> Format | None:
    """The format of that name, if there is one."""
    key = name.lower().strip().removeprefix("torch.").replace("_", "-")
    key = NICKNAMES.get(key, key)
    plain_key = key.replace("-", "_")
    plain_key = "fp8" if plain_key == "fp8" else ALIASES.get(plain_key, plain_key)
    for candidate in (key, plain_key):
        if candidate in FIXED:
            return FIXED[candidate]
    for pattern, build in PATTERNS.items():
        if match := re.fullmatch(pattern, key):
            return build(match)
    return None


def listed() -> list[Format]:
    """Every format with a fixed name, and examples of those whose names state sizes."""
    return [*FIXED.values(), *map(format_named, EXAMPLES)]
