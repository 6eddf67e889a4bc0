"""Types of a count as a dict."""

from __future__ import annotations

from typing import TypedDict

from paramcalc.reports.shapes.base import AnswerDict, ModelInfoDict


class ParametersDict(TypedDict):
    """`parameters` of a count."""

    total: int
    active: int
    active_without_input_embedding: int
    non_embedding: int
    buffers: int
    mtp: int


class ShareDict(TypedDict):
    """Parameters of one category."""

    total: int
    active: int


class LayerRunDict(TypedDict):
    """Equal consecutive layers; `total` and `active` are those of one layer."""

    stack: str
    repeat: int
    kind: str
    total: int
    active: int


class WeightBytesDict(TypedDict):
    """`weights` of a count."""

    dtype: str
    bytes: int


class CountReportDict(AnswerDict):
    """The answer of `count`."""

    model: ModelInfoDict
    warnings: list[str]
    parameters: ParametersDict
    components: dict[str, ShareDict]
    layers: list[LayerRunDict]
    tied: list[list[str]]
    weights: WeightBytesDict
