"""The type that llama-quantize gives to each tensor: its mixtures, rule by rule, in its order.

Source: `llama_tensor_get_type_impl` in src/llama-quant.cpp of llama.cpp 0c1e570, without --pure and overrides. A rule
depends on the file (file type, number of layers, number of experts) and on the tensor (its layer, and its position
among the tensors of its role).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from paramcalc.storage.gguf.types import FALLBACKS, FLOATS, FTYPE_BASES, GGUF_TYPES, NO_FALLBACK

# The role of a tensor. "value" is every tensor that contains values: attn_v, a fused attn_qkv, attn_kv_b.
TypeRole = Literal["output", "token_embd", "value", "key", "query", "attn_output", "up", "gate", "down", "other"]

LOWEST_FTYPES = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M")
# File types that give more bits to the output projection of attention in models of eight experts.
EIGHT_EXPERT_ATTN_OUTPUT_FTYPES = {
    "Q2_K",
    "Q3_K_S",
    "Q3_K_M",
    "Q4_K_S",
    "Q4_K_M",
    "IQ3_XXS",
    "IQ3_XS",
    "IQ3_S",
    "IQ3_M",
    "IQ4_NL",
    "IQ4_XS",
}


class FileContext(NamedTuple):
    """Facts about the whole file that rules depend on."""

    ftype: str
    layers: int
    gqa: int  # query heads for each key/value head; 0 without key/value heads
    experts: int  # 0 for a dense model
    values: int  # number of tensors with the role "value"
    tied: bool  # the output matrix is tied to the token embedding
    imatrix: bool = False  # quantised with an importance matrix
    seventy_billion: bool = False  # llama-quantize classifies the model as 70B
    falcon: bool = False

    @property
    def base(self) -> str:
        """The base type, for tensors without a special rule."""
        return FTYPE_BASES[self.ftype]


class TypeContext(NamedTuple):
    """Facts about a tensor that rules depend on."""

    role: TypeRole
    row: int  # elements of a row, or their greatest common divisor with the longest block
    stacked: bool  # several matrices in one tensor, such as experts
    layer: int
    ordinal: int  # number of earlier tensors with the same role


TypeRule = Callable[[FileContext, TypeContext], str]


def choose_type(file: FileContext, place: TypeContext) -> str:
    """The type of a quantised tensor. Raises ValueError if its rows are not a multiple of the block."""
    if file.base in FLOATS:
        return file.base
    return type_fitting_row(mixture_type(file, place), place.row)


def mixture_type(file: FileContext, place: TypeContext) -> str:
    """The type in the mixture of the file type, before the check of the row length."""
    if place.role == "output" or (file.tied and place.role == "token_embd"):
        return output_type(file, place)
    if file.ftype == "MXFP4_MOE":
        return "MXFP4" if place.stacked else "Q8_0"
    if place.role == "token_embd":
        return token_embd_type(file)
    rules = LOWEST_TYPE_RULES if file.ftype in LOWEST_FTYPES else TYPE_RULES
    return rules[place.role](file, place) if place.role in rules else file.base


def type_fitting_row(name: str, row: int) -> str:
    """The type, or its fallback if a row is not a multiple of its block.

    Raises ValueError for a type without a fallback, as llama-quantize fails.
    """
    if row % GGUF_TYPES[name].block_elements == 0:
        return name
    if name in NO_FALLBACK:
        raise ValueError(f"{name} needs rows of a multiple of {GGUF_TYPES[name].block_elements} elements")
    name = FALLBACKS.get(name, name)
    return name if row % GGUF_TYPES[name].block_elements == 0 else "F16"


def more_bits(i: int, n: int) -> bool:
    """True for the first and last eighth of n tensors, and for every third between them (use_more_bits)."""
    return i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2


def ffn_index(file: FileContext, place: TypeContext) -> int:
    """The position of an FFN tensor: its layer in MoE models, else the number of earlier tensors of its role."""
    return place.layer if file.experts > 1 else place.ordinal


# -- embedding and output tables ------------------------------------------------------------------------------------


def output_type(file: FileContext, place: TypeContext) -> str:
    """The type of the output matrix, or of a token embedding that is tied to it."""
    if file.ftype == "MXFP4_MOE" or file.falcon or place.row % GGUF_TYPES[file.base].block_elements:
        return "Q8_0"
    if file.ftype in (*LOWEST_FTYPES, "IQ3_XXS"):
        return "Q5_K"
    return file.base if file.base == "Q8_0" else "Q6_K"


def token_embd_type(file: FileContext) -> str:
    """The type of the token embedding in a model with its own output matrix."""
    if file.ftype in ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS"):
        return "Q2_K"
    if file.ftype in ("IQ2_S", "IQ2_M", "IQ3_XXS"):
        return "IQ3_S"
    return "Q4_K" if file.ftype in ("TQ1_0", "TQ2_0", "Q2_0") else file.base


# -- one and two bits ---------------------------------------------------------------------------------------------


def lowest_protected_type(file: FileContext) -> str:
    """The type for the most sensitive tensors in the file types with the fewest bits."""
    return "IQ3_S" if file.ftype in ("IQ2_S", "IQ2_M") else "Q2_K"


def lowest_value_type(file: FileContext, place: TypeContext) -> str:
    """The type of values: more bits if heads share them or the model has experts, since they are small there."""
    return "Q4_K" if file.gqa >= 4 or file.experts >= 4 else lowest_protected_type(file)


def lowest_key_type(file: FileContext, place: TypeContext) -> str:
    """The type of keys: more bits in models of eight experts."""
    return "Q4_K" if file.experts == 8 else file.base


def lowest_down_type(file: FileContext, place: TypeContext) -> str:
    """The type of down-projections: more bits for the first eighth.

    Tensors are counted, not layers, so a layer with experts and shared experts counts twice.
    """
    return lowest_protected_type(file) if place.ordinal < file.layers // 8 else file.base


def lowest_attn_output_type(file: FileContext, place: TypeContext) -> str:
    """The type of the output projection of attention."""
    if file.experts == 8:
        return "Q5_K"
    if file.ftype in ("IQ1_S", "IQ1_M"):
        return "IQ2_XXS"
    return "IQ3_S" if file.ftype in ("IQ2_S", "IQ2_M") else file.base


LOWEST_TYPE_RULES: dict[TypeRole, TypeRule] = {
    "value": lowest_value_type,
    "key": lowest_key_type,
    "down": lowest_down_type,
    "attn_output": lowest_attn_output_type,
}

# -- all others ---------------------------------------------------------------------------------------------------


def value_type(file: FileContext, place: TypeContext) -> str:
    """The type of values: more bits, and most if many heads share them."""
    if file.experts == 8:
        return "Q8_0"
    chosen = value_type_by_file(file, place.ordinal)
    return "Q5_K" if file.seventy_billion and chosen in ("Q3_K", "Q4_K") else chosen


def value_type_by_file(file: FileContext, i: int) -> str:
    """The type of the i-th value tensor in a file type."""
    shared = file.gqa >= 4
    match file.ftype:
        case "Q2_K":
            return "Q4_K" if shared else "Q3_K"
        case "IQ3_XXS":
            return "Q4_K" if shared else "IQ3_XXS" if file.imatrix else "IQ3_S"
        case "Q2_K_S" | "IQ3_XS" | "IQ3_S" if shared:
            return "Q4_K"
        case "IQ3_M":
            return "Q4_K"
        case "Q3_K_M":
            return "Q5_K" if i < 2 else "Q4_K"
        case "Q3_K_L":
            return "Q5_K"
        case "IQ4_NL" | "IQ4_XS" if shared:
            return "Q5_K"
        case "Q4_K_M" | "Q5_K_M" if more_bits(i, file.values):
            return "Q6_K"
        case "Q4_K_S" if i < 4:
            return "Q5_K"
    return file.base


def query_type(file: FileContext, place: TypeContext) -> str:
    """The type of queries: fewer bits in two file types."""
    return {"IQ3_XS": "IQ3_XXS", "IQ3_XXS": "IQ2_S"}.get(file.ftype, file.base)


def key_type(file: FileContext, place: TypeContext) -> str:
    """The type of keys: that of queries, except Q8_0 in models of eight experts, where they are small."""
    return "Q8_0" if file.experts == 8 else query_type(file, place)


def down_type(file: FileContext, place: TypeContext) -> str:
    """The type of down-projections."""
    i, n = ffn_index(file, place), file.layers
    first, more = i < n // 8, more_bits(i, n)
    match file.ftype:
        case "Q2_K":
            return "Q3_K"
        case "Q2_K_S" if first:
            return "Q4_K"
        case "IQ3_XXS" if not file.imatrix:
            return "Q4_K" if first else "Q3_K"
        case "Q3_K_M":
            return "Q5_K" if i < n // 16 else "Q4_K" if more or not file.falcon else "Q3_K"
        case "IQ3_M" if first or (file.experts == 8 and more):
            return "Q4_K"
        case "Q3_K_L":
            return "Q4_K" if file.falcon else "Q5_K"
        case "Q4_K_M" if file.falcon:
            return "Q6_K" if i < n // 16 else "Q5_K" if more else "Q4_K"
        case "Q4_K_M" | "Q5_K_M" if more:
            return "Q6_K"
        case "IQ4_NL" | "IQ4_XS" if first and not file.imatrix:
            return "Q5_K"
        case "Q4_K_S" if first and not file.falcon:
            return "Q5_K"
        case "Q4_0" | "Q5_0" if first and file.imatrix:
            return file.base.replace("_0", "_1")
    return file.base


def attn_output_type(file: FileContext, place: TypeContext) -> str:
    """The type of the output projection of attention."""
    if file.falcon:
        return "Q4_K" if file.ftype == "Q3_K_L" else file.base
    if file.experts == 8:
        return "Q5_K" if file.ftype in EIGHT_EXPERT_ATTN_OUTPUT_FTYPES else file.base
    more = {"Q2_K": "Q3_K", "IQ3_XXS": "IQ3_S", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K", "IQ3_M": "Q4_K"}
    return more.get(file.ftype, file.base)


def gate_or_up_type(file: FileContext, place: TypeContext) -> str:
    """The type of gate- and up-projections: fewer bits in the middle layers of IQ3_XS."""
    i, n = ffn_index(file, place), file.layers
    return "IQ3_XXS" if file.ftype == "IQ3_XS" and n // 8 <= i < 7 * n // 8 else file.base


TYPE_RULES: dict[TypeRole, TypeRule] = {
    "value": value_type,
    "key": key_type,
    "query": query_type,
    "down": down_type,
    "attn_output": attn_output_type,
    "gate": gate_or_up_type,
    "up": gate_or_up_type,
}
