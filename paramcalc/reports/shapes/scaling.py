"""Types of sweeps and designs as dicts."""

from __future__ import annotations

from typing import Any, TypedDict

from paramcalc.reports.shapes.base import AnswerDict, ModelInfoDict


class PointParametersDict(TypedDict):
    """Parameters of one point."""

    total: int
    active: int
    non_embedding: int
    embedding: int


class PointWeightsDict(TypedDict):
    """Stored weights of one point."""

    bytes: int


class PointCacheDict(TypedDict):
    """KV cache of one point."""

    bytes_per_token: int


class PointStateDict(TypedDict):
    """Recurrent states of one point."""

    bytes: int


class PointFlopsDict(TypedDict):
    """FLOPs of one point."""

    forward_per_token: int
    training: int
    training_tokens: int


class LatencyDict(TypedDict):
    """Estimated time of one decoding step."""

    device: str
    moved_bytes: int
    memory_ns: int | None
    compute_ns: int | None
    launch_ns: int
    step_ns: int | None
    estimate: bool


class PointFiguresDict(TypedDict):
    """Figures by which models are compared."""

    parameters: PointParametersDict
    embedding_share: float
    weights: PointWeightsDict
    kv_cache: PointCacheDict
    state: PointStateDict
    flops: PointFlopsDict
    depth: int
    latency: LatencyDict | None


class PlaceDict(TypedDict):
    """Position of a point on the axes of a sweep."""

    at: dict[str, Any]


class VerdictDict(TypedDict):
    """Validity of a combination of fields."""

    valid: bool
    problem: str | None
    fields: dict[str, Any]


class OutcomeDict(VerdictDict, total=False):
    """A point without its position: the figures of a valid model, or only the problem."""

    parameters: PointParametersDict
    embedding_share: float
    weights: PointWeightsDict
    kv_cache: PointCacheDict
    state: PointStateDict
    flops: PointFlopsDict
    depth: int
    latency: LatencyDict | None


class PointDict(PlaceDict, OutcomeDict):
    """One row of a sweep."""


class ReferenceDict(PointFiguresDict):
    """A published model, for comparison with those of a sweep."""

    ladder: str
    name: str
    width: int
    aspect_ratio: float


class RuleInfoDict(TypedDict):
    """Rules by which fields follow the width."""

    heads: str
    kv_heads: str
    ffn: str
    multiple_of: int | None


class LatencyInfoDict(TypedDict):
    """Constants behind the estimated time of a decoding step."""

    bandwidth_gb_s: int | None
    bf16_tflops: int | None
    launches_per_layer: int
    launch_ns: int
    routing: str


class SweepAssumptionsDict(TypedDict):
    """`assumptions` of `scale` and `design`."""

    context: int
    batch: int
    dtype: str | None
    rules: RuleInfoDict
    training_tokens: int | None
    gpu: str | None
    latency: LatencyInfoDict | None


class ScaleReportDict(AnswerDict):
    """The answer of `scale`."""

    model: ModelInfoDict
    warnings: list[str]
    assumptions: SweepAssumptionsDict
    base: PointFiguresDict
    axes: dict[str, list[Any]]
    rows: list[PointDict]
    overlay: list[ReferenceDict]


class DesignPointDict(PointDict):
    """The closest model of one depth."""

    deviation: int | None
    aspect_ratio: float | None


class GoalInfoDict(TypedDict):
    """`goal` of a design."""

    budget: int | None
    match: str
    at_most_bytes: int | None
    solve: str


class DesignReportDict(AnswerDict):
    """The answer of `design`."""

    model: ModelInfoDict
    warnings: list[str]
    assumptions: SweepAssumptionsDict
    goal: GoalInfoDict
    rows: list[DesignPointDict]
    best: int | None
    overlay: list[ReferenceDict]
