"""The language model in a tree: its layers, which run for each token, and their sizes."""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.base.symbolic import WIDTH_SYMBOL, sections_of
from paramcalc.tree.component import Component
from paramcalc.tree.containers import TOWER_ROLES, Block, Stack, stacks
from paramcalc.tree.weights import TOWER_CATEGORIES, Category, Tie


def is_tower(stack: Stack) -> bool:
    """True for stacks of vision and audio towers, which run for images and sounds instead of tokens."""
    return stack.category in TOWER_CATEGORIES or stack.role in TOWER_ROLES


def layer_sizes(tree: Component) -> Iterator[int]:
    """The sizes of all layers of the language model; symbolic ones keep their formulas."""
    for stack in stacks(language_model(tree)):
        if not is_tower(stack):
            yield from component_sizes(stack)


def layer_sections(tree: Component) -> set[str]:
    """The sections of the config that state the width of the language model's layers; "" is the top of the file."""
    return set().union(*(sections_of(size, WIDTH_SYMBOL) for size in layer_sizes(tree)))


def component_sizes(component: Component) -> Iterator[int]:
    """The sizes of a component and of all its parts."""
    yield from component.dimensions().values()
    for part in component.distinct_parts():
        yield from component_sizes(part.component)


def language_model(tree: Component) -> Component:
    """The language model of a multimodal model; other models are returned whole."""
    for part in tree.parts().values():
        if isinstance(part, LanguageModel):
            return part
    return tree


def fixed_source_tokens(part: Component) -> Iterator[int]:
    """The lengths of encoder outputs that are fixed (Whisper)."""
    if entries := getattr(part, "source_tokens", None):
        yield int(entries)
    for child in part.distinct_parts():
        yield from fixed_source_tokens(child.component)


class LanguageModel(Block):
    """The language model in a larger model: the owners of its ties are named relative to it.

    Shapes: those of its parts.
    Source: the attribute `language_model` of multimodal classes in transformers, such as LlavaModel.
    """

    def ties(self, prefix: str = "", outer: Category | None = None) -> Iterator[Tie]:
        for tie in super().ties(prefix, outer):
            yield tie._replace(owner=prefix + tie.owner)
