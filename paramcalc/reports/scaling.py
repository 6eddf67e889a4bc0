"""The schemas of sweeps and designs: what others build on. Figures bear the names they have in `count` and `memory`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.reports.base import ModelInfo, Report


class PointParameters(Report):
    """Scalars of trained tensors; tied ones once."""

    total: int
    active: int
    non_embedding: int
    embedding: int


class PointWeights(Report):
    """The weights as they are stored."""

    bytes: int


class PointCache(Report):
    """Keys and values, or what stands for them."""

    bytes_per_token: int


class PointState(Report):
    """Recurrent states of the batch."""

    bytes: int


class PointFlops(Report):
    """Operations, two for each multiplication and addition."""

    forward_per_token: int = Field(description="for one more token at the end of the context")
    training: int = Field(description="forward and backward over training_tokens, causal, in sequences of the context")
    training_tokens: int


class Latency(Report):
    """One decoding step of the batch by the roofline, an estimate."""

    device: str
    moved_bytes: int = Field(description="weights that the batch uses, caches and states")
    memory_ns: int | None
    compute_ns: int | None
    launch_ns: int = Field(description="what each layer costs whatever its width")
    step_ns: int | None
    estimate: bool


class PointFigures(Report):
    """What one compares models by."""

    parameters: PointParameters
    embedding_share: float = Field(description="of embeddings in the total")
    weights: PointWeights
    kv_cache: PointCache
    state: PointState
    flops: PointFlops
    depth: int = Field(description="layers that one token passes one after the other")
    latency: Latency | None


class Point(Report):
    """One model of a sweep, or why there is none."""

    at: dict[str, Any] = Field(description="its place on the axes")
    valid: bool
    problem: str | None
    fields: dict[str, Any] = Field(description="config fields in which it differs from the base")
    parameters: PointParameters | None = None
    embedding_share: float | None = None
    weights: PointWeights | None = None
    kv_cache: PointCache | None = None
    state: PointState | None = None
    flops: PointFlops | None = None
    depth: int | None = None
    latency: Latency | None = None


class Reference(PointFigures):
    """A published model, to set beside those of a sweep."""

    ladder: str
    name: str = Field(description="of the preset")
    width: int
    aspect_ratio: float = Field(description="width / depth")


class RuleInfo(Report):
    """How fields follow the width."""

    heads: str
    kv_heads: str
    ffn: str
    multiple_of: int | None


class LatencyInfo(Report):
    """What estimates of decoding steps rest on."""

    bandwidth_gb_s: int | None
    bf16_tflops: int | None
    launches_per_layer: int
    launch_ns: int = Field(description="from one kernel to the next")
    routing: str = Field(description="how the tokens of a batch pick their experts")


class SweepAssumptions(Report):
    """Under which assumptions the figures hold."""

    context: int
    batch: int
    dtype: str | None = Field(description="of all weights; null: in the formats of the quantised checkpoint")
    rules: RuleInfo
    training_tokens: int | None = Field(description="20 for each parameter that a token uses where null")
    gpu: str | None
    latency: LatencyInfo | None


class ScaleReport(Report):
    """A grid of models around a base."""

    schema_version: int = SCHEMA_VERSION
    version: str = __version__
    model: ModelInfo
    warnings: tuple[str, ...]
    assumptions: SweepAssumptions
    base: PointFigures
    axes: dict[str, list[Any]]
    rows: tuple[Point, ...]
    overlay: tuple[Reference, ...] = Field((), description="published models")


class DesignPoint(Point):
    """The model of one depth that comes closest to the budget."""

    deviation: int | None = Field(description="from the budget, in its unit; null without one")
    aspect_ratio: float | None = Field(description="width / depth")


class GoalInfo(Report):
    """What the models are to come close to."""

    budget: int | None
    match: str
    at_most_bytes: int | None = Field(description="on the device, with caches at the context")
    solve: str = Field(description="the field that is sought")


class DesignReport(Report):
    """Models that come closest to a budget, one for each depth."""

    schema_version: int = SCHEMA_VERSION
    version: str = __version__
    model: ModelInfo
    warnings: tuple[str, ...]
    assumptions: SweepAssumptions
    goal: GoalInfo
    rows: tuple[DesignPoint, ...]
    best: int | None = Field(description="number of the row that comes closest")
    overlay: tuple[Reference, ...] = Field((), description="published models")
