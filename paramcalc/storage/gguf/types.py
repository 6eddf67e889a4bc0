"""GGUF types as data: the block size of each type, and the types in each file type.

ggml 0.25.3 (llama.cpp 0c1e570): ggml_blck_size and ggml_type_size in ggml.c; QUANT_OPTIONS in tools/quantize;
llama_ftype_get_default_type and tensor_type_fallback in src/llama-quant.cpp.
"""

from __future__ import annotations

from paramcalc.base.dtypes import Dtype
from paramcalc.base.errors import ParamcalcError, choices

GGUF_TYPES = {
    t.name: t
    for t in (
        Dtype("F32", 1, 4),
        Dtype("F16", 1, 2),
        Dtype("BF16", 1, 2),
        Dtype("Q8_0", 32, 34),
        Dtype("Q5_1", 32, 24),
        Dtype("Q5_0", 32, 22),
        Dtype("Q4_1", 32, 20),
        Dtype("Q4_0", 32, 18),
        Dtype("IQ4_NL", 32, 18),
        Dtype("MXFP4", 32, 17),
        Dtype("Q2_0", 64, 18),
        Dtype("Q1_0", 128, 18),
        Dtype("Q6_K", 256, 210),
        Dtype("Q5_K", 256, 176),
        Dtype("Q4_K", 256, 144),
        Dtype("Q3_K", 256, 110),
        Dtype("Q2_K", 256, 84),
        Dtype("IQ4_XS", 256, 136),
        Dtype("IQ3_S", 256, 110),
        Dtype("IQ3_XXS", 256, 98),
        Dtype("IQ2_S", 256, 82),
        Dtype("IQ2_XS", 256, 74),
        Dtype("IQ2_XXS", 256, 66),
        Dtype("IQ1_M", 256, 56),
        Dtype("IQ1_S", 256, 50),
        Dtype("TQ2_0", 256, 66),
        Dtype("TQ1_0", 256, 54),
    )
}
SHORT_BLOCK = 32  # elements in a block of the fallback types
LONGEST_BLOCK = max(t.block_elements for t in GGUF_TYPES.values())  # 256, a multiple of all others
FLOATS = ("F32", "F16", "BF16")

# File type -> its base type, for tensors without a special rule; most file types have the name of their base.
FTYPE_BASES = {name: name for name in GGUF_TYPES if name not in ("MXFP4", "Q3_K", "Q4_K", "Q5_K")} | {
    "MXFP4_MOE": "MXFP4",
    "Q2_K_S": "Q2_K",
    "Q3_K_S": "Q3_K",
    "Q3_K_M": "Q3_K",
    "Q3_K_L": "Q3_K",
    "Q4_K_S": "Q4_K",
    "Q4_K_M": "Q4_K",
    "Q5_K_S": "Q5_K",
    "Q5_K_M": "Q5_K",
    "IQ2_S": "IQ2_XS",
    "IQ2_M": "IQ2_S",
    "IQ3_XS": "IQ3_S",
    "IQ3_M": "IQ3_S",
}
FTYPE_ALIASES = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"}

# The type that replaces another if rows are not a multiple of its block. Types of 32 elements and Q1_0 have none.
FALLBACKS = {
    **dict.fromkeys(("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS"), "IQ4_NL"),
    **dict.fromkeys(("Q2_0", "Q2_K", "Q3_K", "TQ1_0", "TQ2_0"), "Q4_0"),
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
}
NO_FALLBACK = ("Q1_0",)

PREFIX = "gguf-"

# Bits for each weight of Llama-3.1-8B, including norms in F32, for file types that mix types (llama.cpp,
# tools/quantize/README.md).
PUBLISHED_BITS = {
    "Q5_K_M": "5.7036",
    "Q5_K_S": "5.5704",
    "Q4_K_M": "4.8944",
    "Q4_K_S": "4.6672",
    "IQ4_NL": "4.6818",
    "IQ4_XS": "4.4597",
    "Q3_K_L": "4.2979",
    "Q3_K_M": "3.9960",
    "Q3_K_S": "3.6429",
    "IQ3_M": "3.7628",
    "IQ3_S": "3.6606",
    "IQ3_XS": "3.4977",
    "IQ3_XXS": "3.2548",
    "Q2_K": "3.1593",
    "Q2_K_S": "2.9697",
    "IQ2_M": "2.9294",
    "IQ2_S": "2.7403",
    "IQ2_XS": "2.5882",
    "IQ2_XXS": "2.3824",
    "IQ1_M": "2.1460",
    "IQ1_S": "2.0042",
}


def is_gguf(name: str) -> bool:
    """True if the name is a GGUF file type, `gguf-q4_k_m` or `Q4_K_M`; F32, F16 and BF16 need the prefix."""
    key = name.upper()
    prefixed = key.startswith(PREFIX.upper())
    key = key.removeprefix(PREFIX.upper())
    return prefixed or (key in (*FTYPE_BASES, *FTYPE_ALIASES) and key not in FLOATS)


def ftype(name: str) -> str:
    """The GGUF file type of that name as llama-quantize prints it; case and the prefix `gguf-` do not matter.

    Raises ParamcalcError with the choices.
    """
    key = name.upper().removeprefix(PREFIX.upper())
    key = FTYPE_ALIASES.get(key, key)
    if key not in FTYPE_BASES:
        raise ParamcalcError(f"unknown GGUF type {name!r}", choices(key, [*FTYPE_BASES, *FTYPE_ALIASES]))
    return key
