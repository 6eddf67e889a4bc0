"""Integer formats: packed integers (GPTQ, AWQ and others), bitsandbytes, and mixed widths with an average (EXL2)."""

from __future__ import annotations

from fractions import Fraction

from paramcalc.base.dtypes import Dtype
from paramcalc.base.errors import ParamcalcError
from paramcalc.storage.formats.format import LAYERS_AND_HEAD, MLX_MATRICES, AppliesTo, Format, SideTensor

BITS = {1: (8, 1), 2: (4, 1), 3: (8, 3), 4: (2, 1), 5: (8, 5), 6: (4, 3), 7: (8, 7), 8: (1, 1), 16: (1, 2)}


def packed_dtype(bits: int) -> Dtype:
    """The dtype of values of `bits` bits, packed without gaps."""
    return Dtype(f"int{bits}", *BITS[bits])


def group_suffix(size: int | None) -> str:
    """The suffix of a format name for a group of `size` inputs, or for a whole row (None)."""
    return f"-g{size or 'none'}"


# -- GPTQ, AWQ and other packed integers -------------------------------------------------------------------------


def gptq(bits: int = 4, size: int | None = 128, *, index: bool = True, zero_bias: bool = False) -> Format:
    """GPTQ (arXiv:2210.17323) as AutoGPTQ and GPTQModel store it.

    qweight (d_in bits / 32, d_out) int32, scales (groups, d_out) fp16, qzeros (groups, d_out bits / 32) int32, g_idx
    (d_in) int32. AutoRound omits g_idx (`index` False). AutoGPTQ stored a bias of zeros for each matrix without a bias
    (`zero_bias`).
    """
    extras = [SideTensor("scales", "group", 16, size or 0), SideTensor("qzeros", "group", bits, size or 0, word=32)]
    extras += [SideTensor("g_idx", "input", 32)] if index else []
    if zero_bias:
        extras.append(SideTensor("bias", "output", 16))
    return Format(
        f"gptq-int{bits}{group_suffix(size)}" if index else f"autoround-int{bits}{group_suffix(size)}",
        packed_dtype(bits),
        tuple(extras),
        rows=32,
        columns=32,
        summary=f"{bits} bits; fp16 scale and {bits}-bit zero for {_each(size)}" + ("; g_idx" if index else ""),
        source="GPTQModel: nn_modules/qlinear, 2210.17323"
        if index
        else "AutoRound: packing_format auto_round:auto_gptq",
    )


def marlin(size: int | None = 128) -> Format:
    """Marlin (arXiv:2408.11743) as AutoGPTQ stored it.

    Symmetric: B (d_in / 16, 2 d_out) int32 and s (groups, d_out) fp16.
    """
    return Format(
        f"marlin-int4{group_suffix(size)}",
        packed_dtype(4),
        (SideTensor("s", "group", 16, size or 0),),
        summary=f"4 bits; fp16 scale for {_each(size)}",
        source="AutoGPTQ: qlinear_marlin.py, 2408.11743",
    )


def awq(bits: int = 4, size: int | None = 128) -> Format:
    """AWQ (arXiv:2306.00978) as AutoAWQ's GEMM kernel stores it.

    qweight (d_in, d_out bits / 32) int32, qzeros (groups, d_out bits / 32) int32, scales (groups, d_out) fp16.
    """
    return Format(
        f"awq-int{bits}{group_suffix(size)}",
        packed_dtype(bits),
        (SideTensor("scales", "group", 16, size or 0), SideTensor("qzeros", "group", bits, size or 0, word=32)),
        rows=32 // bits,
        columns=size or 1,
        summary=f"{bits} bits; fp16 scale and {bits}-bit zero for {_each(size)}",
        source="AutoAWQ: modules/linear/gemm.py, 2306.00978",
    )


def pack_quantized(
    bits: int = 4, size: int | None = 128, *, zeros: bool = False, index: bool = False, scale_bits: int = 16
) -> Format:
    """The pack-quantized layout of compressed-tensors.

    weight_packed (d_out, d_in bits / 32) int32, weight_scale (d_out, groups). `zeros` adds packed zero points
    (asymmetric quantisation), `index` an int32 group index for each input. The file also has weight_shape, two int64.
    """
    extras = [SideTensor("weight_scale", "group", scale_bits, size or 0)]
    extras += [SideTensor("weight_zero_point", "group", bits, size or 0, word=32)] if zeros else []
    extras += [SideTensor("weight_g_idx", "input", 32)] if index else []
    return Format(
        f"w{bits}a16{group_suffix(size)}" + ("-asym" if zeros else ""),
        packed_dtype(bits),
        tuple(extras),
        records=(SideTensor("weight_shape", "tensor", 128),),
        word=32,
        summary=f"{bits} bits; 16-bit scale{' and zero' if zeros else ''} for {_each(size)}",
        source="compressed-tensors: pack-quantized",
    )


def mlx(bits: int = 4, size: int = 64) -> Format:
    """Affine quantisation of MLX: weight (d_out, d_in bits / 32) uint32, 16-bit scales and biases (d_out, groups)."""
    return Format(
        f"mlx-int{bits}-g{size}",
        packed_dtype(bits),
        (SideTensor("scales", "group", 16, size), SideTensor("biases", "group", 16, size)),
        word=32,
        applies_to=MLX_MATRICES,
        columns=size,
        summary=f"{bits} bits; 16-bit scale and bias for each {size} inputs",
        source="mlx.core.quantize",
    )


