"""The memory fold: bytes of a model under assumptions. It knows no families and no component types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramcalc.assumptions import Assumptions, accepts_assumptions, assume, assumption_info
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.counting.count import model_info
from paramcalc.footprint import cache, inference_activations, per_device
from paramcalc.model import Model
from paramcalc.storage import weights

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from paramcalc.assumptions import AssumptionOptions
    from paramcalc.reports.memory import MemoryReport
    from paramcalc.reports.shapes.memory import MemoryReportDict, WorkingPartDict


@accepts_assumptions
def memory(model: Model, *, context: int, **assumptions: Unpack[AssumptionOptions]) -> MemoryReport:
    """Memory in bytes of a model that serves `batch` sequences of `context` tokens.

    The parts and their total are for one undivided copy of the model; `per_device` is the most loaded device. Further
    assumptions are the fields of `Assumptions`. Raises ParamcalcError for an unknown format or assumption, with the
    choices.
    """
    from paramcalc.reports.memory import MemoryReport

    if not isinstance(model, Model):
        raise ParamcalcError(f"memory wants a Model, not a {type(model).__name__}", "make one with paramcalc.load(...)")
    return MemoryReport.model_validate(memory_figures(model, assume(context=context, **assumptions)))


def memory_figures(model: Model, assumed: Assumptions) -> MemoryReportDict:
    """The memory as a dict with the keys and the order of `MemoryReport`."""
    plan = weights.storage_plan(model, assumed)
    stored, caches = weights.weights_figures(plan), cache.cache_figures(model, assumed)
    kv_cache, state, working = caches["kv_cache"], caches["state"], _working(model, assumed)
    total = stored["bytes"] + kv_cache["bytes"] + state["bytes"] + working["bytes"] + assumed.overhead
    doubts, info = cache.cache_approximation_reasons(model, assumed), model_info(model)
    if doubts:
        info["status"] = "approximate"
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": info,
        "warnings": [*model.warnings, *plan.warnings, *doubts],
        "notes": [*cache.cache_notes(model, assumed), *model.context_notes(assumed.context)],
        "assumptions": assumption_info(assumed),
        "weights": stored,
        "kv_cache": kv_cache,
        "state": state,
        "working": working,
        "overhead": {"bytes": assumed.overhead, "estimate": True},
        "total": {"bytes": total},
        "per_device": per_device.per_device_figures(model, assumed),
    }


def _working(model: Model, assumed: Assumptions) -> WorkingPartDict:
    shape = inference_activations.activation_shape(model)
    figures = inference_activations.activation_figures(shape, assumed, batch=assumed.batch)
    return {**figures, "how": inference_activations.activation_arithmetic(shape, figures)}
