"""Types of a memory report as a dict."""

from __future__ import annotations

from typing import TypedDict

from paramcalc.reports.shapes.base import AnswerDict, ModelInfoDict


class AssumptionInfoDict(TypedDict):
    """`assumptions` of `memory` and `fit`."""

    context: int
    batch: int
    source: int | None
    dtype: str | None
    dtype_of: tuple[tuple[str, str], ...]
    include_mtp: bool
    kv_cache_dtype: str | None
    v_cache_dtype: str | None
    state_dtype: str | None
    kv_policy: str
    mla: str
    conv_columns: str
    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    data_parallel: int
    prefill_chunk: int
    attention: str
    logits_dtype: str
    overhead: int


class FormatShareDict(TypedDict):
    """Tensors stored in one format."""

    tensors: int
    parameters: int
    bytes: int


class WeightsPartDict(TypedDict):
    """`weights` of a memory report."""

    bytes: int
    by_format: dict[str, FormatShareDict]
    by_category: dict[str, int]
    bits_per_weight: str
    file_records: int
    estimate: bool


class LimitedDict(TypedDict):
    """Cache entries that stop growing with the context, or grow slower."""

    tokens: int
    bytes_per_entry: int


class PerSequenceDict(TypedDict):
    """Cache bytes of one sequence."""

    bytes: int
    fixed: int
    per_token: int
    windows: list[LimitedDict]
    strides: list[LimitedDict]


class CachePartDict(TypedDict):
    """`kv_cache` of a memory report."""

    bytes: int
    dtype: str
    latent: bool
    bytes_per_token: int
    per_sequence: PerSequenceDict


class StatePartDict(TypedDict):
    """`state` of a memory report."""

    bytes: int
    per_sequence: int


class CachesDict(TypedDict):
    """The two parts of a memory report that a model remembers of its tokens."""

    kv_cache: CachePartDict
    state: StatePartDict


class LogitsDict(TypedDict):
    """Working memory for logits."""

    bytes: int
    tokens: int
    vocabulary: int
    dtype: str


class ActivationsDict(TypedDict):
    """Working memory for activations."""

    bytes: int
    tokens: int
    channels: int
    dtype: str


class ScoresDict(TypedDict):
    """Working memory for the scores of eager attention."""

    bytes: int
    heads: int


class WorkingSizesDict(TypedDict):
    """Working memory without its arithmetic."""

    bytes: int
    estimate: bool
    logits: LogitsDict
    activations: ActivationsDict
    scores: ScoresDict


class WorkingPartDict(WorkingSizesDict):
    """`working` of a memory report."""

    how: list[str]


class OverheadPartDict(TypedDict):
    """`overhead` of a memory report."""

    bytes: int
    estimate: bool


class BytesPartDict(TypedDict):
    """One part of a device's memory."""

    bytes: int


class RuleShareDict(TypedDict):
    """Memory one device holds under one sharding rule."""

    tensors: int
    bytes: int
    weights: list[str]


class StageShareDict(TypedDict):
    """Memory of the fullest device of a pipeline stage."""

    first_layer: int
    layers: int
    weights_bytes: int
    kv_cache_bytes: int
    state_bytes: int
    working_bytes: int
    overhead_bytes: int
    total_bytes: int


class StageLoadDict(TypedDict):
    """Memory of the fullest device of a pipeline stage, by part; the fullest stage goes into `per_device`."""

    weights: BytesPartDict
    kv_cache: BytesPartDict
    state: BytesPartDict
    working: WorkingSizesDict
    overhead: OverheadPartDict
    total: BytesPartDict


class PerDeviceDict(TypedDict):
    """`per_device` of a memory report."""

    devices: int
    stage: int
    weights: BytesPartDict
    kv_cache: BytesPartDict
    state: BytesPartDict
    working: WorkingPartDict
    overhead: OverheadPartDict
    total: BytesPartDict
    sharding: dict[str, RuleShareDict]
    stages: list[StageShareDict]


class TotalPartDict(TypedDict):
    """`total` of a memory report."""

    bytes: int


class MemoryReportDict(AnswerDict):
    """The answer of `memory`."""

    model: ModelInfoDict
    warnings: list[str]
    notes: list[str]
    assumptions: AssumptionInfoDict
    weights: WeightsPartDict
    kv_cache: CachePartDict
    state: StatePartDict
    working: WorkingPartDict
    overhead: OverheadPartDict
    total: TotalPartDict
    per_device: PerDeviceDict
