"""Base classes of the JSON contract. Counts and bytes are integers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.reports.shapes.base import Status as Status


class Report(BaseModel):
    """Base of all reports and their parts."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Answer(Report):
    """Base of reports that answer a command."""

    schema_version: int = SCHEMA_VERSION
    version: str = __version__


class ModelInfo(Report):
    """The model, and how reliable its figures are."""

    name: str
    family: str
    architecture: str = Field(description="reference class whose parameters are counted")
    source: str
    status: Status = Field(description="exact: equal to the reference class to the last parameter")
    dtype: str
