"""Pipeline parallelism: the tree of a model cut into stages, each a tree of its own."""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.base.errors import ParamcalcError
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, Stack, main_stack, num_layers, stacks


class Stage(NamedTuple):
    """Layers `first` to `first + layers - 1` of the model's main stack, and whatever else is beside them."""

    tree: Component
    first: int
    layers: int


class StageCut(NamedTuple):
    """What goes into a stage: layers of the `main` stack, what is before and after it, owners of tied tensors."""

    main: Stack
    first: int
    layers: int
    has_before: bool
    has_after: bool
    owners: frozenset[str]


def stages(tree: Component, count: int) -> list[Stage]:
    """The stages of a pipeline: embeddings and towers in the first, norm and head in the last, layers in all.

    A tied head needs its matrix too: the last stage holds a copy. Raises ParamcalcError where there are fewer layers
    than stages, or where layers share weights that would be needed in several of them.
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
    """Layers of each stage, as vLLM deals them out (get_pp_indices): the rest goes to stages before the last."""
    each, rest = divmod(layers, count)
    counts = [each] * count
    for i in range(2, rest + 2):
        counts[-i] += 1
    return counts


def _check_stages(main: Stack, count: int) -> None:
    layers = num_layers(main)
    if any(run.passes > 1 for run in main.runs) or any(True for _ in main.ties()):
        raise ParamcalcError(
            f"pipeline_parallel {count}: the layers share weights, which no two stages can hold",
            "leave it out, or use tensor_parallel",
        )
    if layers < count:
        raise ParamcalcError(
            f"pipeline_parallel {count} is more than there are layers ({layers})", f"give at most {layers} stages"
        )


def _stage_tree(tree: Component, cut: StageCut, prefix: str) -> Component:
    """What of a block is in the stage."""
    if tree is cut.main:
        return cut.main.replace(first=cut.first, runs=_stage_runs(cut))
    if not isinstance(tree, Block):
        raise ParamcalcError(f"pipeline_parallel: {prefix.rstrip('.')} cannot be cut", "leave it out")
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
