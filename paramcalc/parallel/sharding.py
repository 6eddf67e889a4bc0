"""Which share of a tensor one device holds: tensor and expert parallelism, rule by rule.

The rules are Megatron-LM's (1909.08053, section 3) as vLLM applies them: projections into heads and hidden channels are
divided by columns, those out of them by rows, embedding and output matrix by the vocabulary; norms, routers and the
down-projections of latent attention are held whole by every device. Where something does not divide evenly, the share
is that of the fullest device.
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
    """How many devices divide what: layers (`tensor`), the experts of a layer (`expert`), each expert (`within`)."""

    tensor: int = 1
    expert: int = 1
    within: int = 1

    def num_tensors(self, weight: Weight, tensors: int) -> int:
        """How many of so many equal tensors are on the fullest device: of experts a few, of the others all."""
        return _ceil_div(tensors * _ceil_div(weight.experts, self.expert), weight.experts)

    def share(self, weight: Weight, amount: int) -> int:
        """Which part of `amount` (bytes or elements of one tensor) is on the fullest device, rounded up."""
        if weight.split is None or not _is_divided(weight):
            return amount
        length = _sharded_length(weight)
        share = largest_share(weight.split, length, self.within if weight.experts > 1 else self.tensor)
        return -(-amount * share // length)


UNSHARDED = Shares()


def shares_under(assumed: Assumptions) -> Shares:
    """The shares under the parallelism that is assumed.

    The tensor-parallel devices of all data-parallel groups hold the experts of a layer together: `expert_parallel` of
    them, or groups of them, take whole experts, and the devices of a group divide each (DeepSeek-V3, 2412.19437,
    section 3.4; vLLM's FusedMoEParallelConfig). Raises ParamcalcError where the groups do not come out even.
    """
    group, expert = assumed.tensor_parallel * assumed.data_parallel, assumed.expert_parallel
    if max(group, expert) % min(group, expert):
        raise ParamcalcError(
            f"expert_parallel {expert} and the {group} devices of tensor_parallel {assumed.tensor_parallel} x "
            f"data_parallel {assumed.data_parallel} do not divide each other",
            "experts are dealt out to the devices of tensor and data parallelism together",
        )
    return Shares(assumed.tensor_parallel, expert, max(1, group // expert))


def device_count(assumed: Assumptions) -> int:
    """Devices in all: the stages of the pipeline, each of so many."""
    return assumed.pipeline_parallel * max(assumed.tensor_parallel * assumed.data_parallel, assumed.expert_parallel)


def shard_rule(weight: Weight) -> ShardRule:
    """The rule by which a tensor is divided."""
    if weight.experts > 1:
        return "expert"
    return weight.split.axis if weight.split is not None and _is_divided(weight) else "replicated"


def tensor_names(paths: Sequence[str]) -> str:
    """The tensors of a rule by their last names: `q_proj k_proj v_proj`."""
    ends = [path.removesuffix(".weight").removesuffix(".value").removesuffix(".bias") for path in paths]
    return " ".join(dict.fromkeys(end.rpartition(".")[2] for end in ends))


def largest_share(split: ShardSpec, length: int, count: int) -> int:
    """Rows or columns of `side` on the fullest of `count` devices."""
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
    """Raise ParamcalcError where heads cannot be dealt out evenly, or where there are no experts to deal out.

    Key/value heads are fewer: devices may hold copies of them, as many of each. Towers of images and sound are padded
    with empty heads (vLLM's InternVisionModel) and may be uneven.
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
                "it can be " + ", ".join(str(n) for n in range(1, units + 1) if units % n == 0),
            )
    if assumed.expert_parallel > 1 and not any(weight.experts > 1 for weight in tensors):
        raise ParamcalcError(
            f"expert_parallel {assumed.expert_parallel}: the model has no experts",
            "leave it out, or use tensor_parallel",
        )


def _is_divided(weight: Weight) -> bool:
    # A table within a tower or a mixer holds positions, not a vocabulary.
    return weight.split is not None and (weight.split.axis != "vocab" or weight.category in ("embedding", "head"))


def _sharded_length(weight: Weight) -> int:
    by_row = weight.split is not None and weight.split.axis == "row"
    return int(weight.shape[1 if by_row else 0])


def _largest_share_of_units(rows: int, units: int, count: int) -> int:
    return _ceil_div(rows * _ceil_div(units, count), units)


def _ceil_div(amount: int, count: int) -> int:
    return -(-int(amount) // int(count))