def hqq(bits: int = 4, size: int = 64) -> Format:
    """HQQ: W_q packed into bytes, 16-bit scale and zero point for each group of `size` values.

    Values of 3 bits are packed ten to an int32.
    """
    return Format(
        f"hqq-int{bits}-g{size}",
        Dtype("int3", 10 * size, 4 * size) if bits == 3 else packed_dtype(bits),  # ten groups side by side
        (SideTensor("scale", "block", 16, size), SideTensor("zero", "block", 16, size)),
        summary=f"{bits} bits; 16-bit scale and zero for each {size} values",
        source="hqq: core/quantize.py",
    )


def torchao_int4(size: int = 128) -> Format:
    """torchao int4 weight-only: tiled values, scale and zero point in bfloat16 for each group."""
    return Format(
        f"torchao-int4-g{size}",
        packed_dtype(4),
        (SideTensor("scale_and_zero", "group", 32, size),),
        columns=size,
        summary=f"4 bits; bf16 scale and zero for each {size} inputs",
        source="torchao: Int4WeightOnlyConfig",
    )


TORCHAO_INT8 = Format(
    "torchao-int8",
    Dtype("int8", 1, 1),
    (SideTensor("weight_scale", "output", 32), SideTensor("weight_zero_point", "output", 8)),
    summary="8 bits; float32 scale and 8-bit zero for each output",
    source="torchao: Int8Tensor",
)


def quanto(bits: int = 4, size: int | None = 128) -> Format:
    """optimum-quanto: qint2 and qint4 with a 16-bit scale and shift by group, qint8 with a scale for each output."""
    narrow = bits < 8
    extras = (SideTensor("scale", "group", 16, size or 0), SideTensor("shift", "group", 16, size or 0))
    return Format(
        f"quanto-int{bits}",
        packed_dtype(bits),
        extras if narrow else (SideTensor("scale", "output", 16),),
        summary=f"{bits} bits; " + (f"16-bit scale and shift for {_each(size)}" if narrow else "16-bit scale a row"),
        source="optimum-quanto: tensor/weights",
    )


def _each(size: int | None) -> str:
    return f"each {size} inputs" if size else "each row"


# -- bitsandbytes --------------------------------------------------------------------------------------------------


ABSMAX = "float32 absmax for each 64 values"


def bnb4(kind: str = "nf4", *, double: bool = False) -> Format:
    """4-bit formats of bitsandbytes, nf4 or fp4 (QLoRA, arXiv:2305.14314): a float32 absmax for each 64 values.

    `double` quantises the absmax to 8 bits, with a float32 for each 256 of them. Files also hold the code tables
    (records), and about a hundred bytes of text for each matrix, which are not counted.
    """
    absmax = (SideTensor("absmax", "block", 32, 64),)
    nested = (SideTensor("absmax", "block", 8, 64), SideTensor("nested_absmax", "block", 32, 64 * 256))
    records = [SideTensor("quant_map", "tensor", 16 * 32)]
    records += [SideTensor("nested_quant_map", "tensor", 256 * 32)] if double else []
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
    (SideTensor("SCB", "output", 32),),
    records=(SideTensor("weight_format", "tensor", 8),),
    summary="LLM.int8: 8 bits; float32 scale for each output",
    source="bitsandbytes: Int8Params, 2208.07339",
)

W8A8 = Format(
    "w8a8-int8",
    Dtype("int8", 1, 1),
    (SideTensor("weight_scale", "output", 16),),
    summary="8 bits; 16-bit scale for each output",
    source="compressed-tensors: int-quantized",
)
EETQ = Format(
    "eetq",
    Dtype("int8", 1, 1),
    (SideTensor("weight_scales", "output", 16),),
    summary="8 bits; 16-bit scale for each output",
    source="transformers: integrations/eetq.py",
)
BITNET = Format(
    "bitnet",
    Dtype("int2", 4, 1),
    (SideTensor("weight_scale", "tensor", 16),),
    rows=4,
    summary="2 bits; one 16-bit scale for each matrix",
    source="transformers: integrations/bitnet.py, 2402.17764",
)


# -- average bits ------------------------------------------------------------------------------------------------------


def exl2(bits: str = "4.0", *, head: bool = False) -> Format:
    """ExLlamaV2: layers of mixed widths with an average of `bits` bits for each weight, scales included.

    The head has a width of its own (6 or 8 bits). Raises ParamcalcError unless the average is from 1 to 16.
    """
    each = Fraction(bits)
    if not 1 <= each <= 16:
        raise ParamcalcError(f"{bits} bits per weight is not between 1 and 16", "give a width such as exl2-4.65bpw")
    return Format(
        f"exl2-{bits}bpw",
        Dtype("exl2", 8 * each.denominator, each.numerator),
        applies_to=AppliesTo(frozenset({"head"})) if head else LAYERS_AND_HEAD,
        exact=False,
        summary=f"{bits} bits on average, scales included; the head in 6",
        source="exllamav2: doc/convert.md",
    )
