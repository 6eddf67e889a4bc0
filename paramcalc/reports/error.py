"""The schema of a failure, which a command writes with --json instead of its answer."""

from __future__ import annotations

from pydantic import Field

from paramcalc.reports.base import Report


class ErrorInfo(Report):
    """Why a command failed."""

    message: str = Field(description="what is wrong, and where")
    hint: str = Field(description="what to do about it")
    exit_code: int = Field(description="2: the command could not run; 1: it ran, and the answer is no")


class ErrorReport(Report):
    """The answer of a command that failed."""

    error: ErrorInfo
