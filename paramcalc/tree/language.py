"""What of a tree is the language model's: layers that run for tokens, and their sizes."""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.tree.component import Component
from paramcalc.tree.containers import TOWER_ROLES, Block, Stack, stacks
from paramcalc.tree.weights import TOWER_CATEGORIES, Category, Tie


def is_tower(stack: Stack) -> bool:
    """Whether it is a tower, which runs for images and sounds and not for tokens."""
    return stack.category in TOWER_CATEGORIES or stack.role in TOWER_ROLES


def layer_sizes(tree: Component) -> Iterator[int]:
    """The sizes of all layers of the language model, as they are in its components: with their formulas."""
    for stack in stacks(language_model(tree)):
        if not is_tower(stack):
            yield from component_sizes(stack)


def component_sizes(component: Component) -> Iterator[int]:
    """The sizes of a component and of all that is in it."""
    yield from component.dimensions().values()
    for part in component.distinct_parts():
        yield from component_sizes(part.component)


def language_model(tree: Component) -> Component:
    """The language model of a model that sees or hears, else all of it: towers run for images, not for tokens."""
    for part in tree.parts().values():
        if isinstance(part, LanguageModel):
            return part
    return tree


def fixed_source_tokens(part: Component) -> Iterator[int]:
    """How many entries of an encoder's output are attended to, where they are always as many (Whisper)."""
    if entries := getattr(part, "source_tokens", None):
        yield int(entries)
    for child in part.distinct_parts():
        yield from fixed_source_tokens(child.component)


class LanguageModel(Block):
    """A language model within a larger model: the owners of its ties are named from its own root."""

    def ties(self, prefix: str = "", outer: Category | None = None) -> Iterator[Tie]:
        for tie in super().ties(prefix, outer):
            yield tie._replace(owner=prefix + tie.owner)
