"""The component tree as rows: what `count --depth N` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.spec import Component, Part, Stack, Weight


class Row(NamedTuple):
    """One part of the tree: how deep it lies, what it is, and its parameters with all copies."""

    level: int
    name: str
    detail: str  # the shape of a single tensor, the pattern of a layer, the owner of a tied matrix
    total: int
    active: int


def outline(tree: Component, depth: int) -> list[Row]:
    """The parts of a tree down to `depth` levels; the rows of one level add up to the total."""
    return [row for part in tree.children() for row in _rows(part, 0, depth, 1, 1)]


def _rows(part: Part, level: int, depth: int, copies: int, active: int) -> Iterator[Row]:
    component = part.component
    copies, active = copies * int(part.copies), active * int(part.active)
    weights = [w for w in component.weights() if w.role == "parameter"]
    name = f"{part.copies} x {part.name}" if part.copies != 1 else part.name
    yield Row(
        level,
        name,
        _detail(component, weights),
        sum(w.elements * int(w.copies) for w in weights) * copies,
        sum(w.elements * int(w.active) for w in weights) * active,
    )
    if level + 1 < depth:
        for child in component.children():
            named = child._replace(name=f"layer {child.name}") if isinstance(component, Stack) else child
            yield from _rows(named, level + 1, depth, copies, active)


def _detail(component: Component, weights: list[Weight]) -> str:
    ties = list(component.ties())
    if ties:
        return f"tied to {ties[0].owner}"
    if not list(component.children()):
        return ", ".join(" x ".join(f"{int(size)}" for size in w.shape) for w in weights)
    return component.label()
