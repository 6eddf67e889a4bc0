"""Under which assumptions a footprint holds. Every figure is printed beside them; none changes silently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, get_args

from paramcalc.errors import ParamcalcError, nearest
from paramcalc.frozen import Frozen

# What must be kept, or what engines reserve that give every attention layer the pages of a full one.
KvPolicy = Literal["windowed", "uniform"]
Mla = Literal["latent", "expanded"]
# Inputs of a short convolution that are kept: as many as its kernel has columns (transformers), or one fewer.
ConvColumns = Literal["kernel", "kernel-1"]

T = TypeVar("T", bound=str)


class Assumptions(Frozen):
    """What is asked for, checked. Dtypes are names as given; None means what the checkpoint or the model states."""

    context: int  # tokens of each sequence, prompt and answer
    batch: int = 1  # sequences at a time
    source: int | None = None  # tokens an encoder has read; None: as many as `context`
    dtype: str | None = None
    dtype_of: tuple[tuple[str, str], ...] = ()  # (category or path, dtype)
    kv_cache_dtype: str | None = None
    v_cache_dtype: str | None = None  # where values are not stored as keys are
    state_dtype: str | None = None
    kv_policy: KvPolicy = "windowed"
    mla: Mla = "latent"
    conv_columns: ConvColumns = "kernel"
    tensor_parallel: int = 1


WORDS: dict[str, Sequence[str]] = {
    "kv_policy": get_args(KvPolicy),
    "mla": get_args(Mla),
    "conv_columns": get_args(ConvColumns),
}


def assume(**given: Any) -> Assumptions:
    """Check what is asked for.

    Raises ParamcalcError for sizes that are not whole numbers from 1 on and for unknown words, with the choices.
    """
    for name in ("context", "batch", "source", "tensor_parallel"):
        value = given.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ParamcalcError(f"{name} must be a whole number from 1 on, not {value!r}")
    for name, words in WORDS.items():
        if name in given:
            given[name] = chosen(given[name], words, name)
    return Assumptions(**given)


def chosen(text: str, words: Sequence[str], name: str) -> str:
    """One of `words`, in any case. Raises ParamcalcError with the choices."""
    word = str(text).lower()
    if word not in words:
        raise ParamcalcError(f"unknown {name} {text!r}", nearest(word, words, fallback="known: " + ", ".join(words)))
    return word
