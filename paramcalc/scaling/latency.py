"""How long one token takes to decode, by the roofline: an estimate, and it says so.

A step moves the weights that its tokens use and the caches of its sequences through the memory, and multiplies; the
slower of the two sets the pace (Williams et al. 2009). Beside it each layer costs its launches, whatever its width:
that is what depth costs. Decimal GB/s and dense TFLOPS as the vendors state them; what engines reach is less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paramcalc.footprint.devices import Device

LAUNCHES = 8  # kernels of a layer: norms, projections, attention, products, sums, fused as engines fuse them
LAUNCH_NS = 2_500  # from one kernel to the next within a captured graph


def latency(device: Device, *, moved: int, flops: int, layers: int) -> dict[str, Any]:
    """Nanoseconds for one step: bytes moved, operations, layers in a row. None where a figure is not known."""
    memory = None if device.bandwidth_gb_s is None else moved // device.bandwidth_gb_s  # bytes / (GB/s) are ns
    compute = None if device.bf16_tflops is None else flops // (1000 * device.bf16_tflops)
    known = [time for time in (memory, compute) if time is not None]
    launches = layers * LAUNCHES * LAUNCH_NS
    return {
        "device": device.name,
        "memory_ns": memory,
        "compute_ns": compute,
        "launch_ns": launches,
        "step_ns": max(known) + launches if known else None,
        "estimate": True,
    }
