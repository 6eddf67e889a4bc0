"""Fit of a model on a device: the verdict, the margin, the limits, and the changes that would make it fit.

Every answer evaluates the fold of `memory` for the most loaded device, under other assumptions. The bytes on a device
never decrease when context or batch grow, so bisection finds the largest that fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from paramcalc.assumptions import Assumptions, accepts_assumptions, assume
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.footprint import memory, per_device
from paramcalc.footprint.devices import Device, find_device, known_devices
from paramcalc.model import Model
from paramcalc.storage import weights

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from paramcalc.assumptions import AssumptionOptions
    from paramcalc.reports.fit import FitReport
    from paramcalc.reports.shapes.fit import (
        BestFormatDict,
        ChangeDict,
        DeviceInfoDict,
        FewestDevicesDict,
        FitReportDict,
    )
    from paramcalc.reports.shapes.memory import WeightsPartDict

DEFAULT_UTILIZATION = "0.9"  # default of gpu_memory_utilization in vLLM: the usable share of a device's memory
UNLIMITED = 2**30  # tokens or sequences; a model that fits so many has no limit
# Candidate formats; the largest that fits is the best. A format that the model cannot have is skipped.
FORMAT_LADDER = (
    *("bfloat16", "q8_0", "fp8", "q6_k", "q5_k_m", "q4_k_m"),
    *("nf4", "gptq-int4-g128", "awq-int4-g128", "mxfp4", "q3_k_m", "q2_k", "iq2_xxs"),
)
# Candidate numbers of devices: tensor parallelism within a node, as far as heads divide, then pipeline stages.
DEVICE_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
NODE_SIZES = (8, 4, 2, 1)


@accepts_assumptions
def fit(
    model: Model,
    *,
    gpu: str | Device,
    context: int,
    gpu_memory_utilization: str | float = DEFAULT_UTILIZATION,
    **others: Unpack[AssumptionOptions],
) -> FitReport:
    """The fit of a model on devices of one type, serving `batch` sequences of `context` tokens.

    `gpu` is a name in `paramcalc gpus` or a size such as `24GiB`; further assumptions are those of `memory`.
    Raises ParamcalcError for an unknown device, format or assumption, with the choices.
    """
    from paramcalc.reports.fit import FitReport

    if not isinstance(model, Model):
        raise ParamcalcError(f"fit wants a Model, not a {type(model).__name__}", "make one with paramcalc.load(...)")
    device = gpu if isinstance(gpu, Device) else find_device(gpu)
    figures = fit_figures(model, assume(context=context, **others), device, utilization(gpu_memory_utilization))
    return FitReport.model_validate(figures)


def utilization(given: str | float) -> Decimal:
    """The usable share of a device's memory. Raises ParamcalcError unless it is above 0 and at most 1."""
    try:
        share = Decimal(str(given))
    except InvalidOperation:
        share = Decimal(0)
    if not share.is_finite() or not 0 < share <= 1:
        raise ParamcalcError(
            f"gpu_memory_utilization must be above 0 and at most 1, not {given!r}", "give a share such as 0.9"
        )
    return share


