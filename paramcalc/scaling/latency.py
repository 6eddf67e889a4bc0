"""How long one token takes to decode, by the roofline: an estimate, and it says so.

A step moves the weights that its tokens use and the caches of its sequences through the memory, and multiplies; the
slower of the two sets the pace (Williams et al. 2009). Beside it each layer costs its launches, whatever its width:
that is what depth costs. Decimal GB/s and dense TFLOPS as the vendors state them; what engines reach is less: Llama 3
8B in bfloat16 takes 5.4 ms here on an H100 at 8k, and 6 to 7 in engines.

Of a batch each token picks its experts apart from the others, all experts alike: of those that one token uses a share p
of, b tokens leave a share (1 - p)^b idle. An input embedding is looked up, a row for each token, unless it is the head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paramcalc.footprint.devices import Device
    from paramcalc.reports.shapes.scaling import LatencyDict, LatencyInfoDict

LAUNCHES_PER_LAYER = 8  # kernels of a layer: norms, projections, attention, products, sums, fused as engines fuse them
LAUNCH_NS = 2_500  # from one kernel to the next within a captured graph


def elements_read(*, total: int, active: int, routed: int, looked_up: int, batch: int) -> int:
    """Elements of the weights that a step of so many tokens reads: of the routed ones those that any of them uses."""
    share = 1 - (total - active) / routed if routed else 1.0
    return total - looked_up - int(routed * (1 - share) ** batch)


def latency_assumptions(device: Device) -> LatencyInfoDict:
    """What the estimate rests on, to be stated with it."""
    return {
        "bandwidth_gb_s": device.bandwidth_gb_s,
        "bf16_tflops": device.bf16_tflops,
        "launches_per_layer": LAUNCHES_PER_LAYER,
        "launch_ns": LAUNCH_NS,
        "routing": "uniform",
    }


def untimed_note(device: Device | None) -> list[str]:
    """That a step's time is asked for and not estimated, of a device that is only a size."""
    if device is None or device.bandwidth_gb_s is not None:
        return []
    return [f"{device.name}: its bandwidth is not known, so the time of a step is not estimated"]


def decode_latency(device: Device, *, moved: int, flops: int, layers: int) -> LatencyDict:
    """Nanoseconds for one step: bytes moved, operations, layers in a row. None where a figure is not known."""
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
