"""The schema of a comparison: what others build on."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.reports.base import ModelInfo, Report

Number = int | float


class Compared(Report):
    """One figure of every model, in the order of `models`."""

    report: Literal["count", "memory", "flops", "shape"] = Field(
        description="whose figure it is: `name` is its path in that report; shape is read off the component tree"
    )
    name: str
    values: tuple[Number | tuple[Number, ...] | None, ...] = Field(
        description="exact integers; d_model / layers and the FFN's ratio to six significant digits; all, ascending, "
        "where layers differ; null where a model has no such thing"
    )
    differences: tuple[Number | None, ...] = Field(description="to the first model, whose own is 0")
    ratios: tuple[float | None, ...] = Field(description="to the first model, to six significant digits")
    differs: bool = Field(description="compared exactly, before anything is rounded")


class Assumed(Report):
    """For how many tokens bytes and work hold."""

    context: int = Field(description="tokens of one sequence, all of them new")


class FieldChange(Report):
    """A config field that does not mean the same in both files; one that is left out means its default."""

    name: str = Field(description="canonical name, in sections with dots")
    old: Any
    new: Any


class ChangeStep(Report):
    """Fields that were changed together, because one alone makes no model, and what that did."""

    fields: tuple[FieldChange, ...]
    difference: int = Field(description="parameters more than before this step")
    components: dict[str, int] = Field(description="the same by category, only what changed; sums to difference")


class Change(Report):
    """What led from the first to the second of two models of one family, in the order of the second file."""

    family: str
    steps: tuple[ChangeStep, ...] = Field(description="one after the other; their differences sum to the whole")
    difference: int = Field(description="parameters of the second minus those of the first")
    components: dict[str, int]


class CompareReport(Report):
    """Several models side by side."""

    schema_version: int = SCHEMA_VERSION
    version: str = __version__
    models: tuple[ModelInfo, ...]
    warnings: tuple[str, ...] = Field(description="under the model's name, or its source where names are shared")
    notes: tuple[str, ...]
    assumptions: Assumed
    rows: tuple[Compared, ...]
    change: Change | None = Field(description="null unless these are two models of one family")
