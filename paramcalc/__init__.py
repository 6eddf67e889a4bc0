"""paramcalc: exact parameter counts of transformer and hybrid models, computed from a config."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from paramcalc.base.errors import ParamcalcError
from paramcalc.base.version import __version__
from paramcalc.counting.count import count
from paramcalc.loading.load import load
from paramcalc.model import Model

if TYPE_CHECKING:
    from paramcalc.compute.flops import flops
    from paramcalc.compute.trace import trace
    from paramcalc.footprint.fit import fit
    from paramcalc.footprint.memory import memory
    from paramcalc.reports.compare import CompareReport
    from paramcalc.reports.count import CountReport
    from paramcalc.reports.fit import FitReport
    from paramcalc.reports.flops import FlopsReport
    from paramcalc.reports.memory import MemoryReport
    from paramcalc.reports.scaling import DesignReport, ScaleReport
    from paramcalc.reports.trace import TraceReport
    from paramcalc.scaling.compare import compare
    from paramcalc.scaling.design import design
    from paramcalc.scaling.sweep import scale

__all__ = [
    "CompareReport",
    "CountReport",
    "DesignReport",
    "FitReport",
    "FlopsReport",
    "MemoryReport",
    "Model",
    "ParamcalcError",
    "ScaleReport",
    "TraceReport",
    "__version__",
    "compare",
    "count",
    "design",
    "fit",
    "flops",
    "load",
    "memory",
    "scale",
    "trace",
]

# Imported on first use: a report class takes longer to import than a count takes to compute, and JSON does not need it.
_LAZY = {
    "CompareReport": "paramcalc.reports.compare",
    "compare": "paramcalc.scaling.compare",
    "CountReport": "paramcalc.reports.count",
    "DesignReport": "paramcalc.reports.scaling",
    "FitReport": "paramcalc.reports.fit",
    "fit": "paramcalc.footprint.fit",
    "FlopsReport": "paramcalc.reports.flops",
    "MemoryReport": "paramcalc.reports.memory",
    "ScaleReport": "paramcalc.reports.scaling",
    "design": "paramcalc.scaling.design",
    "flops": "paramcalc.compute.flops",
    "TraceReport": "paramcalc.reports.trace",
    "memory": "paramcalc.footprint.memory",
    "trace": "paramcalc.compute.trace",
    "scale": "paramcalc.scaling.sweep",
}


if not TYPE_CHECKING:  # with it, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            return getattr(import_module(_LAZY[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
