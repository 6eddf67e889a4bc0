"""The schema of a memory report: what others build on. All bytes are exact integers."""

from __future__ import annotations

from pydantic import Field

from paramcalc.report import ModelInfo, Report
from paramcalc.version import SCHEMA_VERSION, __version__


class AssumptionInfo(Report):
    """Under which assumptions the figures hold."""

    context: int = Field(description="tokens of each sequence, prompt and answer")
    batch: int = Field(description="sequences at a time")
    source: int | None = Field(description="tokens an encoder has read; as many as context where null")
    dtype: str | None = Field(description="format of the weights; the checkpoint's own where null")
    dtype_of: tuple[tuple[str, str], ...] = Field(description="(category or path, format)")
    kv_cache_dtype: str | None = Field(description="dtype of keys and values; the checkpoint's where null")
    v_cache_dtype: str | None = Field(description="dtype of values where it is not that of keys")
    state_dtype: str | None = Field(description="dtype of recurrent states; the reference's where null")
    kv_policy: str
    mla: str
    conv_columns: str
    tensor_parallel: int


class FormatShare(Report):
    """What is stored in one format."""

    tensors: int
    parameters: int = Field(description="logical: what the unquantised tensors hold")
    bytes: int


class WeightsPart(Report):
    """The weights as they are stored."""

    bytes: int
    by_format: dict[str, FormatShare]
    by_category: dict[str, int]


class Limited(Report):
    """Entries that do not go on growing with the context, or grow slower."""

    tokens: int = Field(description="entries at most, or tokens for each entry")
    bytes_per_entry: int


class PerSequence(Report):
    """What one sequence keeps: fixed + per_token x T, windows up to their size, strides one entry for so many."""

    bytes: int
    fixed: int
    per_token: int
    windows: tuple[Limited, ...]
    strides: tuple[Limited, ...]


class CachePart(Report):
    """Keys and values, or what stands for them."""

    bytes: int
    dtype: str = Field(description="of keys, and of values where it is another")
    latent: bool = Field(description="whether some of the attention is latent, so that `mla` matters")
    bytes_per_token: int = Field(description="what each token adds while it is inside all windows")
    per_sequence: PerSequence


class StatePart(Report):
    """Recurrent and convolution states, which do not grow."""

    bytes: int
    per_sequence: int


class TotalPart(Report):
    """The sum."""

    bytes: int


class MemoryReport(Report):
    """What a model takes in bytes, and under which assumptions."""

    schema_version: int = SCHEMA_VERSION
    version: str = __version__
    model: ModelInfo
    warnings: tuple[str, ...]
    assumptions: AssumptionInfo
    weights: WeightsPart
    kv_cache: CachePart
    state: StatePart
    total: TotalPart
