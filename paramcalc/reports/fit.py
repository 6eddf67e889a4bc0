"""The schemas of a verdict on a device, and of the devices."""

from __future__ import annotations

from pydantic import Field

from paramcalc.reports.base import Answer, ModelInfo, Report
from paramcalc.reports.memory import AssumptionInfo, PerDevice


class DeviceInfo(Report):
    """A GPU or another accelerator."""

    name: str
    vendor: str
    memory_bytes: int = Field(description="total, as the vendor's tool reports it")
    memory_is_stated: bool = Field(description="true: no tool's report is known, and memory is the vendor's statement")
    bandwidth_gb_s: int | None = Field(description="decimal GB/s")
    bf16_tflops: int | None = Field(description="dense")
    fp8_tflops: int | None = Field(description="dense")
    aliases: tuple[str, ...]
    note: str
    source: str


class FewestDevices(Report):
    """The smallest number of devices that a model fits on."""

    devices: int
    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    used_bytes: int = Field(description="on the fullest device")


class BestFormat(Report):
    """The largest format that fits."""

    format: str
    used_bytes: int = Field(description="on the fullest device")


class Change(Report):
    """One change that would make the model fit."""

    change: str = Field(description="context, batch, kv_cache_dtype, dtype, devices or gpu")
    to: str | int
    used_bytes: int = Field(description="on the fullest device after the change")


class FitReport(Answer):
    """The verdict whether a model fits, and which changes would make it fit."""

    model: ModelInfo
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = Field(description="choices on which implementations differ")
    assumptions: AssumptionInfo
    weights_format: str = Field(description="format with the largest share of the weight bytes")
    kv_cache_dtype: str = Field(description="dtype of keys, and of values if it differs")
    latent: bool = Field(description="some attention layers are latent (MLA), so `mla` has an effect")
    gpu: DeviceInfo
    gpu_memory_utilization: str = Field(description="share of the memory that may be used")
    budget_bytes: int = Field(description="that share in bytes")
    fits: bool
    used_bytes: int = Field(description="on the fullest device")
    used_percent: float = Field(description="of the device's total memory")
    free_bytes: int = Field(description="rest of the budget; negative if the model does not fit")
    per_device: PerDevice
    largest_context: int | None = Field(
        description="tokens that fit at this batch size; 0: not even one, null: memory sets no limit"
    )
    largest_batch: int | None = Field(description="sequences that fit at this context; 0: not even one")
    stated_positions: int | None = Field(description="maximum context that the config states")
    fewest_devices: FewestDevices | None = Field(description="null: no number of devices that was tried is enough")
    best_format: BestFormat | None = Field(
        description="the checkpoint's own if it is quantised and fits, else one from bfloat16 down to about two bits"
    )
    changes: tuple[Change, ...] = Field(description="each would make the model fit on its own; empty if it fits")
