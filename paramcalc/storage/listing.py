"""Rows of `paramcalc dtypes`: bits, layout, the tensors that stay unquantised, and the source of each format."""

from __future__ import annotations

from paramcalc.base.dtypes import BLOCK_DTYPES, Dtype
from paramcalc.reports.count import DtypeInfo
from paramcalc.storage.formats.format import (
    ALL_TENSORS,
    LAYER_MATRICES,
    LAYERS_AND_HEAD,
    MLX_MATRICES,
    ONLY_EXPERTS,
    Format,
    bits_per_weight,
    plain_format,
)
from paramcalc.storage.formats.registry import format_named, listed_formats
from paramcalc.storage.gguf import is_gguf
from paramcalc.storage.gguf.types import FTYPE_BASES, GGUF_TYPES, PREFIX, PUBLISHED_BITS, ftype

UNCONVERTED_BY_SCOPE = {
    LAYER_MATRICES: "embeddings, head, norms, biases, routers, towers",
    LAYERS_AND_HEAD: "embeddings, norms, biases, routers, towers",
    ONLY_EXPERTS: "all except experts (if any)",
    MLX_MATRICES: "norms, biases, convolutions, towers",
    ALL_TENSORS: "nothing",
}
# Dtypes of both weights and the KV cache.
PLAIN_CACHE_DTYPES = ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def dtype_infos() -> list[DtypeInfo]:
    """Every format of weights, every GGUF file type, and the block dtypes of the KV cache."""
    files = [name if is_gguf(name) else PREFIX + name for name in FTYPE_BASES]
    return [*map(format_info, listed_formats()), *map(gguf_file_info, files), *map(block_dtype_info, BLOCK_DTYPES)]


def dtype_info(name: str) -> DtypeInfo:
    """The row of one format or GGUF file type. Raises ParamcalcError with the choices."""
    return gguf_file_info(name) if is_gguf(name) else format_info(format_named(name))


def format_info(form: Format) -> DtypeInfo:
    """The row of a format of weights."""
    return DtypeInfo(
        name=form.name,
        bits=str(bits_per_weight(form)),
        layout=form.summary,
        leaves=UNCONVERTED_BY_SCOPE[form.applies_to],
        use="both" if form.name in PLAIN_CACHE_DTYPES else "weights",
        exact=form.exact,
        source=form.source,
    )


def gguf_file_info(name: str) -> DtypeInfo:
    """The row of a GGUF file type, which mixes types.

    The bits for each weight are those published for Llama-3.1-8B, or else those of the most common type.
    """
    kind = ftype(name)
    base = GGUF_TYPES[FTYPE_BASES[kind]]
    published = PUBLISHED_BITS.get(kind)
    blocks = f"for most ({base.block_bytes} bytes for {base.block_elements} values)"
    return DtypeInfo(
        name=PREFIX + kind.lower(),
        bits=published or str(bits_per_weight(plain_format(base))),
        layout=f"{base.name} {blocks if base.block_elements > 1 else 'for matrices'}"
        + ("; bits of Llama-3.1-8B" if published else ""),
        leaves="norms, biases, routers and small tensors, in F32",
        use="weights",
        exact=True,
        source="llama.cpp: ggml-common.h, src/llama-quant.cpp",
    )


def block_dtype_info(kind: Dtype) -> DtypeInfo:
    """The row of a block dtype of the KV cache, whose blocks contain their scales."""
    form = plain_format(kind)
    layout = f"{kind.block_bytes} bytes for each {kind.block_elements} values"
    return DtypeInfo(
        name=kind.name,
        bits=str(bits_per_weight(form)),
        layout=layout,
        leaves="",
        use="cache",
        exact=True,
        source=form.source,
    )
