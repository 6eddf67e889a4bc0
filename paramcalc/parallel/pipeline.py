"""Pipeline parallelism: the tree of a model divided into stages, each of which is a tree."""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.base.errors import ParamcalcError
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, Stack, main_stack, num_layers, stacks


class Stage(NamedTuple):
    """A stage: `layers` layers of the main stack from `first` on, and the embeddings, towers or head next to them."""

    tree: Component
    first: int
    layers: int


class StageCut(NamedTuple):
    """The contents of a stage: layers of the `main` stack, the parts before or after it, owners of tied tensors."""

    main: Stack
    first: int
    layers: int
    has_before: bool
    has_after: bool
    owners: frozenset[str]


def stages(tree: Component, count: int) -> list[Stage]:
    """The `count` stages of a pipeline: embeddings and towers in the first, norm and head in the last, layers in all.

    The last stage holds a copy of the embedding if the head is tied to it. Raises ParamcalcError if there are fewer
    layers than stages, or if layers share weights.
    """
    all_stacks = stacks(tree)
    if not all_stacks:
        return [Stage(tree, 0, 0)]
    main = main_stack(all_stacks)
    if count == 1:
        return [Stage(tree, 0, num_layers(main))]
    _check_stages(main, count)
    owners = frozenset(tie.owner for tie in tree.ties())
    built, start = [], 0
    for i, layers in enumerate(layers_per_stage(num_layers(main), count)):
        last = i == count - 1
        cut = StageCut(main, start, layers, has_before=i == 0, has_after=last, owners=owners if last else frozenset())
        built.append(Stage(_stage_tree(tree, cut, ""), start, layers))
        start += layers
    return built


def layers_per_stage(layers: int, count: int) -> list[int]:
    """Layers of each stage, as in vLLM (get_pp_indices): the remainder goes to the stages before the last."""
    each, rest = divmod(layers, count)
    counts = [each] * count
    for i in range(2, rest + 2):
        counts[-i] += 1
    return counts


def _check_stages(main: Stack, count: int) -> None:
    layers = num_layers(main)
    if any(run.passes > 1 for run in main.runs) or any(True for _ in main.ties()):
        raise ParamcalcError(
            f"pipeline_parallel {count}: the layers share weights and cannot be divided into stages",
            "omit it, or use tensor_parallel",
        )
    if layers < count:
        raise ParamcalcError(
            f"pipeline_parallel {count} is more than the number of layers ({layers})", f"use at most {layers} stages"
        )


def _stage_tree(tree: Component, cut: StageCut, prefix: str) -> Component:
    """The part of a block that is in the stage. Raises ParamcalcError for a component that cannot be divided."""
    if tree is cut.main:
        return cut.main.replace(first=cut.first, runs=_stage_runs(cut))
    if not isinstance(tree, Block):
        raise ParamcalcError(f"pipeline_parallel: {prefix.rstrip('.')} cannot be divided into stages", "omit it")
    items, before = {}, True
    for name, part in tree.items.items():
        path = prefix + name
        if any(stack is cut.main for stack in stacks(part)):
            items[name], before = _stage_tree(part, cut, f"{path}."), False
        elif (cut.has_before if before else cut.has_after) or any(
            f"{owner}.".startswith(f"{path}.") for owner in cut.owners
        ):
            items[name] = part
    return tree.replace(items=items)


def _stage_runs(cut: StageCut) -> tuple[Run, ...]:
    runs, at = [], 0
    for run in cut.main.runs:
        low, high = max(cut.first, at), min(cut.first + cut.layers, at + int(run.repeat))
        if low < high:
            runs.append(run._replace(repeat=high - low))
        at += int(run.repeat)
    return tuple(runs)
