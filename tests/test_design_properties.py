"""Designs against all models that could have been chosen: a search by bisection finds what trying every width finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import paramcalc
from paramcalc.scaling.report import DesignReport, Point

DEPTH = 3
BASES: dict[str, dict[str, Any]] = {
    "dense": {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 704},
    "experts": {"model_type": "mixtral", "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 512},
    "windows": {"model_type": "gemma2", "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024},
}
MATCHES: dict[str, Callable[[Any], int]] = {
    "total": lambda row: row.parameters.total,
    "non-embedding": lambda row: row.parameters.non_embedding,
    "active": lambda row: row.parameters.active,
    "flops": lambda row: row.flops.forward_per_token,
    "weight-bytes": lambda row: row.weights.bytes,
}
SHARES = (3, 10, 41, 77)  # of the largest model's figure, in percent: what the budgets are


def base(kind: str) -> dict[str, Any]:
    return {**BASES[kind], "head_dim": 64, "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 2048}


def every(kind: str, **assumed: Any) -> list[Point]:
    """The models of all widths, from the narrowest on, that can be."""
    widths = list(range(64, 64 * 33, 64))
    rows = paramcalc.scale(paramcalc.load(base(kind)), {"depth": [DEPTH], "width": widths}, **assumed).rows
    return [row for row in rows if row.valid]


def chosen(report: DesignReport) -> Point:
    (row,) = report.rows
    return row


@pytest.mark.parametrize("match", MATCHES)
@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize("dtype", [None, "nf4", "q4_0", "q4_k_m"])
def test_no_other_width_is_closer(kind: str, match: str, dtype: str | None) -> None:
    """Of counts and FLOPs the nearest on either side; of bytes the largest model that they hold."""
    measure, models = MATCHES[match], every(kind, dtype=dtype)
    for share in SHARES:
        budget = max(map(measure, models)) * share // 100
        found = chosen(paramcalc.design(base(kind), budget, depth=[DEPTH], match=match, dtype=dtype))

        assert measure(found) in map(measure, models)
        if match == "weight-bytes":
            within = [row.parameters.total for row in models if row.parameters and measure(row) <= budget]
            assert found.parameters is not None
            assert found.parameters.total == max(within)
        else:
            assert abs(measure(found) - budget) == min(abs(measure(row) - budget) for row in models)


@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize("dtype", [None, "q4_k_m"])
def test_no_larger_model_fits_the_device(kind: str, dtype: str | None) -> None:
    """Of 1,300 MiB, of which 1 GiB is overhead: `memory` says of every width whether it fits."""
    sizes = []
    for row in every(kind, dtype=dtype):
        model = paramcalc.load(base(kind), overrides=row.fields)
        held = paramcalc.memory(model, context=4096, dtype=dtype).per_device.total.bytes
        if held <= 1300 * 2**20 and row.parameters:
            sizes.append(row.parameters.total)
    found = chosen(paramcalc.design(base(kind), depth=[DEPTH], gpu="1300MiB", context=4096, dtype=dtype))

    assert found.parameters is not None
    assert found.parameters.total == max(sizes)


@pytest.mark.parametrize("solve", ["d_ff", "vocab_size", "n_experts"])
def test_no_other_value_of_a_field_is_closer(solve: str) -> None:
    base_of = base("experts")
    rows = paramcalc.scale(paramcalc.load(base_of), {solve: list(range(2, 200))}).rows
    totals = [row.parameters.total for row in rows if row.parameters]
    for share in SHARES:
        budget = totals[0] + (totals[-1] - totals[0]) * share // 100
        found = chosen(paramcalc.design(base_of, budget, solve=solve))

        assert found.parameters is not None
        assert abs(found.parameters.total - budget) == min(abs(total - budget) for total in totals)
