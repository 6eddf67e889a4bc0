"""Types of a FLOP report as a dict."""

from __future__ import annotations

from typing import TypedDict

from paramcalc.reports.shapes.base import AnswerDict, ModelInfoDict, Status


class SettingInfoDict(TypedDict):
    """`assumptions` of `flops` and `trace`."""

    tokens: int
    context: int
    source: int
    batch: int
    causal: bool
    counting: str


class WorkDict(TypedDict):
    """FLOPs by kind of product."""

    total: int
    matmul: int
    attention: int
    convolution: int
    recurrence: int


class TrainingDict(TypedDict):
    """FLOPs of forward and backward pass together."""

    total: int
    with_recomputation: int


class TermDict(TypedDict):
    """FLOPs of one matrix, or of one product of activations."""

    name: str
    category: str
    term: str
    copies: int
    flops: int


class RulesDict(TypedDict):
    """Training FLOPs by published rules of thumb."""

    six_nd: int
    six_nd_non_embedding: int
    palm: int


class FlopsReportDict(AnswerDict):
    """The answer of `flops`."""

    model: ModelInfoDict
    status: Status
    warnings: list[str]
    notes: list[str]
    assumptions: SettingInfoDict
    forward: WorkDict
    per_token: WorkDict
    backward: WorkDict
    training: TrainingDict
    components: dict[str, WorkDict]
    terms: list[TermDict]
    rules: RulesDict
