"""Decoding time of one token by the roofline model: an estimate, marked as such.

A step moves the weights that its tokens use and the caches of its sequences through the memory, and multiplies; the
slower of the two sets the pace (Williams et al. 2009). In addition each layer costs kernel launches, independent of its
width: the cost of depth. Decimal GB/s and dense TFLOPS as vendors state them; engines reach less: Llama 3 8B in
bfloat16 takes 5.4 ms here on an H100 at 8k, and 6 to 7 ms in engines.

Each token of a batch picks its experts independently and uniformly: if one token uses a share p of them, b tokens leave
a share (1 - p)^b idle. An input embedding is looked up, one row per token, unless it is the head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paramcalc.footprint.devices import Device
    from paramcalc.reports.shapes.scaling import LatencyDict, LatencyInfoDict

LAUNCHES_PER_LAYER = 8  # kernels of a layer after the fusions of engines: norms, projections, attention, sums
LAUNCH_NS = 2_500  # from one kernel to the next within a captured graph


def elements_read(*, total: int, active: int, routed: int, looked_up: int, batch: int) -> int:
    """Weight elements that a step of `batch` tokens reads; of routed experts, those that any of the tokens uses."""
    share = 1 - (total - active) / routed if routed else 1.0
    return total - looked_up - int(routed * (1 - share) ** batch)


def latency_assumptions(device: Device) -> LatencyInfoDict:
    """The assumptions of the estimate, reported with it."""
    return {
        "bandwidth_gb_s": device.bandwidth_gb_s,
        "bf16_tflops": device.bf16_tflops,
        "launches_per_layer": LAUNCHES_PER_LAYER,
        "launch_ns": LAUNCH_NS,
        "routing": "uniform",
    }


def untimed_note(device: Device | None) -> list[str]:
    """A note that no step time is estimated for a device given only as a memory size."""
    if device is None or device.bandwidth_gb_s is not None:
        return []
    return [f"{device.name}: unknown bandwidth, so no step time is estimated"]


def decode_latency(device: Device, *, moved: int, flops: int, layers: int) -> LatencyDict:
    """Nanoseconds for one step: bytes moved, FLOPs, layers in sequence. None for an unknown figure."""
    memory = None if device.bandwidth_gb_s is None else moved // device.bandwidth_gb_s  # bytes / (GB/s) are ns
    compute = None if device.bf16_tflops is None else flops // (1000 * device.bf16_tflops)
    launches = layers * LAUNCHES_PER_LAYER * LAUNCH_NS
    return {
        "device": device.name,
        "moved_bytes": moved,
        "memory_ns": memory,
        "compute_ns": compute,
        "launch_ns": launches,
        "step_ns": None if memory is None else max(memory, compute or 0) + launches,
        "estimate": True,
    }
