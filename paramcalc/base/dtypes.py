"""Dtypes as data: the bytes of a block of elements, as integers, so that results are exact."""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.base.errors import ParamcalcError, choices


class Dtype(NamedTuple):
    """`block_bytes` bytes hold `block_elements` elements; the last block of a tensor may be partly filled."""

    name: str
    block_elements: int
    block_bytes: int

    def bytes(self, elements: int) -> int:
        """Bytes of a number of elements; the last block counts in full."""
        return -(-elements // self.block_elements) * self.block_bytes


SCALAR_DTYPES = (
    Dtype("float64", 1, 8),
    Dtype("float32", 1, 4),
    Dtype("float16", 1, 2),
    Dtype("bfloat16", 1, 2),
    Dtype("float8_e4m3fn", 1, 1),
    Dtype("float8_e5m2", 1, 1),
    Dtype("int64", 1, 8),
    Dtype("int32", 1, 4),
    Dtype("int16", 1, 2),
    Dtype("int8", 1, 1),
    Dtype("uint8", 1, 1),
    Dtype("int4", 2, 1),
)
# Blocks of 32 elements that contain their scale (and minimum): llama.cpp's cache types (ggml-common.h).
BLOCK_DTYPES = (
    Dtype("q8_0", 32, 34),
    Dtype("q5_1", 32, 24),
    Dtype("q5_0", 32, 22),
    Dtype("q4_1", 32, 20),
    Dtype("q4_0", 32, 18),
    Dtype("iq4_nl", 32, 18),
)
DTYPES = {d.name: d for d in SCALAR_DTYPES + BLOCK_DTYPES}
DTYPE_ALIASES = {
    "fp64": "float64",
    "double": "float64",
    "fp32": "float32",
    "float": "float32",
    "f32": "float32",
    "fp16": "float16",
    "half": "float16",
    "f16": "float16",
    "bf16": "bfloat16",
    "fp8": "float8_e4m3fn",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
}
DEFAULT = "float32"  # transformers' default if a config names no dtype
QUANTISED_REST = "bfloat16"  # dtype of the unquantised tensors, if a quantised checkpoint names none (gpt-oss)


def dtype(name: str) -> Dtype:
    """Look up a dtype by name, in any case, with or without `torch.`.

    Raises ParamcalcError with the choices.
    """
    key = name.lower().removeprefix("torch.")
    found = DTYPES.get(DTYPE_ALIASES.get(key, key))
    if found is None:
        raise ParamcalcError(f"unknown dtype {name!r}", choices(key, [*DTYPES, *DTYPE_ALIASES]))
    return found
