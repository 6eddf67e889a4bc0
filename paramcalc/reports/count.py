"""The schemas of a count, of its explanation, and of the lists of presets, families and formats."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from paramcalc.reports.base import Answer, ModelInfo, Report, Status


class Parameters(Report):
    """Elements of trained tensors; tied tensors count once."""

    total: int
    active: int = Field(description="total minus the routed experts that one token does not use; with both embeddings")
    active_without_input_embedding: int = Field(
        description="active minus the input lookup tables, except those that a tied head multiplies by"
    )
    non_embedding: int = Field(description="total minus embeddings and output head")
    buffers: int = Field(description="elements of persistent buffers: saved, not trained, and not part of total")
    mtp: int = Field(description="parameters of multi-token-prediction modules that the reference class does not build")


class Share(Report):
    """Parameters of one category."""

    total: int
    active: int


class LayerRun(Report):
    """Equal consecutive layers; `total` and `active` are those of one layer."""

    stack: str
    repeat: int
    kind: str
    total: int
    active: int


class WeightBytes(Report):
    """Bytes of all parameters in one dtype. Buffers and quantised checkpoints are part of `memory` only."""

    dtype: str
    bytes: int


class CountReport(Answer):
    """The parameters of a model: how many, in which parts, and their bytes."""

    model: ModelInfo
    warnings: tuple[str, ...]
    parameters: Parameters
    components: dict[str, Share] = Field(description="by category; sums to parameters")
    layers: tuple[LayerRun, ...]
    tied: tuple[tuple[str, str], ...] = Field(description="(name, owner): counted once, at the owner")
    weights: WeightBytes


class Symbol(Report):
    """A symbol in the formulas: its value and its origin (a config field or a rule)."""

    symbol: str
    value: int
    origin: str


class Line(Report):
    """One line of the arithmetic: `name: formula = numbers = result`, indented by `level`."""

    level: int
    name: str
    formula: str = ""
    numbers: str = ""
    result: int | None = None
    remark: str = ""


class Explanation(Answer):
    """The arithmetic of a report, line by line, to be checked by hand."""

    model: ModelInfo
    warnings: tuple[str, ...]
    symbols: tuple[Symbol, ...]
    lines: tuple[Line, ...]


class PresetInfo(Report):
    """A model that ships with paramcalc."""

    name: str
    family: str
    status: Status
    total: int
    active: int
    published: dict[str, int | str] = Field(description="figures of the publisher, as published")
    source: str


class FamilyField(Report):
    """A config field that a family reads."""

    name: str = Field(description="canonical name")
    key: str = Field(description="the family's own key")
    default: str = Field(description="default of the reference class, as JSON")


class FamilyInfo(Report):
    """A supported model_type, and how it was verified."""

    name: str
    architecture: str = Field(description="reference class that is counted if the config names none")
    summary: str
    mixers: str = Field(description="kinds of attention and recurrence in its layers")
    goldens: int = Field(description="configs whose counts were taken from the reference and are tested")
    verified_by: str
    fields: tuple[FamilyField, ...] = ()


class DtypeInfo(Report):
    """A format of weights or caches."""

    name: str
    bits: str = Field(description="per value with its scales, in a 4096 x 4096 matrix; for mixed files the average")
    layout: str
    leaves: str = Field(description="tensors that stay unquantised by default")
    use: Literal["weights", "cache", "both"]
    exact: bool = Field(description="false: bytes are an estimate")
    source: str
