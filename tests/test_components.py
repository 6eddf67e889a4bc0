"""Every component documents its shapes and its source, stays small, and is in a model that a golden counts."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module

import pytest

import paramcalc
import paramcalc.components
import paramcalc.tree
from paramcalc.components import SUBMODULES
from paramcalc.tree.component import Component
from tests.goldens.store import COUNT

MOST_FIELDS = 12


def subclasses(kind: type[Component]) -> Iterator[type[Component]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


def all_components() -> list[type[Component]]:
    """Every component class of the package."""
    for package in (paramcalc.components, paramcalc.tree):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    return [kind for kind in subclasses(Component) if kind.__module__.startswith("paramcalc.")]


COMPONENTS = all_components()


@pytest.mark.parametrize("kind", COMPONENTS, ids=lambda kind: kind.__name__)
def test_a_component_documents_its_shapes_and_its_source(kind: type[Component]) -> None:
    text = vars(kind).get("__doc__") or ""

    assert "\n    Shapes: " in text
    assert "\n    Source: " in text


@pytest.mark.parametrize("kind", COMPONENTS, ids=lambda kind: kind.__name__)
def test_a_component_has_few_fields(kind: type[Component]) -> None:
    """Options that belong together are a value object: `Attention` once had 32 fields."""
    assert len(kind.fields.keys() - {"category"}) <= MOST_FIELDS


def test_every_component_of_the_package_is_exported() -> None:
    defined = {kind.__name__ for kind in COMPONENTS if kind.__module__.startswith("paramcalc.components.")}
    listed = {name for names in SUBMODULES.values() for name in names}

    assert listed == set(paramcalc.components.__all__) == defined | {"LanguageModel"}


def parts(component: Component) -> Iterator[Component]:
    yield component
    for part in component.distinct_parts():
        yield from parts(part.component)


def test_every_component_is_in_a_model_that_a_golden_counts() -> None:
    found: set[type[Component]] = set()
    for name in COUNT:
        if name.endswith("/odd-1"):
            found.update(map(type, parts(paramcalc.load(COUNT[name]["config"]).tree)))

    assert [kind.__name__ for kind in COMPONENTS if kind not in found] == []
