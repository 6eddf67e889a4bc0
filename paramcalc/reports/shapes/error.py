"""Types of a failure as a dict."""

from __future__ import annotations

from typing import TypedDict


class ErrorInfoDict(TypedDict):
    """`error` of a failure."""

    message: str
    hint: str
    exit_code: int


class ErrorReportDict(TypedDict):
    """The answer of a command that failed."""

    error: ErrorInfoDict
