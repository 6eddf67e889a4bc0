"""What paramcalc answers: frozen models whose dump is the JSON that others build on. Counts and bytes are integers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from paramcalc.reports.base import Answer, ModelInfo, Report, Status


class Parameters(Report):
    """Scalars of trained tensors; tied ones once."""

    total: int
    active: int = Field(description="total minus the routed experts one token does not use; both embeddings included")
    active_without_input_embedding: int = Field(
        description="active minus the lookup tables at the input, unless a tied head multiplies by them"
    )
    non_embedding: int = Field(description="total minus embeddings and output head")
    buffers: int = Field(description="elements of persistent buffers: saved with the model, not trained, not in total")
    mtp: int = Field(description="parameters of multi-token-prediction modules that the class does not build")


class Share(Report):
    """Parameters of one category."""

    total: int
    active: int


class LayerRun(Report):
    """Equal layers in a row; `total` and `active` are those of one layer."""

    stack: str
    repeat: int
    kind: str
    total: int
    active: int


class WeightBytes(Report):
    """Bytes of all parameters in one dtype. Buffers, and checkpoints that are quantised, are for `memory`."""

    dtype: str
    bytes: int


class CountReport(Answer):
    """How many parameters a model has, where they sit, and what they weigh."""

    model: ModelInfo
    warnings: tuple[str, ...]
    parameters: Parameters
    components: dict[str, Share] = Field(description="by category; sums to parameters")
    layers: tuple[LayerRun, ...]
    tied: tuple[tuple[str, str], ...] = Field(description="(name, owner): counted once, at the owner")
    weights: WeightBytes


class Symbol(Report):
    """A letter of the formulas: its value and the config field (or rule) it comes from."""

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
    """How a count comes about, so that a reader with pen and paper can follow."""

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
    published: dict[str, int | str] = Field(description="what the publisher states, as stated")
    source: str


class FamilyField(Report):
    """A config field that a family reads."""

    name: str = Field(description="canonical name")
    key: str = Field(description="the family's own key")
    default: str = Field(description="the class's default as JSON")


class FamilyInfo(Report):
    """A model_type that paramcalc understands, and how that was verified."""

    name: str
    architecture: str = Field(description="the reference class counted when the config names none")
    summary: str
    mixers: str = Field(description="kinds of attention and recurrence in its layers")
    goldens: int = Field(description="configs whose counts by the reference are tests")
    verified_by: str
    fields: tuple[FamilyField, ...] = ()


class DtypeInfo(Report):
    """A format that weights or caches can have."""

    name: str
    bits: str = Field(description="of one value with its scales, in a 4096 x 4096 matrix; of mixed files in all")
    layout: str
    leaves: str = Field(description="what it leaves as it is, where nothing else is said")
    use: Literal["weights", "cache", "both"]
    exact: bool = Field(description="false: bytes are an estimate")
    source: str
