"""Bytes on each device under tensor, pipeline, expert and data parallelism. The most loaded device decides the fit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from paramcalc.assumptions import Assumptions
from paramcalc.footprint import cache, inference_activations
from paramcalc.footprint.cache_dtypes import EntryBytes
from paramcalc.model import Model
from paramcalc.parallel.pipeline import stages
from paramcalc.parallel.sharding import (
    SHARD_RULES,
    ShardRule,
    Shares,
    check_divisible,
    device_count,
    shard_rule,
    shares_under,
)
from paramcalc.storage import weights
from paramcalc.tree.state import CacheEntry

if TYPE_CHECKING:
    from paramcalc.reports.shapes.memory import PerDeviceDict, RuleShareDict, StageLoadDict, StageShareDict


class HeldByRule(NamedTuple):
    """The tensors on a device that one sharding rule divides."""

    tensors: int
    bytes: int
    weights: tuple[str, ...]  # their paths


class StageShareOnDevice(NamedTuple):
    """One pipeline stage on its most loaded device, independent of context and batch."""

    model: Model  # with the tree of the stage
    first: int
    layers: int
    sharding: dict[ShardRule, HeldByRule]
    cache_entries: tuple[CacheEntry, ...]
    activations: inference_activations.ActivationShape

    @property
    def weights(self) -> int:
        """Bytes of weights."""
        return sum(share.bytes for share in self.sharding.values())


class DevicePlan(NamedTuple):
    """A model divided among devices."""

    devices: int
    stages: tuple[StageShareOnDevice, ...]


def plan_devices(model: Model, assumed: Assumptions) -> DevicePlan:
    """Divide the weights among devices. Raises ParamcalcError for sizes that inference engines refuse."""
    check_divisible(model.tree.weights(), assumed)
    shares = shares_under(assumed)
    stage_shares = []
    for tree, first, layers in stages(model.tree, assumed.pipeline_parallel):
        part = model if tree is model.tree else model.replace(tree=tree)
        entries, activations = (
            tuple(_sharded_entries(cache.cache_entries(part, assumed), shares)),
            inference_activations.activation_shape(part, shares),
        )
        stage_shares.append(
            StageShareOnDevice(
                part, first, layers, held_by_rule(part, assumed, shares, whole=model), entries, activations
            )
        )
    return DevicePlan(device_count(assumed), tuple(stage_shares))


def held_by_rule(model: Model, assumed: Assumptions, shares: Shares, *, whole: Model) -> dict[ShardRule, HeldByRule]:
    """Tensors and bytes of a stage of the `whole` model on its most loaded device, by sharding rule."""
    by_rule: dict[ShardRule, list[tuple[int, int, str]]] = defaultdict(list)
    for stored in weights.stored_tensors(model, assumed, whole=whole):
        if stored.tensors:
            tensors = shares.num_tensors(stored.weight, stored.tensors)
            held = tensors * shares.share(stored.weight, stored.bytes // stored.tensors)
            by_rule[shard_rule(stored.weight)].append((tensors, held, stored.weight.name))
    return {name: _sum_tensors(by_rule[name]) for name in SHARD_RULES if name in by_rule}


def _sum_tensors(stored: list[tuple[int, int, str]]) -> HeldByRule:
    names = dict.fromkeys(name for _, _, name in stored)
    return HeldByRule(sum(tensors for tensors, _, _ in stored), sum(held for _, held, _ in stored), tuple(names))


def stage_loads(plan: DevicePlan, assumed: Assumptions) -> list[StageLoadDict]:
    """Bytes on the most loaded device of each stage: every part of the report, and the total."""
    batch = -(-assumed.batch // assumed.data_parallel)
    return [_stage_load(held, assumed, batch) for held in plan.stages]


def per_device_figures(model: Model, assumed: Assumptions) -> PerDeviceDict:
    """`per_device` of the report."""
    plan = plan_devices(model, assumed)
    loads = stage_loads(plan, assumed)
    fullest = max(range(len(loads)), key=lambda i: loads[i]["total"]["bytes"])
    held, load = plan.stages[fullest], loads[fullest]
    return {
        "devices": plan.devices,
        "stage": fullest,
        **load,
        "working": {
            **load["working"],
            "how": inference_activations.activation_arithmetic(held.activations, load["working"]),
        },
        "sharding": {name: _rule_share(share) for name, share in held.sharding.items()},
        "stages": [_stage_share(held, load) for held, load in zip(plan.stages, loads, strict=True)],
    }


def _rule_share(held: HeldByRule) -> RuleShareDict:
    return {"tensors": held.tensors, "bytes": held.bytes, "weights": list(held.weights)}


def _stage_share(held: StageShareOnDevice, load: StageLoadDict) -> StageShareDict:
    return {
        "first_layer": held.first,
        "layers": held.layers,
        "weights_bytes": load["weights"]["bytes"],
        "kv_cache_bytes": load["kv_cache"]["bytes"],
        "state_bytes": load["state"]["bytes"],
        "working_bytes": load["working"]["bytes"],
        "overhead_bytes": load["overhead"]["bytes"],
        "total_bytes": load["total"]["bytes"],
    }


def _stage_load(held: StageShareOnDevice, assumed: Assumptions, batch: int) -> StageLoadDict:
    entries = EntryBytes(held.model, assumed)
    kv_cache, state = (
        batch * sum(entries.total(one) for one in held.cache_entries if one.is_state is wanted)
        for wanted in (False, True)
    )
    working = inference_activations.activation_figures(held.activations, assumed, batch=batch)
    return {
        "weights": {"bytes": held.weights},
        "kv_cache": {"bytes": kv_cache},
        "state": {"bytes": state},
        "working": working,
        "overhead": {"bytes": assumed.overhead, "estimate": True},
        "total": {"bytes": held.weights + kv_cache + state + working["bytes"] + assumed.overhead},
    }


def _sharded_entries(entries: Iterable[CacheEntry], shares: Shares) -> Iterator[CacheEntry]:
    """Cache entries on one device: whole key/value heads, replicated if there are fewer; others are replicated."""
    for entry in entries:
        if entry.shares is None:
            yield entry
        else:
            units, elements = int(entry.shares), int(entry.elements)
            yield entry._replace(elements=-(-elements * -(-units // shares.tensor) // units))
