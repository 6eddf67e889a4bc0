"""The schema of a comparison."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.reports.base import ModelInfo, Report
from paramcalc.reports.shapes.compare import ComparedReport, Number


class Compared(Report):
    """One figure of every model, in the order of `models`."""

    report: ComparedReport = Field(
        description="report that states the figure: `name` is its path there; shape is derived from the component tree"
    )
    name: str
    values: tuple[Number | tuple[Number, ...] | None, ...] = Field(
        description="exact integers; d_model / layers and the FFN ratio to six significant digits; all values, "
        "ascending, if layers differ; null if the model has no such part"
    )
    differences: tuple[Number | None, ...] = Field(description="value minus that of the first model")
    ratios: tuple[float | None, ...] = Field(description="value over that of the first model, six significant digits")
    differs: bool = Field(description="compared before rounding")


class Assumed(Report):
    """Number of tokens for which bytes and FLOPs hold."""

    context: int = Field(description="tokens of one sequence, all of them new")


class FieldChange(Report):
    """A config field whose value differs; a field that is left out has its default."""

    name: str = Field(description="canonical name; dots separate sections")
    old: Any
    new: Any


class ChangeStep(Report):
    """Fields that were changed together, because one alone gives no valid model, and their effect."""

    fields: tuple[FieldChange, ...]
    difference: int = Field(description="parameters added by this step")
    components: dict[str, int] = Field(description="the same by category, changed ones only; sums to difference")


class Change(Report):
    """The changes from the first to the second of two models of one family, in the order of the second file."""

    family: str
    steps: tuple[ChangeStep, ...] = Field(description="applied one after the other; their differences sum to the total")
    difference: int = Field(description="parameters of the second model minus those of the first")
    components: dict[str, int]


class CompareReport(Report):
    """Several models side by side."""

    schema_version: int = SCHEMA_VERSION
    version: str = __version__
    models: tuple[ModelInfo, ...]
    warnings: tuple[str, ...] = Field(description="each begins with the model's name, or its source if names repeat")
    notes: tuple[str, ...]
    assumptions: Assumed
    rows: tuple[Compared, ...]
    change: Change | None = Field(description="null unless two models of one family are compared")
