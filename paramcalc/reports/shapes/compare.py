"""Types of a comparison as a dict."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from paramcalc.reports.shapes.base import AnswerDict, ModelInfoDict

ComparedReport = Literal["count", "memory", "flops", "shape"]
Number = int | float


class ComparedDict(TypedDict):
    """One figure of every model."""

    report: ComparedReport
    name: str
    values: list[Number | list[Number] | None]
    differences: list[Number | None]
    ratios: list[float | None]
    differs: bool


class AssumedDict(TypedDict):
    """`assumptions` of a comparison."""

    context: int


class FieldChangeDict(TypedDict):
    """A config field that differs between two models."""

    name: str
    old: Any
    new: Any


class DifferenceDict(TypedDict):
    """Additional parameters, in all and by category."""

    difference: int
    components: dict[str, int]


class ChangeStepDict(TypedDict):
    """Fields that were changed together, and their effect."""

    fields: list[FieldChangeDict]
    difference: int
    components: dict[str, int]


class ChangeDict(TypedDict):
    """The changes between two models of one family."""

    family: str
    steps: list[ChangeStepDict]
    difference: int
    components: dict[str, int]


class CompareReportDict(AnswerDict):
    """The answer of `compare`."""

    models: list[ModelInfoDict]
    warnings: list[str]
    notes: list[str]
    assumptions: AssumedDict
    rows: list[ComparedDict]
    change: ChangeDict | None
