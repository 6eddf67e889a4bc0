"""Parameters of attention, FFNs, experts and recurrences, with sizes that one can count in the head."""

from __future__ import annotations

from typing import Any

import pytest

from paramcalc.components import Attention, LatentAttention, Mamba, Mamba2, Mlp, Moe, Router
from paramcalc.components.attention import Projections, Scores
from paramcalc.tree.component import Component
from paramcalc.tree.leaves import Norm


def total(component: Component) -> int:
    return sum(w.elements * w.copies for w in component.weights() if w.role == "parameter")


def by_category(component: Component) -> dict[str, int]:
    found: dict[str, int] = {}
    for w in component.weights():
        found[w.category] = found.get(w.category, 0) + w.elements * w.copies
    return found


WIDTH_6: dict[str, Any] = {"width": 6, "heads": 2, "head_dim": 5}


@pytest.mark.parametrize(
    ("part", "elements"),
    [
        (Attention(**WIDTH_6, kv_heads=1), 6 * 10 + 2 * 6 * 5 + 10 * 6),
        (Attention(**WIDTH_6, kv_heads=2, projections=Projections(True, True, True, True)), 4 * 60 + 3 * 10 + 6),
        (Attention(**WIDTH_6, kv_heads=2, scores=Scores(sinks=True)), 4 * 60 + 2),
        (Attention(**WIDTH_6, kv_heads=2, scores=Scores(position_buckets=3)), 4 * 60 + 3 * 2),
        (Attention(**WIDTH_6, kv_heads=1, q_norm=Norm(width=5), k_norm=Norm(width=5)), 180 + 10),
        (
            LatentAttention(width=6, heads=2, q_rank=3, kv_rank=4, nope_dim=5, rope_dim=2, value_dim=7),
            6 * 3 + 3 + 3 * 2 * 7 + 6 * (4 + 2) + 4 + 4 * 2 * (5 + 7) + 2 * 7 * 6,
        ),
        (
            LatentAttention(width=6, heads=2, q_rank=None, kv_rank=4, nope_dim=5, rope_dim=2, value_dim=7),
            6 * 2 * 7 + 6 * (4 + 2) + 4 + 4 * 2 * (5 + 7) + 2 * 7 * 6,
        ),
        (Mlp(width=6, hidden=10, gated=False), 120),
        (Mlp(width=6, hidden=10, gated=True), 180),
        (Mlp(width=6, hidden=10, gated=True, bias=True), 180 + 26),
        (
            Mamba(width=6, inner=12, state_size=3, kernel=4, dt_rank=2),
            6 * 24 + (12 * 4 + 12) + 12 * (2 + 6) + (2 * 12 + 12) + 12 * 3 + 12 + 12 * 6,
        ),
        (
            Mamba2(width=6, inner=12, heads=3, head_dim=4, state_size=5, groups=1, kernel=4),
            6 * (12 + 22 + 3) + (22 * 4 + 22) + 3 + 3 + 3 + 12 + 12 * 6,
        ),
    ],
)
def test_semantic_parts(part: Component, elements: int) -> None:
    assert total(part) == elements


def moe(**changes: object) -> Moe:
    expert = Mlp(width=6, hidden=10, gated=True)
    fields: dict[str, Any] = {"width": 6, "expert": expert, "experts": 4, "top_k": 2}
    return Moe(**fields | changes)


def test_experts_are_counted_all_and_used_in_part() -> None:
    weights = list(moe().weights())

    assert sum(w.elements * w.copies for w in weights) == 4 * 180 + 24
    assert sum(w.elements * w.active for w in weights) == 2 * 180 + 24


def test_a_moe_says_what_is_what() -> None:
    shared = Mlp(width=6, hidden=5, gated=True, category="shared_experts")

    assert by_category(moe(shared=shared, shared_gate=True, router=Router(width=6, experts=4, bias=True))) == {
        "router": 24 + 4,
        "experts": 720,
        "shared_experts": 90 + 6,
    }


def test_a_correction_is_a_buffer() -> None:
    assert [(w.name, w.role) for w in moe(router=Router(width=6, experts=4, correction=True)).weights()][:2] == [
        ("router.gate.weight", "parameter"),
        ("router.correction.value", "buffer"),
    ]
