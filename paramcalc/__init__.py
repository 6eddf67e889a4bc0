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
    from paramcalc.compute.report import FlopsReport, TraceReport
    from paramcalc.compute.trace import trace
    from paramcalc.footprint.fit import fit
    from paramcalc.footprint.fit_report import FitReport
    from paramcalc.footprint.memory import memory
    from paramcalc.footprint.report import MemoryReport
    from paramcalc.report import CountReport
    from paramcalc.scaling.compare import compare
    from paramcalc.scaling.design import design
    from paramcalc.scaling.report import DesignReport, ScaleReport
    from paramcalc.scaling.report_compare import CompareReport
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

# Loaded when asked for: a report's schema costs more to load than a count, and a JSON answer does without it.
_LAZY = {
    "CompareReport": "paramcalc.scaling.report_compare",
    "compare": "paramcalc.scaling.compare",
    "CountReport": "paramcalc.report",
    "DesignReport": "paramcalc.scaling.report",
    "FitReport": "paramcalc.footprint.fit_report",
    "fit": "paramcalc.footprint.fit",
    "FlopsReport": "paramcalc.compute.report",
    "MemoryReport": "paramcalc.footprint.report",
    "ScaleReport": "paramcalc.scaling.report",
    "design": "paramcalc.scaling.design",
    "flops": "paramcalc.compute.flops",
    "TraceReport": "paramcalc.compute.report",
    "memory": "paramcalc.footprint.memory",
    "trace": "paramcalc.compute.trace",
    "scale": "paramcalc.scaling.sweep",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
