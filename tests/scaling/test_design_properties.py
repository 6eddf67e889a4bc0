"""Designs against all models that could have been chosen: a search by bisection finds what trying every width finds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import paramcalc
from paramcalc.reports.scaling import DesignPoint, DesignReport, Point

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


@cache
def every(kind: str, dtype: str | None) -> list[Point]:
    """The models of all widths, from the narrowest on, that can be."""
    widths = list(range(64, 64 * 33, 64))
    rows = paramcalc.scale(paramcalc.load(base(kind)), {"depth": [DEPTH], "width": widths}, dtype=dtype).rows
    return [row for row in rows if row.valid]


def chosen(report: DesignReport) -> DesignPoint:
    (row,) = report.rows
    return row


@pytest.mark.parametrize("match", MATCHES)
@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize("dtype", [None, "nf4", "q4_0", "q4_k_m"])
def test_no_other_width_is_closer(kind: str, match: str, dtype: str | None) -> None:
    """Of counts and FLOPs the nearest on either side; of bytes the largest model that they hold.

    A dtype changes neither counts nor FLOPs: there one budget shows that it does not.
    """
    measure, models = MATCHES[match], every(kind, dtype)
    shares = SHARES if dtype is None or match == "weight-bytes" else SHARES[list(MATCHES).index(match) :][:1]
    for share in shares:
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
    for row in every(kind, dtype):
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


def test_a_field_may_make_the_model_smaller() -> None:
    """Llama 3 8B with 64 heads of 64 channels: keys and values are 8 x 64 wide, half of what they were."""
    found = chosen(paramcalc.design("llama3-8b", 7_900_000_000, solve="num_attention_heads"))

    assert (found.fields, found.deviation) == ({"num_attention_heads": 64}, -3_956_480)
    assert found.parameters is not None
    assert found.parameters.total == 8_030_261_248 - 32 * 2 * 4096 * 512


def test_a_field_that_changes_nothing_beyond_the_depth_is_not_sought_there() -> None:
    """First layers without experts: 61 layers in all, and a budget between those of ten and eleven dense ones."""
    report = paramcalc.design("deepseek-v3", 600_000_000_000, solve="first_k_dense_replace")

    assert chosen(report).fields == {"first_k_dense_replace": 10}


@pytest.mark.parametrize("name", ["hidden_size", "d_model"])
def test_a_width_that_is_solved_as_a_field_is_the_width(name: str) -> None:
    report = paramcalc.design("llama3-8b", 1_000_000_000, solve=name)
    found = chosen(report)

    assert found.at == {"width": 608, name: 608}
    assert found.aspect_ratio == 608 / 32


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (dict(base="llama3-8b", budget=3 * 10**9, solve="vocab_size"), "no model is smaller"),
        (dict(base=None, budget=10), "no model is smaller"),
        (dict(base=None, budget=70 * 10**9, gpu="rtx-4090"), "the device holds no larger model"),
        (dict(base=None, budget=10**9, gpu="rtx-4090"), None),
        (dict(base="llama3-8b", budget=9 * 10**9, solve="d_ff"), None),
    ],
)
def test_a_budget_out_of_reach_is_told(asked: dict[str, Any], reason: str | None) -> None:
    report = paramcalc.design(**asked)

    assert list(report.warnings) == ([f"the budget is out of reach: {reason}"] if reason else [])


def test_a_field_that_changes_nothing_is_not_solved() -> None:
    [row] = paramcalc.design("mixtral-8x7b", 20 * 10**9, solve="num_experts_per_tok").rows

    assert row.problem == "all values from 1 to 8 give the same model"
