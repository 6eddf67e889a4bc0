"""The schemas of sweeps and designs. Figures have the names that they have in `count`, `memory` and `flops`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.reports.base import ModelInfo, Report


class PointParameters(Report):
    """Elements of trained tensors; tied tensors count once."""

    total: int
    active: int
    non_embedding: int
    embedding: int


class PointWeights(Report):
    """The weights as stored."""

    bytes: int


class PointCache(Report):
    """The KV cache: keys and values, or their latent form."""

    bytes_per_token: int


class PointState(Report):
    """Recurrent states of the batch."""

    bytes: int


class PointFlops(Report):
    """FLOPs, two for each multiply-add."""

    forward_per_token: int = Field(description="of one more token at the end of the context")
    training: int = Field(description="forward and backward over training_tokens, causal, in sequences of the context")
    training_tokens: int


class Latency(Report):
    """Estimated time of one decoding step of the batch, by the roofline model."""

    device: str
    moved_bytes: int = Field(description="weights that the batch uses, caches and states")
    memory_ns: int | None
    compute_ns: int | None
    launch_ns: int = Field(description="kernel launches, which depend on the number of layers and not on their width")
    step_ns: int | None
    estimate: bool


class PointFigures(Report):
    """Figures by which models are compared."""

    parameters: PointParameters
    embedding_share: float = Field(description="embedding parameters over all parameters")
    weights: PointWeights
    kv_cache: PointCache
    state: PointState
    flops: PointFlops
    depth: int = Field(description="layers that a token passes through in sequence")
    latency: Latency | None


class Point(Report):
    """One model of a sweep, or the reason why it is not possible."""

    at: dict[str, Any] = Field(description="position on the axes")
    valid: bool
    problem: str | None
    fields: dict[str, Any] = Field(description="config fields that differ from the base")
    parameters: PointParameters | None = None
    embedding_share: float | None = None
    weights: PointWeights | None = None
    kv_cache: PointCache | None = None
    state: PointState | None = None
    flops: PointFlops | None = None
    depth: int | None = None
    latency: Latency | None = None


class Reference(PointFigures):
    """A published model, for comparison with those of a sweep."""

    ladder: str
    name: str = Field(description="name of the preset")
    width: int
    aspect_ratio: float = Field(description="width / depth")


class RuleInfo(Report):
    """Rules by which fields follow the width."""

    heads: str
    kv_heads: str
    ffn: str
    multiple_of: int | None


class LatencyInfo(Report):
    """Constants behind the estimated time of a decoding step."""

    bandwidth_gb_s: int | None
    bf16_tflops: int | None
    launches_per_layer: int
    launch_ns: int = Field(description="time from one kernel to the next")
    routing: str = Field(description="distribution of a batch's tokens over the experts")


class SweepAssumptions(Report):
    """The assumptions under which the figures hold."""

    context: int
    batch: int
    dtype: str | None = Field(description="format of all weights; null: the formats of the quantised checkpoint")
    rules: RuleInfo
    training_tokens: int | None = Field(description="null: 20 for each active parameter")
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
    """The model of one depth that is closest to the budget."""

    deviation: int | None = Field(description="difference to the budget, in its unit; null without a budget")
    aspect_ratio: float | None = Field(description="width / depth")


class GoalInfo(Report):
    """The goal of the search."""

    budget: int | None
    match: str
    at_most_bytes: int | None = Field(description="limit on the device, caches at the context included")
    solve: str = Field(description="field that is varied")


class DesignReport(Report):
    """The models closest to a budget, one for each depth."""

    schema_version: int = SCHEMA_VERSION
    version: str = __version__
    model: ModelInfo
    warnings: tuple[str, ...]
    assumptions: SweepAssumptions
    goal: GoalInfo
    rows: tuple[DesignPoint, ...]
    best: int | None = Field(description="index of the closest row")
    overlay: tuple[Reference, ...] = Field((), description="published models")
