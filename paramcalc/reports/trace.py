"""The schema of a trace."""

from __future__ import annotations

from pydantic import Field

from paramcalc.reports.base import Answer, ModelInfo, Report
from paramcalc.reports.flops import SettingInfo


class TraceStep(Report):
    """One step of a block."""

    name: str
    shape: tuple[int, ...] | None = Field(description="output shape; null if the step only adds or scales")
    parameters: int = Field(description="of one layer, all experts included")
    flops: int = Field(description="of one layer, for the whole batch")
    kept_bytes: int = Field(
        description="keys, values and states that the step writes, for the whole batch, in one of the layer's caches"
    )
    add: bool = Field(description="true: a residual connection, which adds the block's input")
    note: str


class TraceBlock(Report):
    """A part of the model outside its layers, or one layer of a kind."""

    name: str
    kind: str = Field(description="kind of the layer: its mixers and feed-forward network")
    role: str = Field(description="role of the layer's stack; empty outside layers")
    layers: int = Field(description="number of layers of this kind; 0 outside layers")
    passes: int = Field(
        description="passes of a token through layers of this kind; more than `layers` if weights are shared"
    )
    caches: int = Field(description="passes with a cache or state of their own")
    shape_in: tuple[int, ...]
    shape_out: tuple[int, ...]
    steps: tuple[TraceStep, ...]


class TraceReport(Answer):
    """The steps of a model, with one layer of each kind."""

    model: ModelInfo
    warnings: tuple[str, ...]
    assumptions: SettingInfo
    blocks: tuple[TraceBlock, ...]
