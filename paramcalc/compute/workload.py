"""The workload that a caller asks for, checked."""

from __future__ import annotations

from typing import Any, get_args

from paramcalc.assumptions import one_of
from paramcalc.base.errors import ParamcalcError
from paramcalc.tree.workload import Counting, Workload


def workload(
    *,
    tokens: int,
    batch: int = 1,
    context: int | None = None,
    source: int | None = None,
    causal: bool = False,
    counting: str = "needed",
) -> Workload:
    """Check what is asked for: `context` is `tokens` unless there is a past.

    Raises ParamcalcError for sizes that are not whole numbers from 1 on, for fewer tokens of context than new ones, and
    for unknown words.
    """
    asked: dict[str, Any] = {"tokens": tokens, "batch": batch, "context": context, "source": source}
    for name, value in asked.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ParamcalcError(f"{name} must be a whole number from 1 on, not {value!r}", "write it like 8")
    if not isinstance(causal, bool):
        raise ParamcalcError(f"causal must be True or False, not {causal!r}")
    whole = tokens if context is None else context
    if whole < tokens:
        raise ParamcalcError(
            f"context ({whole:,}) is less than the new tokens ({tokens:,})", "the context includes the new tokens"
        )
    return Workload(
        tokens=tokens,
        context=whole,
        source=source or 0,
        batch=batch,
        causal=causal,
        counting=one_of(counting, get_args(Counting), "counting"),  # type: ignore[arg-type]  # it is one of them
    )
