"""Types of a verdict on a device, and of devices, as dicts."""

from __future__ import annotations

from typing import TypedDict

from paramcalc.reports.shapes.base import AnswerDict, ModelInfoDict
from paramcalc.reports.shapes.memory import AssumptionInfoDict, PerDeviceDict


class DeviceInfoDict(TypedDict):
    """A GPU or another accelerator."""

    name: str
    vendor: str
    memory_bytes: int
    memory_is_stated: bool
    bandwidth_gb_s: int | None
    bf16_tflops: int | None
    fp8_tflops: int | None
    aliases: list[str]
    note: str
    source: str


class FewestDevicesDict(TypedDict):
    """The smallest number of devices that a model fits on."""

    devices: int
    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    used_bytes: int


class BestFormatDict(TypedDict):
    """The largest format that fits."""

    format: str
    used_bytes: int


class ChangeDict(TypedDict):
    """One change that would make a model fit."""

    change: str
    to: str | int
    used_bytes: int


class FitReportDict(AnswerDict):
    """The answer of `fit`."""

    model: ModelInfoDict
    warnings: list[str]
    notes: list[str]
    assumptions: AssumptionInfoDict
    weights_format: str
    kv_cache_dtype: str
    latent: bool
    gpu: DeviceInfoDict
    gpu_memory_utilization: str
    budget_bytes: int
    fits: bool
    used_bytes: int
    used_percent: float
    free_bytes: int
    per_device: PerDeviceDict
    largest_context: int | None
    largest_batch: int | None
    stated_positions: int | None
    fewest_devices: FewestDevicesDict | None
    best_format: BestFormatDict | None
    changes: list[ChangeDict]
