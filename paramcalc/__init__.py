"""paramcalc: exact parameter counts of transformer and hybrid models, by arithmetic, from a config alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paramcalc.count import count
from paramcalc.errors import ParamcalcError
from paramcalc.loading import load
from paramcalc.model import Model
from paramcalc.version import __version__

if TYPE_CHECKING:
    from paramcalc.report import CountReport

__all__ = ["CountReport", "Model", "ParamcalcError", "__version__", "count", "load"]


def __getattr__(name: str) -> Any:
    # The report's schema costs more to load than a count; a JSON answer does without it.
    if name == "CountReport":
        from paramcalc.report import CountReport

        return CountReport
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
