"""paramcalc: exact parameter counts of transformer and hybrid models, by arithmetic, from a config alone."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from paramcalc.count import count
from paramcalc.errors import ParamcalcError
from paramcalc.loading import load
from paramcalc.model import Model
from paramcalc.version import __version__

if TYPE_CHECKING:
    from paramcalc.compute.flops import flops
    from paramcalc.compute.report import FlopsReport
    from paramcalc.footprint.fit import fit
    from paramcalc.footprint.fit_report import FitReport
    from paramcalc.footprint.memory import memory
    from paramcalc.footprint.report import MemoryReport
    from paramcalc.report import CountReport

__all__ = [
    "CountReport",
    "FitReport",
    "FlopsReport",
    "MemoryReport",
    "Model",
    "ParamcalcError",
    "__version__",
    "count",
    "fit",
    "flops",
    "load",
    "memory",
]

# Loaded when asked for: a report's schema costs more to load than a count, and a JSON answer does without it.
_LAZY = {
    "CountReport": "paramcalc.report",
    "FitReport": "paramcalc.footprint.fit_report",
    "fit": "paramcalc.footprint.fit",
    "FlopsReport": "paramcalc.compute.report",
    "MemoryReport": "paramcalc.footprint.report",
    "flops": "paramcalc.compute.flops",
    "memory": "paramcalc.footprint.memory",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
