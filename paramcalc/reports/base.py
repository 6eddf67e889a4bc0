"""Base classes of the JSON contract: frozen models, dumped as they are; counts and bytes are integers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.reports.shapes.base import Status as Status


class Report(BaseModel):
    """Base of all reports."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Answer(Report):
    """Base of the reports that are an answer as a whole."""

    schema_version: int = SCHEMA_VERSION
    version: str = __version__


class ModelInfo(Report):
    """Which model was counted, as what, and how far the figures are to be trusted."""

    name: str
    family: str
    architecture: str = Field(description="class of the reference implementation that is counted")
    source: str
    status: Status = Field(description="exact: equal to the reference class to the last parameter")
    dtype: str
