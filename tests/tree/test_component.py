"""Leaves, containers and the walk over a tree, with sizes that one can count in the head."""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc
from paramcalc.components import Mlp, Moe, Router
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Run, block, stack, stacks
from paramcalc.tree.leaves import Conv1d, Embedding, Linear, Norm, Param
from paramcalc.tree.weights import Category, Tie, effective_category


def total(component: Component) -> int:
    return sum(w.elements * w.copies for w in component.weights() if w.role == "parameter")


def moe(**changes: object) -> Moe:
    expert = Mlp(width=6, hidden=10, gated=True)
    fields: dict[str, Any] = {"width": 6, "expert": expert, "experts": 4, "top_k": 2}
    return Moe(**fields | changes)


@pytest.mark.parametrize(
    ("leaf", "elements"),
    [
        (Linear(d_in=6, d_out=4), 24),
        (Linear(d_in=6, d_out=4, bias=True), 28),
        (Linear(d_in=6, d_out=4, bias=True, tied_to="embed"), 4),
        (Embedding(rows=10, width=6), 60),
        (Embedding(rows=10, width=6, tied_to="shared"), 0),
        (Norm(width=6), 6),
        (Norm(width=6, bias=True), 12),
        (Norm(width=6, scale=False), 0),
        (Norm(width=6, count=3), 18),
        (Conv1d(channels=6, kernel=4), 30),
        (Conv1d(channels=6, kernel=4, bias=False), 24),
        (Param(shape=(2, 3, 5)), 30),
        (Param(shape=(7,), buffer=True), 0),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Component) else None,
)
def test_leaves_know_their_shapes(leaf: Component, elements: int) -> None:
    assert total(leaf) == elements


@pytest.mark.parametrize(
    ("outer", "inner", "category"),
    [
        (None, "ffn", "ffn"),
        ("attention", None, "attention"),
        ("experts", "ffn", "experts"),
        ("attention", "norm", "norm"),
        ("vision", "norm", "vision"),
        ("projector", "norm", "projector"),
        (None, None, None),
    ],
)
def test_the_outer_category_claims_what_is_inside(
    outer: Category | None, inner: Category | None, category: Category | None
) -> None:
    assert effective_category(outer, inner) == category


def test_equal_neighbours_become_one_run() -> None:
    a, b = block(norm=Norm(width=2)), block(norm=Norm(width=3))

    runs = stack("decoder", [a, a, b, a, block(norm=Norm(width=2))]).runs

    assert [(run.repeat, run.layer) for run in runs] == [(2, a), (1, b), (2, a)]


def test_runs_are_joined_and_empty_ones_vanish() -> None:
    a, b = block(norm=Norm(width=2)), block(norm=Norm(width=3))

    runs = stack("decoder", [Run(0, b), Run(2, a), Run(3, a), a]).runs

    assert [(run.repeat, run.layer) for run in runs] == [(6, a)]


def test_equal_runs_one_by_one_are_all_there() -> None:
    layer = block(norm=Norm(width=2))

    assert stack("encoder", [Run(2, layer, passes=3)] * 3).runs == (Run(6, layer, passes=3),)


def test_weights_have_full_paths_and_multiplied_copies() -> None:
    tree = block(layers=stack("decoder", Run(3, block(ffn=moe()))))

    weights = {w.name: (w.copies, w.active) for w in tree.weights()}

    assert weights["layers.0-2.ffn.experts.expert.up_proj.weight"] == (12, 6)
    assert weights["layers.0-2.ffn.router.gate.weight"] == (3, 3)


def test_ties_name_both_ends() -> None:
    head = Linear(d_in=2, d_out=9, tied_to="embed", category="head")

    assert list(block(embed=Embedding(rows=9, width=2), head=head).ties()) == [Tie("head", "embed", "head")]


def test_components_are_frozen_values() -> None:
    norm = Norm(width=6)

    assert norm == Norm(width=6, scale=True)
    assert norm != Norm(width=7)
    assert norm != Param(shape=(6,))
    assert norm.replace(bias=True) == Norm(width=6, bias=True)
    assert repr(norm.replace(bias=True)) == "Norm(width=6, bias=True)"
    with pytest.raises(AttributeError, match="Norm is frozen"):
        norm.width = 7  # type: ignore[misc]


@pytest.mark.parametrize("fields", [{}, {"width": 6, "wdith": 7}, {"widht": 6}], ids=str)
def test_a_component_has_just_its_fields(fields: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="Norm: unknown or missing fields"):
        Norm(**fields)


def test_described_layers_that_are_alike_are_one_object() -> None:
    fields = {"model_type": "transformer", "d_model": 8, "n_layers": 50, "n_heads": 2, "d_ff": 16}
    model = paramcalc.load(fields | {"moe": {"experts": 4, "top_k": 1, "every": 2}})
    (stack,) = stacks(model.tree)

    assert [kind.copies for kind in stack.layer_kinds()] == [25, 25]


def test_tallies_are_the_weights_added_up() -> None:
    """Two categories claimed from outside, a buffer, and experts of which one token uses one."""
    expert, router = Mlp(width=4, hidden=3, gated=False, category=None), Router(width=4, experts=5, correction=True)
    tree = block(
        layers=stack("decoder", [block(moe=Moe(width=4, expert=expert, experts=5, top_k=1, router=router))] * 2)
    )

    assert {(t.category, t.role): (t.total, t.active) for t in tree.totals()} == {
        ("router", "parameter"): (2 * 20, 2 * 20),
        ("router", "buffer"): (2 * 5, 2 * 5),
        ("experts", "parameter"): (2 * 5 * 24, 2 * 24),
    }
