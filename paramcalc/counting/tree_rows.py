"""The component tree as rows, for `count --depth N`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.tree.component import Component, Part
from paramcalc.tree.containers import LayerKind, Mtp, Stack
from paramcalc.tree.leaves import Product
from paramcalc.tree.weights import Weight, WeightRole

BUILT: frozenset[WeightRole] = frozenset(["parameter"])
SHIPPED: frozenset[WeightRole] = frozenset(
    ["parameter", "mtp", "buffer"]
)  # roles in an MTP module, which is reported separately


class TreeRow(NamedTuple):
    """One part of the tree, with the parameters of all its copies."""

    level: int  # depth in the tree, from 0
    name: str
    detail: str  # the shape of a single tensor, the pattern of a layer, the owner of a tied matrix
    total: int
    active: int


def tree_rows(tree: Component, depth: int, *, include_mtp: bool = False) -> list[TreeRow]:
    """The parts of a tree down to `depth` levels; the rows of one level add up to the total."""
    rows: list[TreeRow] = []
    for part in tree.children():
        is_mtp = isinstance(part.component, Mtp)
        if include_mtp or not is_mtp:
            rows += _rows(part, 0, depth, 1, 1, SHIPPED if is_mtp else BUILT)
    return rows


def _rows(
    part: Part, level: int, depth: int, copies: int, active: int, roles: frozenset[WeightRole]
) -> Iterator[TreeRow]:
    component = part.component
    copies, active = copies * int(part.copies), active * int(part.active)
    weights = [w for w in component.weights() if w.role in roles]
    yield TreeRow(
        level,
        f"{part.copies} x {part.name}" if part.copies != 1 else part.name,
        _detail(component, weights),
        sum(w.elements * int(w.copies) for w in weights) * copies,
        sum(w.elements * int(w.active) for w in weights) * active,
    )
    if level + 1 < depth:
        for child in tree_parts(component):
            yield from _rows(child, level + 1, depth, copies, active, roles)


def tree_parts(component: Component) -> Iterator[Part]:
    """The children; for a stack, one part per layer kind, such as `layers 0, 2, 4, ...`."""
    if not isinstance(component, Stack):
        yield from (part for part in component.children() if not isinstance(part.component, Product))
        return
    for kind in component.layer_kinds():
        yield Part(layer_name(kind), kind.layer, kind.copies, kind.copies)


def layer_name(kind: LayerKind) -> str:
    """`layer 3`, `layers 0-31`, `layers 0, 2, 4, ...`."""
    names = kind.names
    shown = ", ".join([*names[:3], "..."] if len(names) > 3 else names)
    return f"layer{'s' if kind.copies > 1 else ''} {shown}"


def _detail(component: Component, weights: list[Weight]) -> str:
    ties = list(component.own_ties())
    if ties:
        return f"tied to {ties[0].owner}"
    if not list(component.children()):
        return ", ".join(" x ".join(f"{int(size)}" for size in w.shape) for w in weights)
    return component.label()
