"""Which type llama-quantize gives to each tensor: its mixtures, rule by rule, in the order in which it asks.

`llama_tensor_get_type_impl` in src/llama-quant.cpp of llama.cpp 0c1e570, without --pure and overrides. A rule
knows the file (what kind it is, how deep, how many experts) and where the tensor stands (its layer, and how many
of its role came before it).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from paramcalc.storage.gguf.types import FALLBACKS, FLOATS, FTYPE_BASES, GGUF_TYPES, NO_FALLBACK

# What a rule asks for. "value" is whatever holds values: attn_v, a fused attn_qkv, attn_kv_b.
TypeRole = Literal["output", "token_embd", "value", "key", "query", "attn_output", "up", "gate", "down", "other"]

LOWEST_FTYPES = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M")
# Kinds of file that give the output of attention more bits beside eight experts.
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
    """What the rules ask about the file as a whole."""

    ftype: str
    layers: int
    gqa: int  # query heads for each key/value head; 0 without the latter
    experts: int  # 0 where it is dense
    values: int  # tensors that hold values
    tied: bool  # no output matrix of its own
    imatrix: bool = False  # an importance matrix says which weights matter
    seventy_billion: bool = False  # as deep as Llama 2 70B, with grouped queries
    falcon: bool = False

    @property
    def base(self) -> str:
        """The type of what no rule treats otherwise."""
        return FTYPE_BASES[self.ftype]


class TypeContext(NamedTuple):
    """What the rules ask about a tensor."""

    role: TypeRole
    row: int  # elements of a row, which blocks must divide, or their largest divisor that blocks may have
    stacked: bool  # more than one matrix: experts
    layer: int
    ordinal: int  # tensors of its role that came before it


TypeRule = Callable[[FileContext, TypeContext], str]


def choose_type(file: FileContext, place: TypeContext) -> str:
    """The type of a tensor that is quantised."""
    if file.base in FLOATS:
        return file.base
    return type_fitting_row(mixture_type(file, place), place.row)


def mixture_type(file: FileContext, place: TypeContext) -> str:
    """The type that the file's mixture asks for."""
    if place.role == "output" or (file.tied and place.role == "token_embd"):
        return output_type(file, place)
    if file.ftype == "MXFP4_MOE":
        return "MXFP4" if place.stacked else "Q8_0"
    if place.role == "token_embd":
        return token_embd_type(file)
    rules = LOWEST_TYPE_RULES if file.ftype in LOWEST_FTYPES else TYPE_RULES
    return rules[place.role](file, place) if place.role in rules else file.base


def type_fitting_row(name: str, row: int) -> str:
    """The type, or what takes its place where it does not divide a row.

    Raises ValueError where the tool gives up.
    """
    if row % GGUF_TYPES[name].block_elements == 0:
        return name
    if name in NO_FALLBACK:
        raise ValueError(f"{name} needs rows of a multiple of {GGUF_TYPES[name].block_elements} elements")
    name = FALLBACKS.get(name, name)
    return name if row % GGUF_TYPES[name].block_elements == 0 else "F16"


def more_bits(i: int, n: int) -> bool:
    """The first and last eighth of n, and every third between them (use_more_bits)."""
    return i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2


def ffn_index(file: FileContext, place: TypeContext) -> int:
    """How far down a feed-forward tensor is: its layer where there are experts, else how many came before it."""
    return place.layer if file.experts > 1 else place.ordinal


# -- tables -------------------------------------------------------------------------------------------------------


def output_type(file: FileContext, place: TypeContext) -> str:
    """The output matrix, or the table of tokens that is one too."""
    if file.ftype == "MXFP4_MOE" or file.falcon or place.row % GGUF_TYPES[file.base].block_elements:
        return "Q8_0"
    if file.ftype in (*LOWEST_FTYPES, "IQ3_XXS"):
        return "Q5_K"
    return file.base if file.base == "Q8_0" else "Q6_K"


def token_embd_type(file: FileContext) -> str:
    """The table of tokens beside an output matrix."""
    if file.ftype in ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS"):
        return "Q2_K"
    if file.ftype in ("IQ2_S", "IQ2_M", "IQ3_XXS"):
        return "IQ3_S"
    return "Q4_K" if file.ftype in ("TQ1_0", "TQ2_0", "Q2_0") else file.base


# -- one and two bits ---------------------------------------------------------------------------------------------


def lowest_protected_type(file: FileContext) -> str:
    """What the lowest files give to what suffers most."""
    return "IQ3_S" if file.ftype in ("IQ2_S", "IQ2_M") else "Q2_K"


def lowest_value_type(file: FileContext, place: TypeContext) -> str:
    """Values are few where heads share them, and beside many experts."""
    return "Q4_K" if file.gqa >= 4 or file.experts >= 4 else lowest_protected_type(file)


def lowest_key_type(file: FileContext, place: TypeContext) -> str:
    """Keys, which are few beside eight experts."""
    return "Q4_K" if file.experts == 8 else file.base


def lowest_down_type(file: FileContext, place: TypeContext) -> str:
    """The first eighth; tensors are counted here, not layers, so experts and shared experts count twice."""
    return lowest_protected_type(file) if place.ordinal < file.layers // 8 else file.base


def lowest_attn_output_type(file: FileContext, place: TypeContext) -> str:
    """The output of attention."""
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
    """Values get more bits, the more so the more heads share them."""
    if file.experts == 8:
        return "Q8_0"
    chosen = value_type_by_file(file, place.ordinal)
    return "Q5_K" if file.seventy_billion and chosen in ("Q3_K", "Q4_K") else chosen


def value_type_by_file(file: FileContext, i: int) -> str:
    """What a kind of file gives to its i-th value tensor."""
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
    """Queries give way in two kinds of file."""
    return {"IQ3_XS": "IQ3_XXS", "IQ3_XXS": "IQ2_S"}.get(file.ftype, file.base)


def key_type(file: FileContext, place: TypeContext) -> str:
    """Keys as queries, but for eight experts, beside which they weigh little."""
    return "Q8_0" if file.experts == 8 else query_type(file, place)


def down_type(file: FileContext, place: TypeContext) -> str:
    """The matrix back to the model's width."""
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
    """The output of attention."""
    if file.falcon:
        return "Q4_K" if file.ftype == "Q3_K_L" else file.base
    if file.experts == 8:
        return "Q5_K" if file.ftype in EIGHT_EXPERT_ATTN_OUTPUT_FTYPES else file.base
    more = {"Q2_K": "Q3_K", "IQ3_XXS": "IQ3_S", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K", "IQ3_M": "Q4_K"}
    return more.get(file.ftype, file.base)


def gate_or_up_type(file: FileContext, place: TypeContext) -> str:
    """The matrices into the hidden width, which give way in the middle of one kind of file."""
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
