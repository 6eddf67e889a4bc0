"""The shape of a model as its component tree has it: depth, width, heads, FFN. No family names, no config keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from paramcalc.tree.component import Component
from paramcalc.tree.containers import Stack, stacks
from paramcalc.tree.language import is_tower, language_model
from paramcalc.tree.weights import TOWER_CATEGORIES, Category, effective_category

# The name of the hidden channels of a feed-forward network, by its category.
HIDDEN_NAMES: Mapping[Category | None, str] = {"experts": "expert_d_ff", "shared_experts": "shared_expert_d_ff"}
SIZES = (
    "d_model",
    "heads",
    "kv_heads",
    "head_dim",
    "d_ff",
    "experts",
    "experts_per_token",
    "expert_d_ff",
    "shared_expert_d_ff",
)

# None: the model has no such part. A tuple, in ascending order: layers differ.
ShapeValue = int | Fraction | tuple[int | Fraction, ...] | None


def model_shape(tree: Component) -> dict[str, ShapeValue]:
    """Layers, widths and heads of the language model, which may be the whole model.

    `sequential_steps` counts the layers that a token passes through in sequence: shared layers once per pass, an
    encoder's and then a decoder's. `aspect_ratio` is d_model / sequential_steps, `ffn_ratio` is d_ff / d_model of
    dense FFNs.
    """
    layered = [stack for stack in stacks(language_model(tree)) if not is_tower(stack)]
    by_role = layers_by_role(layered)
    found: dict[str, set[int]] = {name: set() for name in SIZES}
    ratios = set()
    for stack in layered:
        for sizes in component_dimensions(stack):
            for name, size in sizes.items():
                found[name].add(size)
            if "d_ff" in sizes:
                ratios.add(Fraction(sizes["d_ff"], sizes["d_model"]))
    steps = sum(int(run.repeat) * run.passes for stack in layered for run in stack.runs)
    return {
        "layers": sum(int(run.repeat) for stack in layered for run in stack.runs) or None,
        **{f"{role}_layers": by_role.get(role) if len(by_role) > 1 else None for role in ("encoder", "decoder")},
        "sequential_steps": steps or None,
        "d_model": one_or_all(found["d_model"]),
        "aspect_ratio": one_or_all({Fraction(width, steps) for width in found["d_model"]}),
        **{name: one_or_all(found[name]) for name in SIZES[1:]},
        "ffn_ratio": one_or_all(ratios),
    }


def layers_by_role(layered: list[Stack]) -> dict[str, int]:
    """The number of encoder layers and of decoder layers; a role may have several stacks."""
    layers: dict[str, int] = {}
    for stack in layered:
        role = stack.role.split()[-1]
        layers[role] = layers.get(role, 0) + sum(int(run.repeat) for run in stack.runs)
    return layers


def component_dimensions(component: Component, outer: Category | None = None) -> Iterator[dict[str, int]]:
    """The sizes of this component and of each component below it.

    Hidden channels of experts have their own names, and the width of experts is ignored: it may be that of a latent
    (Nemotron-H).
    """
    category = effective_category(outer, component.category)
    if category in TOWER_CATEGORIES:
        return
    sizes = {name: int(size) for name, size in component.dimensions().items()}
    if category in HIDDEN_NAMES and "d_ff" in sizes:
        sizes = {HIDDEN_NAMES[category]: sizes["d_ff"]}
    yield sizes
    for part in component.distinct_parts():
        yield from component_dimensions(part.component, category)


def one_or_all(values: Iterable[int | Fraction]) -> ShapeValue:
    """The only value, all values in ascending order, or None if there is none."""
    found: tuple[int | Fraction, ...] = tuple(sorted(values))
    return found[0] if len(found) == 1 else found or None
