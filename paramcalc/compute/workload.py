"""Checks of the requested workload."""

from __future__ import annotations

from typing import Any, get_args

from paramcalc.assumptions import one_of
from paramcalc.base.errors import ParamcalcError
from paramcalc.tree.workload import Counting, Workload


def check_workload(
    *,
    tokens: int,
    batch: int = 1,
    context: int | None = None,
    source: int | None = None,
    causal: bool = False,
    counting: str = "needed",
) -> Workload:
    """The workload of these arguments, checked. `context` defaults to `tokens`: no tokens are cached.

    Raises ParamcalcError for a size that is not a positive integer, for a context shorter than the new tokens, and for
    an unknown `counting`.
    """
    sizes: dict[str, Any] = {"tokens": tokens, "batch": batch, "context": context, "source": source}
    for name, value in sizes.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ParamcalcError(f"{name} must be a whole number from 1 on, not {value!r}", "write it like 8")
    if not isinstance(causal, bool):
        raise ParamcalcError(f"causal must be True or False, not {causal!r}")
    total = tokens if context is None else context
    if total < tokens:
        raise ParamcalcError(
            f"context ({total:,}) is less than the new tokens ({tokens:,})", "the context includes the new tokens"
        )
    return Workload(
        tokens=tokens,
        context=total,
        source=source or 0,
        batch=batch,
        causal=causal,
        counting=one_of(counting, get_args(Counting), "counting"),  # type: ignore[arg-type]  # one_of has checked it
    )
