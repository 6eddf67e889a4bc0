"""The share of a tensor on one device, under tensor and expert parallelism.

The rules are those of Megatron-LM (arXiv:1909.08053, section 3) as vLLM applies them. Projections into heads and hidden
channels are divided by columns, projections out of them by rows, embedding and output matrix by the vocabulary. Norms,
routers and the down-projections of latent attention are replicated. If a dimension does not divide evenly, the share is
that of the most loaded device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from paramcalc.assumptions import Assumptions
from paramcalc.base.errors import ParamcalcError
from paramcalc.tree.weights import TOWER_CATEGORIES, ShardSpec, Weight

ShardRule = Literal["column", "row", "vocab", "expert", "replicated"]
SHARD_RULES: tuple[ShardRule, ...] = get_args(ShardRule)
VOCABULARY_STEP = 64  # vLLM pads a vocabulary that it divides to a multiple of this (VocabParallelEmbedding)


class Shares(NamedTuple):
    """The number of devices that divide a layer (`tensor`), its set of experts (`expert`), each expert (`within`)."""

    tensor: int = 1
    expert: int = 1
    within: int = 1

    def num_tensors(self, weight: Weight, tensors: int) -> int:
        """The number, out of `tensors` equal ones, on the most loaded device: a part of the experts, or all."""
        return _ceil_div(tensors * _ceil_div(weight.experts, self.expert), weight.experts)

    def share(self, weight: Weight, amount: int) -> int:
        """The part of `amount` (bytes or elements of one tensor) on the most loaded device, rounded up."""
        if weight.split is None or not _is_divided(weight):
            return amount
        length = _sharded_length(weight)
        share = largest_share(weight.split, length, self.within if weight.experts > 1 else self.tensor)
        return -(-amount * share // length)


UNSHARDED = Shares()


def shares_under(assumed: Assumptions) -> Shares:
    """The shares under the assumed parallelism.

    The experts of a layer are distributed over the tensor-parallel devices of all data-parallel groups. There are
    `expert_parallel` groups of devices; each group holds whole experts, and its devices divide each of them
    (DeepSeek-V3, arXiv:2412.19437, section 3.4; FusedMoEParallelConfig in vLLM). Raises ParamcalcError if the devices
    do not form equal groups.
    """
    group, expert = assumed.tensor_parallel * assumed.data_parallel, assumed.expert_parallel
    if max(group, expert) % min(group, expert):
        raise ParamcalcError(
            f"expert_parallel {expert} and the {group} devices of tensor_parallel {assumed.tensor_parallel} x "
            f"data_parallel {assumed.data_parallel} do not divide each other",
            "experts are distributed over all devices of tensor and data parallelism",
        )
    return Shares(assumed.tensor_parallel, expert, max(1, group // expert))


def device_count(assumed: Assumptions) -> int:
    """The total number of devices: pipeline stages times the devices of a stage."""
    return assumed.pipeline_parallel * max(assumed.tensor_parallel * assumed.data_parallel, assumed.expert_parallel)


def shard_rule(weight: Weight) -> ShardRule:
    """The sharding rule of a tensor."""
    if weight.experts > 1:
        return "expert"
    return weight.split.axis if weight.split is not None and _is_divided(weight) else "replicated"


def tensor_names(paths: Sequence[str]) -> str:
    """The distinct last parts of tensor paths: `q_proj k_proj v_proj`."""
    ends = [path.removesuffix(".weight").removesuffix(".value").removesuffix(".bias") for path in paths]
    return " ".join(dict.fromkeys(end.rpartition(".")[2] for end in ends))


def largest_share(split: ShardSpec, length: int, count: int) -> int:
    """Rows or columns on the most loaded of `count` devices, out of `length`."""
    if count == 1:
        return length
    if split.unit_kind == "vocabulary":
        padded = _ceil_div(length, VOCABULARY_STEP) * VOCABULARY_STEP
        return min(length, _ceil_div(padded, count))
    rows, fused = int(length) - int(split.fused), int(split.fused)
    return _largest_share_of_units(rows, int(split.units), count) + _largest_share_of_units(
        fused, int(split.fused_units), count
    )


def check_divisible(weights: Iterable[Weight], assumed: Assumptions) -> None:
    """Raise ParamcalcError if heads cannot be divided evenly, or if a model without experts has expert parallelism.

    Key/value heads may be replicated, each the same number of times. Vision and audio towers are padded with empty
    heads (InternVisionModel in vLLM) and need not divide evenly.
    """
    tensors, count = list(weights), assumed.tensor_parallel
    for weight in tensors if count > 1 else ():
        if weight.split is None or weight.category in TOWER_CATEGORIES:
            continue
        units, unit_kind = int(weight.split.units), weight.split.unit_kind
        indivisible = (
            units % count if unit_kind == "heads" else unit_kind == "kv_heads" and max(units, count) % min(units, count)
        )
        if indivisible:
            name, heads = weight.name.removesuffix(".weight"), unit_kind.replace("kv_", "key/value ")
            raise ParamcalcError(
                f"tensor_parallel {count} does not divide the {units} {heads} of {name}",
                "use one of " + ", ".join(str(n) for n in range(1, units + 1) if units % n == 0),
            )
    if assumed.expert_parallel > 1 and not any(weight.experts > 1 for weight in tensors):
        raise ParamcalcError(
            f"expert_parallel {assumed.expert_parallel}: the model has no experts",
            "omit it, or use tensor_parallel",
        )


def _is_divided(weight: Weight) -> bool:
    # A table in a tower or a mixer contains positions, not a vocabulary, and is replicated.
    return weight.split is not None and (weight.split.axis != "vocab" or weight.category in ("embedding", "head"))


def _sharded_length(weight: Weight) -> int:
    by_row = weight.split is not None and weight.split.axis == "row"
    return int(weight.shape[1 if by_row else 0])


def _largest_share_of_units(rows: int, units: int, count: int) -> int:
    return _ceil_div(rows * _ceil_div(units, count), units)


def _ceil_div(amount: int, count: int) -> int:
    return -(-int(amount) // int(count))
