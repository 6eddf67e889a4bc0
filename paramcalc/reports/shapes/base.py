"""Types of the parts that several reports share."""

from __future__ import annotations

from typing import Literal, TypedDict

Status = Literal["exact", "approximate"]


class AnswerDict(TypedDict):
    """Keys with which every answer begins."""

    schema_version: int
    version: str


class ModelInfoDict(TypedDict):
    """`model` of a report."""

    name: str
    family: str
    architecture: str
    source: str
    status: Status
    dtype: str