class FitSearch:
    """Evaluates one model under many assumptions, and caches how its weights are divided."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._plans: dict[tuple[Any, ...], per_device.DevicePlan] = {}

    def plan(self, assumed: Assumptions) -> per_device.DevicePlan:
        """The division of the weights among devices, which does not depend on context or batch."""
        key = tuple(assumed.replace(context=1, batch=1, source=None, kv_cache_dtype=None).values().values())
        if key not in self._plans:
            self._plans[key] = per_device.plan_devices(self.model, assumed)
        return self._plans[key]

    def used(self, assumed: Assumptions) -> int:
        """Bytes on the most loaded device."""
        return max(load["total"]["bytes"] for load in per_device.stage_loads(self.plan(assumed), assumed))

    def non_weight_bytes(self, assumed: Assumptions) -> int:
        """Bytes without weights on the device with most of them: no format of weights reduces them."""
        loads = per_device.stage_loads(self.plan(assumed), assumed)
        return max(load["total"]["bytes"] - load["weights"]["bytes"] for load in loads)

    def used_or_none(self, assumed: Assumptions) -> int | None:
        """Bytes on the most loaded device, or None if the model cannot have the formats or sizes."""
        try:
            return self.used(assumed)
        except ParamcalcError:
            return None


def fit_figures(model: Model, assumed: Assumptions, gpu: Device, share: Decimal) -> FitReportDict:
    """The fit as a dict with the keys and the order of `FitReport`."""
    search, budget, report = FitSearch(model), int(gpu.memory * share), memory.memory_figures(model, assumed)
    used = report["per_device"]["total"]["bytes"]
    context = largest_fitting(lambda tokens: search.used(assumed.replace(context=tokens)) <= budget)
    batch = largest_fitting(lambda sequences: search.used(assumed.replace(batch=sequences)) <= budget)
    best, fewest = best_format(search, assumed, budget), fewest_devices(search, assumed, budget)
    figures: FitReportDict = {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": report["model"],
        "warnings": report["warnings"],
        "notes": report["notes"],
        "assumptions": report["assumptions"],
        "weights_format": main_format(report["weights"]),
        "kv_cache_dtype": report["kv_cache"]["dtype"],
        "latent": report["kv_cache"]["latent"],
        "gpu": device_info(gpu),
        "gpu_memory_utilization": str(share),
        "budget_bytes": budget,
        "fits": used <= budget,
        "used_bytes": used,
        "used_percent": round(100 * used / gpu.memory, 1),
        "free_bytes": budget - used,
        "per_device": report["per_device"],
        "largest_context": context,
        "largest_batch": batch,
        "stated_positions": stated.tokens if (stated := model.facts.max_positions) else None,
        "fewest_devices": fewest,
        "best_format": best,
        "changes": [],
    }
    if used > budget:
        figures["changes"] = list(single_changes(search, assumed, gpu, share, figures))
    return figures


def largest_fitting(fits: Callable[[int], bool]) -> int | None:
    """The largest number that fits; 0 if 1 does not fit, None without a limit. `fits` must be monotone."""
    if not fits(1):
        return 0
    low = 1
    while fits(2 * low):
        low *= 2
        if low >= UNLIMITED:
            return None
    high = 2 * low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def main_format(held: WeightsPartDict) -> str:
    """The format with the most bytes of weights."""
    return max(held["by_format"].items(), key=lambda share: share[1]["bytes"])[0]


def best_format(search: FitSearch, assumed: Assumptions, budget: int) -> BestFormatDict | None:
    """The largest format of the ladder that fits if nothing else changes, or None."""
    if search.non_weight_bytes(assumed) > budget:
        return None

    def used(name: str | None) -> int | None:
        return search.used_or_none(assumed.replace(dtype=name, dtype_of=()))

    if search.model.quantization:  # no other format is closer to a quantised checkpoint
        checkpoint_bytes = used(None)
        if checkpoint_bytes is not None and checkpoint_bytes <= budget:
            held = weights.storage_plan(search.model, assumed.replace(dtype=None, dtype_of=()))
            return {"format": main_format(weights.weights_figures(held)), "used_bytes": checkpoint_bytes}
    largest = used(FORMAT_LADDER[0])
    if largest is not None and largest <= budget:  # nothing on the ladder is larger
        return {"format": FORMAT_LADDER[0], "used_bytes": largest}
    used_by_format = {name: used(name) for name in FORMAT_LADDER[1:]}
    fitting = {name: size for name, size in used_by_format.items() if size is not None and size <= budget}
    if not fitting:
        return None
    best = max(fitting, key=lambda name: fitting[name])
    return {"format": best, "used_bytes": fitting[best]}


def fewest_devices(search: FitSearch, assumed: Assumptions, budget: int) -> FewestDevicesDict | None:
    """The smallest number of devices on which the model fits, and their parallelism, or None."""
    whole = sum(one.bytes for one in weights.stored_tensors(search.model, assumed))
    for count in (count for count in DEVICE_COUNTS if whole <= count * budget):
        for tensor in (size for size in NODE_SIZES if count % size == 0):
            expert = tensor if assumed.expert_parallel > 1 else 1
            split = assumed.replace(
                tensor_parallel=tensor, pipeline_parallel=count // tensor, expert_parallel=expert, data_parallel=1
            )
            used = search.used_or_none(split)
            if used is not None and used <= budget:
                return {
                    "devices": count,
                    "tensor_parallel": split.tensor_parallel,
                    "pipeline_parallel": split.pipeline_parallel,
                    "expert_parallel": split.expert_parallel,
                    "used_bytes": used,
                }
    return None


def single_changes(
    search: FitSearch, assumed: Assumptions, gpu: Device, share: Decimal, figures: FitReportDict
) -> Iterator[ChangeDict]:
    """Single changes that would make the model fit."""
    budget = figures["budget_bytes"]
    for name, value in (("context", figures["largest_context"]), ("batch", figures["largest_batch"])):
        if value:
            yield _change(name, value, search.used(assumed.replace(**{name: value})))
    fp8_cache = assumed.replace(kv_cache_dtype="fp8", v_cache_dtype=None)
    if search.used(fp8_cache) <= budget:
        yield _change("kv_cache_dtype", "fp8", search.used(fp8_cache))
    if figures["best_format"]:
        yield _change("dtype", figures["best_format"]["format"], figures["best_format"]["used_bytes"])
    if figures["fewest_devices"]:
        yield _change("devices", figures["fewest_devices"]["devices"], figures["fewest_devices"]["used_bytes"])
    larger = [
        one for one in known_devices() if one.memory > gpu.memory and int(one.memory * share) >= figures["used_bytes"]
    ]
    if larger:
        yield _change("gpu", min(larger, key=lambda one: one.memory).name, figures["used_bytes"])


def _change(what: str, value: str | int, used: int) -> ChangeDict:
    return {"change": what, "to": value, "used_bytes": used}


def device_info(gpu: Device) -> DeviceInfoDict:
    """A device as a dict for reports."""
    return {
        "name": gpu.name,
        "vendor": gpu.vendor,
        "memory_bytes": gpu.memory,
        "memory_is_stated": gpu.stated,
        "bandwidth_gb_s": gpu.bandwidth_gb_s,
        "bf16_tflops": gpu.bf16_tflops,
        "fp8_tflops": gpu.fp8_tflops,
        "aliases": list(gpu.aliases),
        "note": gpu.note,
        "source": gpu.source,
    }
