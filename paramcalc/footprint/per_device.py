"""What each device holds under tensor, pipeline, expert and data parallelism. The fullest one decides what fits."""

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
    """What a device holds by one rule."""

    tensors: int
    bytes: int
    weights: tuple[str, ...]  # their paths


class StageShareOnDevice(NamedTuple):
    """What does not depend on context and batch: one pipeline stage on its fullest device."""

    model: Model  # with the stage's part of the tree
    first: int
    layers: int
    sharding: dict[ShardRule, HeldByRule]
    kept: tuple[CacheEntry, ...]
    work: inference_activations.ActivationShape

    @property
    def weights(self) -> int:
        """Bytes of weights."""
        return sum(share.bytes for share in self.sharding.values())


class DevicePlan(NamedTuple):
    """A model dealt out to devices."""

    devices: int
    stages: tuple[StageShareOnDevice, ...]


def plan_devices(model: Model, assumed: Assumptions) -> DevicePlan:
    """Deal the weights out. Raises ParamcalcError for sizes that engines refuse, naming both."""
    check_divisible(model.tree.weights(), assumed)
    dealt = shares_under(assumed)
    held = []
    for tree, first, layers in stages(model.tree, assumed.pipeline_parallel):
        part = model if tree is model.tree else model.replace(tree=tree)
        kept, work = (
            tuple(_on_device(cache.cache_entries(part, assumed), dealt)),
            inference_activations.activation_shape(part, dealt),
        )
        held.append(
            StageShareOnDevice(part, first, layers, held_by_rule(part, assumed, dealt, whole=model), kept, work)
        )
    return DevicePlan(device_count(assumed), tuple(held))


def held_by_rule(model: Model, assumed: Assumptions, dealt: Shares, *, whole: Model) -> dict[ShardRule, HeldByRule]:
    """Tensors and bytes of a stage of the `whole` on the fullest device, by the rule that divides them."""
    found: dict[ShardRule, list[tuple[int, int, str]]] = defaultdict(list)
    for one in weights.stored_tensors(model, assumed, whole=whole):
        if one.tensors:
            tensors = dealt.tensors(one.weight, one.tensors)
            held = tensors * dealt.of(one.weight, one.bytes // one.tensors)
            found[shard_rule(one.weight)].append((tensors, held, one.weight.name))
    return {name: _share(found[name]) for name in SHARD_RULES if name in found}


def _share(found: list[tuple[int, int, str]]) -> HeldByRule:
    names = dict.fromkeys(name for _, _, name in found)
    return HeldByRule(sum(tensors for tensors, _, _ in found), sum(held for _, held, _ in found), tuple(names))


def stage_loads(plan: DevicePlan, assumed: Assumptions) -> list[StageLoadDict]:
    """What the fullest device of each stage holds: every part of the report, and the total."""
    batch = -(-assumed.batch // assumed.data_parallel)
    return [_load(held, assumed, batch) for held in plan.stages]


def per_device_figures(model: Model, assumed: Assumptions) -> PerDeviceDict:
    """`per_device` of the report."""
    plan = plan_devices(model, assumed)
    found = stage_loads(plan, assumed)
    fullest = max(range(len(found)), key=lambda i: found[i]["total"]["bytes"])
    held, load = plan.stages[fullest], found[fullest]
    return {
        "devices": plan.devices,
        "stage": fullest,
        **load,
        "working": {**load["working"], "how": inference_activations.activation_arithmetic(held.work, load["working"])},
        "sharding": {name: _rule_share(share) for name, share in held.sharding.items()},
        "stages": [_stage(held, load) for held, load in zip(plan.stages, found, strict=True)],
    }


def _rule_share(held: HeldByRule) -> RuleShareDict:
    return {"tensors": held.tensors, "bytes": held.bytes, "weights": list(held.weights)}


def _stage(held: StageShareOnDevice, load: StageLoadDict) -> StageShareDict:
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


def _load(held: StageShareOnDevice, assumed: Assumptions, batch: int) -> StageLoadDict:
    entries = EntryBytes(held.model, assumed)
    kv_cache, state = (
        batch * sum(entries.total(one) for one in held.kept if one.is_state is wanted) for wanted in (False, True)
    )
    working = inference_activations.activation_figures(held.work, assumed, batch=batch)
    return {
        "weights": {"bytes": held.weights},
        "kv_cache": {"bytes": kv_cache},
        "state": {"bytes": state},
        "working": working,
        "overhead": {"bytes": assumed.overhead, "estimate": True},
        "total": {"bytes": held.weights + kv_cache + state + working["bytes"] + assumed.overhead},
    }


def _on_device(kept: Iterable[CacheEntry], dealt: Shares) -> Iterator[CacheEntry]:
    """Whole key/value heads on each device, copies where there are fewer; what has no heads is held whole."""
    for one in kept:
        if one.shares is None:
            yield one
        else:
            units, elements = int(one.shares), int(one.elements)
            yield one._replace(elements=-(-elements * -(-units // dealt.tensor) // units))
