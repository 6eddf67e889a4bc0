"""What must hold for every model, drawn at random."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import paramcalc
from paramcalc.reports.count import CountReport

sizes = st.integers(1, 40)
heads = st.sampled_from([(4, 1), (4, 2), (4, 4), (6, 3), (5, 1)])


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """Decoders of paramcalc's own family, dense or with experts, of all kinds of sizes."""
    n_heads, n_kv_heads = draw(heads)
    fields: dict[str, Any] = {
        "model_type": "transformer",
        "d_model": draw(sizes) * n_heads,
        "n_layers": draw(st.integers(1, 9)),
        "n_heads": n_heads,
        "n_kv_heads": n_kv_heads,
        "head_dim": draw(st.none() | sizes),
        "d_ff": draw(sizes),
        "ffn": draw(st.sampled_from(["plain", "gated"])),
        "norm": draw(st.sampled_from(["rms", "layer"])),
        "norm_position": draw(st.sampled_from(["pre", "post"])),
        "bias": draw(st.booleans()),
        "vocab_size": draw(sizes),
        "tie_embeddings": draw(st.booleans()),
    }
    if draw(st.booleans()):
        fields["moe"] = {
            "experts": draw(st.integers(3, 9)),
            "top_k": draw(st.integers(1, 3)),
            "shared": draw(st.integers(0, 2)),
            "every": draw(st.integers(1, 3)),
            "first_dense": draw(st.integers(0, 3)),
        }
    return fields


def count(fields: dict[str, Any]) -> CountReport:
    return paramcalc.count(paramcalc.load(fields))


@given(configs())
@settings(deadline=None)
def test_categories_and_layers_add_up(fields: dict[str, Any]) -> None:
    report = count(fields)
    p = report.parameters

    assert sum(share.total for share in report.components.values()) == p.total
    assert sum(share.active for share in report.components.values()) == p.active
    assert sum(run.repeat for run in report.layers) == fields["n_layers"]
    outside = sum(report.components[c].total for c in ("embedding", "head") if c in report.components)
    final_norm = fields["d_model"] * (1 + (fields["norm"] == "layer")) * (fields["norm_position"] == "pre")
    assert sum(run.repeat * run.total for run in report.layers) == p.total - outside - final_norm


@given(configs())
@settings(deadline=None)
def test_active_never_exceeds_total(fields: dict[str, Any]) -> None:
    p = count(fields).parameters

    assert 0 < p.active <= p.total
    if "moe" not in fields:
        assert p.active == p.total
    assert p.active_without_input_embedding <= p.active


@given(configs(), sizes)
@settings(deadline=None)
def test_the_vocabulary_is_linear(fields: dict[str, Any], more: int) -> None:
    grown = count(fields | {"vocab_size": fields["vocab_size"] + more}).parameters.total

    slope = fields["d_model"] * (1 if fields["tie_embeddings"] else 2)
    assert grown - count(fields).parameters.total == more * slope


@given(configs())
@settings(deadline=None)
def test_one_layer_more_adds_that_layer(fields: dict[str, Any]) -> None:
    dense = {key: value for key, value in fields.items() if key != "moe"}

    more = count(dense | {"n_layers": dense["n_layers"] + 1})

    assert more.parameters.total - count(dense).parameters.total == more.layers[-1].total


@given(configs())
@settings(deadline=None)
def test_int8_weighs_as_many_bytes_as_there_are_parameters(fields: dict[str, Any]) -> None:
    report = count(fields | {"dtype": "int8"})

    assert report.weights.bytes == report.parameters.total


@given(configs())
@settings(deadline=None)
def test_a_report_survives_json(fields: dict[str, Any]) -> None:
    report = count(fields)

    assert CountReport.model_validate_json(report.model_dump_json()) == report


def test_ten_thousand_layers_are_one_run() -> None:
    shallow, deep = (paramcalc.load("llama3-8b", overrides={"num_hidden_layers": n}) for n in (10, 10_000))

    assert len(list(deep.tree.weights())) == len(list(shallow.tree.weights()))
    assert paramcalc.count(deep).layers[0].repeat == 10_000


def test_layers_that_alternate_are_counted_once_each() -> None:
    shallow, deep = (paramcalc.load({"model_type": "gemma2", "num_hidden_layers": n}) for n in (4, 10_000))

    assert len(list(deep.tree.weights())) == len(list(shallow.tree.weights()))
    assert len(paramcalc.count(deep).layers) == 10_000
