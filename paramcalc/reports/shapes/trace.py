"""Types of a trace as a dict."""

from __future__ import annotations

from typing import TypedDict

from paramcalc.reports.shapes.base import AnswerDict, ModelInfoDict
from paramcalc.reports.shapes.flops import SettingInfoDict


class TraceStepDict(TypedDict):
    """One step of a block."""

    name: str
    shape: list[int] | None
    parameters: int
    flops: int
    kept_bytes: int
    add: bool
    note: str


class TraceBlockDict(TypedDict):
    """A part of the model outside its layers, or one layer of a kind."""

    name: str
    kind: str
    role: str
    layers: int
    passes: int
    caches: int
    shape_in: list[int]
    shape_out: list[int]
    steps: list[TraceStepDict]


class TraceReportDict(AnswerDict):
    """The answer of `trace`."""

    model: ModelInfoDict
    warnings: list[str]
    assumptions: SettingInfoDict
    blocks: list[TraceBlockDict]
