"""What of a tree is the language model's: layers that run for tokens, and their sizes."""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.compute.flops import text_part
from paramcalc.tree.component import Category, Component
from paramcalc.tree.containers import ROLES, Stack

TOWERS: tuple[Category, ...] = ("vision", "projector")


def sees(stack: Stack) -> bool:
    """Whether it is a tower, which runs for images and sounds and not for tokens."""
    return stack.category in TOWERS or ROLES.get(stack.role, {}).get("token") == "tower"


def sizes_of_layers(tree: Component) -> Iterator[int]:
    """The sizes of all layers of the language model, as they are in its components: with their formulas."""
    for stack in text_part(tree).stacks():
        if not sees(stack):
            yield from sizes_below(stack)


def sizes_below(component: Component) -> Iterator[int]:
    """The sizes of a component and of all that is in it."""
    yield from component.dimensions().values()
    for part in component.distinct():
        yield from sizes_below(part.component)
