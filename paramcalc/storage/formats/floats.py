"""Formats of 4-, 6- and 8-bit floats, with a scale for each matrix, output, tile or group of inputs."""

from __future__ import annotations

from paramcalc.base.dtypes import Dtype
from paramcalc.storage.formats.format import ONLY_EXPERTS, Format, SideTensor


def fp8(name: str, scale: SideTensor, *, static: bool = False, rule: str = "", source: str = "") -> Format:
    """8-bit floats (e4m3) with a scale for each unit of `scale`.

    `static`: activations are quantised with a fixed scale, stored as one float32 for each matrix.
    """
    return Format(
        name,
        Dtype("float8_e4m3fn", 1, 1),
        (scale, SideTensor("input_scale", "tensor", 32)) if static else (scale,),
        summary=f"8 bits; {rule}",
        source=source,
    )


def fp8_tensor(*, static: bool = False) -> Format:
    """One float32 scale for each matrix."""
    rule, source = "float32 scale for each matrix", "vLLM: fp8; ModelOpt: FP8"
    return fp8("fp8", SideTensor("weight_scale", "tensor", 32), static=static, rule=rule, source=source)


def fp8_channel(*, bits: int = 16, static: bool = False) -> Format:
    """One scale for each output, 16 bits by default: the dtype of the model."""
    rule, source = "16-bit scale for each output", "compressed-tensors: FP8_DYNAMIC"
    return fp8("fp8-channel", SideTensor("weight_scale", "output", bits), static=static, rule=rule, source=source)


def fp8_block(size: int = 128, *, static: bool = False, bits: int = 32) -> Format:
    """One scale for each tile of `size` by `size` values (DeepSeek-V3, arXiv:2412.19437, section 3.3.2)."""
    rule, source = f"float32 scale for each {size} x {size}", "DeepSeek-V3: README_WEIGHTS.md"
    return fp8(
        f"fp8-block{size}", SideTensor("weight_scale_inv", "tile", bits, size), static=static, rule=rule, source=source
    )


def fp8_group(size: int, *, static: bool = False) -> Format:
    """One 16-bit scale for each `size` inputs of an output."""
    rule, source = f"16-bit scale for each {size} inputs", "compressed-tensors: float-quantized"
    return fp8(f"fp8-g{size}", SideTensor("weight_scale", "group", 16, size), static=static, rule=rule, source=source)


FBGEMM = fp8(
    "fbgemm-fp8",
    SideTensor("weight_scale", "output", 32),
    rule="float32 scale for each output",
    source="transformers: integrations/fbgemm_fp8.py",
)
MXFP4 = Format(
    "mxfp4",
    Dtype("e2m1", 2, 1),
    (SideTensor("scales", "group", 8, 32),),
    applies_to=ONLY_EXPERTS,
    columns=32,
    summary="4 bits; 8-bit exponent for each 32 inputs",
    source="OCP Microscaling v1.0; gpt-oss",
)
MXFP8 = Format(
    "mxfp8",
    Dtype("float8_e4m3fn", 1, 1),
    (SideTensor("weight_scale", "group", 8, 32),),
    columns=32,
    summary="8 bits; 8-bit exponent for each 32 inputs",
    source="OCP Microscaling v1.0",
)
MXFP6 = Format(
    "mxfp6",
    Dtype("e3m2", 4, 3),
    (SideTensor("weight_scale", "group", 8, 32),),
    columns=32,
    summary="6 bits; 8-bit exponent for each 32 inputs",
    source="OCP Microscaling v1.0",
)


def nvfp4(*, static: bool = False) -> Format:
    """NVIDIA's 4-bit floats (NVFP4): an 8-bit float scale for each 16 inputs and a float32 scale for the matrix.

    `static`: one more float32 scale for the activations.
    """
    extras = (SideTensor("weight_scale", "group", 8, 16), SideTensor("weight_scale_2", "tensor", 32))
    return Format(
        "nvfp4",
        Dtype("e2m1", 2, 1),
        (*extras, SideTensor("input_scale", "tensor", 32)) if static else extras,
        columns=16,
        summary="4 bits; 8-bit float for each 16 inputs; float32 for the matrix",
        source="ModelOpt: NVFP4",
    )
