"""The fold: from a model and its assumptions to bytes. No family names, no branch on a component's type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paramcalc.assumptions import Assumptions, accepts_assumptions, assume
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.counting.count import Figures, model_info
from paramcalc.footprint import cache, inference_activations, per_device, positions
from paramcalc.model import Model
from paramcalc.storage import weights

if TYPE_CHECKING:
    from paramcalc.reports.memory import MemoryReport


@accepts_assumptions
def memory(model: Model, *, context: int, **assumptions: Any) -> MemoryReport:
    """What a model takes in bytes while it answers `batch` sequences of `context` tokens.

    The parts and their total are of the model held once; `per_device` says what the fullest device holds.
    Further assumptions are the fields of `Assumptions`. Raises ParamcalcError for what is not understood, with the
    choices.
    """
    from paramcalc.reports.memory import MemoryReport

    if not isinstance(model, Model):
        raise ParamcalcError(f"memory wants a Model, not a {type(model).__name__}", "make one with paramcalc.load(...)")
    return MemoryReport.model_validate(memory_figures(model, assume(context=context, **assumptions)))


def memory_figures(model: Model, assumed: Assumptions) -> Figures:
    """The same as plain data: the keys and the order of `MemoryReport`."""
    plan = weights.storage_plan(model, assumed)
    parts = {
        "weights": weights.weights_figures(plan.stored) | {"estimate": plan.estimate},
        **cache.cache_figures(model, assumed),
        "working": _working(model, assumed),
        "overhead": {"bytes": assumed.overhead, "estimate": True},
    }
    doubts = cache.cache_doubts(model, assumed)
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": model_info(model) | ({"status": "approximate"} if doubts else {}),
        "warnings": [*model.warnings, *plan.warnings, *doubts],
        "notes": [*cache.cache_notes(model, assumed), *positions.beyond_max_positions(model, assumed.context)],
        "assumptions": assumed.values(),
        **parts,
        "total": {"bytes": sum(part["bytes"] for part in parts.values())},
        "per_device": per_device.per_device_figures(model, assumed),
    }


def _working(model: Model, assumed: Assumptions) -> Figures:
    work = inference_activations.activation_shape(model)
    found = inference_activations.activation_figures(work, assumed, batch=assumed.batch)
    return {**found, "how": inference_activations.activation_arithmetic(work, found)}
