"""The schema of a trace: a model step by step."""

from __future__ import annotations

from pydantic import Field

from paramcalc.reports.base import Answer, ModelInfo, Report
from paramcalc.reports.flops import SettingInfo


class TraceStep(Report):
    """One step of a block."""

    name: str
    shape: tuple[int, ...] | None = Field(description="what it puts out; null where it only adds or scales")
    parameters: int = Field(description="of one layer; of all its experts")
    flops: int = Field(description="for the whole batch, of one layer")
    kept_bytes: int = Field(
        description="of keys, values and states that it makes, for the whole batch, in one of the layer's caches"
    )
    add: bool = Field(description="whether it is a residual: what came in is added")
    note: str


class TraceBlock(Report):
    """A part of the model, or one layer of a kind."""

    name: str
    kind: str = Field(description="pattern of a layer")
    role: str = Field(description="of its stack; empty for what is no layer")
    layers: int = Field(description="how many layers are of this kind; 0 for what is no layer")
    passes: int = Field(
        description="how often a token passes through layers of this kind; more than there are if shared"
    )
    caches: int = Field(
        description="how many of these passes keep what they have seen, or a state, apart from the others"
    )
    shape_in: tuple[int, ...]
    shape_out: tuple[int, ...]
    steps: tuple[TraceStep, ...]


class TraceReport(Answer):
    """A model step by step, one layer of each kind."""

    model: ModelInfo
    warnings: tuple[str, ...]
    assumptions: SettingInfo
    blocks: tuple[TraceBlock, ...]
