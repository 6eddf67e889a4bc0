"""The schemas of a verdict on a device, and of the devices themselves."""

from __future__ import annotations

from pydantic import Field

from paramcalc.reports.base import Answer, ModelInfo, Report
from paramcalc.reports.memory import AssumptionInfo, PerDevice


class DeviceInfo(Report):
    """A GPU or its like."""

    name: str
    vendor: str
    memory_bytes: int = Field(description="in all, as the vendor's tool reports it")
    memory_is_stated: bool = Field(description="no report of the device is known: memory is what the vendor states")
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
    """A single change that would make it fit."""

    change: str = Field(description="context, batch, kv_cache_dtype, dtype, devices or gpu")
    to: str | int
    used_bytes: int = Field(description="on the fullest device, then")


class FitReport(Answer):
    """Whether a model fits, and what would have to change. Advice: the figures beside it are what counts."""

    model: ModelInfo
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = Field(description="how the figures are meant where implementations differ")
    assumptions: AssumptionInfo
    weights_format: str = Field(description="that takes the most bytes of all weights")
    kv_cache_dtype: str = Field(description="of keys, and of values where it is another")
    latent: bool = Field(description="whether some of the attention is latent, so that `mla` matters")
    gpu: DeviceInfo
    gpu_memory_utilization: str = Field(description="share of the memory that may be used")
    budget_bytes: int = Field(description="what that is")
    fits: bool
    used_bytes: int = Field(description="on the fullest device")
    used_percent: float = Field(description="of the device's whole memory")
    free_bytes: int = Field(description="what is left of the budget; below 0 where it does not fit")
    per_device: PerDevice
    largest_context: int | None = Field(
        description="tokens at this batch that memory allows; 0: not even one, null: no limit"
    )
    largest_batch: int | None = Field(description="sequences at this context; 0: not even one")
    stated_positions: int | None = Field(description="tokens that the config says its model is made for")
    fewest_devices: FewestDevices | None = Field(description="null: none of those tried")
    best_format: BestFormat | None = Field(
        description="the checkpoint's own where that is quantised, or of a ladder from bfloat16 to four bits"
    )
    changes: tuple[Change, ...] = Field(description="each for itself would make it fit; none where it does")
