"""Assumptions of a memory, FLOPs or fit report. Each report lists them; none changes silently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, get_args

from paramcalc.base.errors import ParamcalcError, choices
from paramcalc.base.value import Frozen

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from paramcalc.reports.shapes.memory import AssumptionInfoDict

# windowed: a sliding-window layer caches its window; uniform: an engine reserves the full context for every layer.
KvPolicy = Literal["windowed", "uniform"]
# latent: MLA caches its compressed latent; expanded: keys and values of every head.
Mla = Literal["latent", "expanded"]
# Inputs that a short convolution caches: as many as its kernel has columns (transformers), or one fewer.
ConvColumns = Literal["kernel", "kernel-1"]
# eager: the whole matrix of attention scores is in memory; flash: never.
AttentionKernel = Literal["flash", "eager"]

# Largest number of tokens in one prefill step: max_num_batched_tokens of the vLLM server on large devices.
PREFILL_CHUNK = 8192
# Bytes on each device for everything but tensors of the model: CUDA context and kernels (about half a GiB), captured
# graphs, communication buffers and allocator fragmentation. A round figure: vLLM reported 0.05 to 1.8 GiB of
# `non_torch_memory` for one Llama-3-8B (vLLM pull request 10511), without its captured graphs.
OVERHEAD = 2**30

F = TypeVar("F", bound=Callable[..., Any])


class Assumptions(Frozen):
    """Checked assumptions. Dtypes are names as given; None stands for the dtype of the checkpoint or the model."""

    context: int  # tokens per sequence, prompt and answer
    batch: int = 1  # concurrent sequences
    source: int | None = None  # encoder sequence length in tokens; None: same as `context`
    dtype: str | None = None
    dtype_of: tuple[tuple[str, str], ...] = ()  # (category or path, dtype)
    include_mtp: bool = False  # count the multi-token-prediction modules in the checkpoint
    kv_cache_dtype: str | None = None
    v_cache_dtype: str | None = None  # if values have another dtype than keys
    state_dtype: str | None = None
    kv_policy: KvPolicy = "windowed"
    mla: Mla = "latent"
    conv_columns: ConvColumns = "kernel"
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    expert_parallel: int = 1
    data_parallel: int = 1
    prefill_chunk: int = PREFILL_CHUNK
    attention: AttentionKernel = "flash"
    logits_dtype: str = "float32"
    overhead: int = OVERHEAD  # bytes on each device


class AssumptionOptions(TypedDict, total=False):
    """The fields of `Assumptions` with a default, as keyword arguments, for type checkers."""

    batch: int
    source: int | None
    dtype: str | None
    dtype_of: tuple[tuple[str, str], ...]
    include_mtp: bool
    kv_cache_dtype: str | None
    v_cache_dtype: str | None
    state_dtype: str | None
    kv_policy: KvPolicy
    mla: Mla
    conv_columns: ConvColumns
    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    data_parallel: int
    prefill_chunk: int
    attention: AttentionKernel
    logits_dtype: str
    overhead: int


ALLOWED_WORDS: dict[str, Sequence[str]] = {
    "kv_policy": get_args(KvPolicy),
    "mla": get_args(Mla),
    "conv_columns": get_args(ConvColumns),
    "attention": get_args(AttentionKernel),
}
POSITIVE_FIELDS = (
    "context",
    "batch",
    "source",
    "tensor_parallel",
    "pipeline_parallel",
    "expert_parallel",
    "data_parallel",
    "prefill_chunk",
)


def assume(*, context: int, **options: Unpack[AssumptionOptions]) -> Assumptions:
    """Check and collect assumptions.

    Raises ParamcalcError for a size that is not a positive integer, and for an unknown word, with the choices.
    """
    given: dict[str, Any] = {"context": context, **options}
    for name, least in (*((name, 1) for name in POSITIVE_FIELDS), ("overhead", 0)):
        value = given.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            kind = "a positive integer" if least else "a non-negative integer"
            raise ParamcalcError(f"{name} must be {kind}, not {value!r}", "use a number such as 8")
    for name, words in ALLOWED_WORDS.items():
        if name in given:
            given[name] = one_of(given[name], words, name)
    return Assumptions(**given)


def assumption_info(assumed: Assumptions) -> AssumptionInfoDict:
    """The `assumptions` of a report."""
    return {
        "context": assumed.context,
        "batch": assumed.batch,
        "source": assumed.source,
        "dtype": assumed.dtype,
        "dtype_of": assumed.dtype_of,
        "include_mtp": assumed.include_mtp,
        "kv_cache_dtype": assumed.kv_cache_dtype,
        "v_cache_dtype": assumed.v_cache_dtype,
        "state_dtype": assumed.state_dtype,
        "kv_policy": assumed.kv_policy,
        "mla": assumed.mla,
        "conv_columns": assumed.conv_columns,
        "tensor_parallel": assumed.tensor_parallel,
        "pipeline_parallel": assumed.pipeline_parallel,
        "expert_parallel": assumed.expert_parallel,
        "data_parallel": assumed.data_parallel,
        "prefill_chunk": assumed.prefill_chunk,
        "attention": assumed.attention,
        "logits_dtype": assumed.logits_dtype,
        "overhead": assumed.overhead,
    }


def accepts_assumptions(function: F) -> F:
    """Decorator: show the fields of `Assumptions` in the signature of a function that takes them as **kwargs."""
    from inspect import Parameter, Signature, signature

    own = [p for p in signature(function).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    kinds = Assumptions.__annotations__
    fields = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kinds[name])
        for name, default in Assumptions.fields.items()
        if name not in {p.name for p in own}
    ]
    returns = signature(function).return_annotation
    function.__signature__ = Signature([*own, *fields], return_annotation=returns)  # type: ignore[attr-defined]
    return function


def one_of(text: str, words: Sequence[str], name: str) -> str:
    """One of `words`, in lower case; `text` is case-insensitive. Raises ParamcalcError with the choices."""
    word = str(text).lower()
    if word not in words:
        raise ParamcalcError(f"unknown {name} {text!r}", choices(word, words))
    return word
