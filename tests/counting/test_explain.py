"""The arithmetic, as a reader with pen and paper would follow it."""

from __future__ import annotations

import json

import pytest

import paramcalc
from paramcalc.counting.explain import explain_count
from paramcalc.counting.tree_rows import tree_rows
from paramcalc.reports.count import Explanation, Line
from tests.conftest import Run


def explained(preset: str) -> Explanation:
    return explain_count(paramcalc.load(preset))


def line(explanation: Explanation, name: str) -> Line:
    return next(line for line in explanation.lines if line.name == name)


def test_grouped_query_attention() -> None:
    llama = explained("llama3-8b")

    assert {s.symbol: (s.value, s.origin) for s in llama.symbols} == {
        "V": (128_256, "vocab_size"),
        "d": (4096, "hidden_size"),
        "h": (32, "num_attention_heads"),
        "d_h": (128, "d / h"),
        "g": (8, "num_key_value_heads"),
        "d_ff": (14_336, "intermediate_size"),
        "L": (32, "all layers"),
    }
    k_proj = line(llama, "k_proj")
    assert (k_proj.formula, k_proj.numbers, k_proj.result) == ("g d_h d", "8 x 128 x 4,096", 4_194_304)
    attn = line(llama, "= attn")
    assert attn.formula == "2 d h d_h + 2 d g d_h"
    assert attn.remark == "= 2 d^2 + 2 d g d_h as h d_h = d"
    assert attn.numbers == "16,777,216 + 4,194,304 + 4,194,304 + 16,777,216"
    assert attn.result == 41_943_040
    assert line(llama, "= ffn").formula == "3 d d_ff"
    assert line(llama, "= all layers").numbers == "32 x 218,112,000"
    assert line(llama, "= total").result == 8_030_261_248


def test_twelve_d_squared() -> None:
    layer = line(explained("tutorial-110m"), "= one layer")

    assert layer.remark == "= 12 d^2 + 2 d as h d_h = d, g d_h = d, d_ff = 4 d"
    assert layer.result == 7_079_424


def test_biases_of_gpt2() -> None:
    gpt2 = explained("gpt2")

    assert line(gpt2, "= attn").remark == "= 4 d^2 + 4 d as h d_h = d"
    assert line(gpt2, "= ffn").formula == "8 d^2 + 5 d"
    assert line(gpt2, "lm_head").remark == "tied to embed_tokens, counted there"


def test_experts_in_all_and_for_one_token() -> None:
    mixtral = explained("mixtral-8x7b")

    everything, used = line(mixtral, "all experts"), line(mixtral, "active per token")
    assert (everything.formula, everything.numbers) == ("E (3 d d_ff)", "8 x 176,160,768")
    assert (used.formula, used.result) == ("k (3 d d_ff)", 352_321_536)
    assert line(mixtral, "= active").result == 12_879_925_248


def test_latent_attention() -> None:
    deepseek = explained("deepseek-v3")

    q = line(deepseek, "q_b_proj")
    assert (q.formula, q.numbers) == ("(h (d_n + d_r)) r_q", "(128 x (128 + 64)) x 1,536")
    assert q.result == 37_748_736
    assert line(deepseek, "correction").remark == "a buffer: not a parameter"
    assert line(deepseek, "= mtp").result == 11_610_068_224
    assert line(deepseek, "= as shipped").result == 13_463_426_304


def test_the_rule_of_thumb_stands_beside_the_exact_figure() -> None:
    llama = explained("llama3-8b")

    thumb, with_vocabulary = line(llama, "all layers"), line(llama, "with embedding")
    assert (thumb.formula, thumb.numbers, thumb.result) == ("12 L d^2", "12 x 32 x 4,096^2", 6_442_450_944)
    assert (with_vocabulary.formula, with_vocabulary.result) == ("12 L d^2 + V d", 6_967_787_520)
    exact = [(line.result, line.remark) for line in llama.lines if line.name == "exactly"]
    assert exact == [
        (6_979_588_096, "without embeddings and head; error of the rule -7.7 %"),
        (8_030_261_248, "total; error of the rule -13.2 %"),
    ]


def test_a_layer_seen_before_is_not_told_again() -> None:
    names = [line.name for line in explained("deepseek-v3").lines]

    assert names.count("q_b_proj") == 1


@pytest.mark.parametrize(
    "preset", ["llama3-8b", "gpt2", "mixtral-8x7b", "deepseek-v3", "t5-base", "jamba-v0.1", "albert-base-v2"]
)
def test_the_sum_of_the_parts_is_the_total(preset: str) -> None:
    explanation = explained(preset)
    report = paramcalc.count(paramcalc.load(preset))

    start = [line.name for line in explanation.lines].index("sum")
    parts = []
    for term in explanation.lines[start + 1 :]:
        if term.name.startswith("="):
            break
        parts.append(term.result or 0)
    assert sum(parts) == report.parameters.total


def test_explain_prints_symbols_terms_and_sums(run: Run) -> None:
    code, out, err = run("count", "llama3-8b", "--explain")

    assert (code, err) == (0, "")
    assert " d_h =       128  d / h" in out
    assert "    k_proj" in out
    assert "g d_h d                = 8 x 128 x 4,096" in out
    assert max(map(len, out.splitlines())) <= 110


def test_explain_has_the_other_formats_too(run: Run) -> None:
    _, as_json, _ = run("count", "gpt2", "--explain", "--json")
    _, as_csv, _ = run("count", "gpt2", "--explain", "--format", "csv")

    assert json.loads(as_json)["model"]["name"] == "gpt2"
    assert as_csv.startswith("model,name,formula,numbers,result,remark\n")


TWO_WIDTHS = {
    "model_type": "transformer",
    "d_model": 64,
    "n_heads": 4,
    "layers": [{"repeat": 2}, {"n_kv_heads": 2, "d_ff": 32}],
    "d_ff": 128,
    "vocab_size": 100,
}


def test_a_letter_never_stands_for_two_numbers() -> None:
    explanation = explain_count(paramcalc.load(TWO_WIDTHS))
    values = {s.symbol: s.value for s in explanation.symbols}

    assert (values["d_ff"], values["d_ff'"], values["g"], values["g'"]) == (128, 32, 4, 2)
    sums = [line for line in explanation.lines if line.name == "= ffn"]
    assert [line.formula for line in sums] == ["2 d d_ff", "2 d d_ff'"]
    assert [line.result for line in sums] == [16_384, 4_096]


def test_experts_of_another_width_have_a_letter_of_their_own() -> None:
    moe = {"experts": 4, "top_k": 2, "d_ff": 16, "shared": 1}

    explanation = explain_count(paramcalc.load(TWO_WIDTHS | {"moe": moe}))

    assert line(explanation, "all experts").formula == "E (2 d d_e)"
    assert line(explanation, "= shared_experts").formula == "2 d d_e s"


@pytest.mark.parametrize("preset", ["gemma2-9b", "jamba-v0.1", "gpt-oss-20b"])
def test_layers_that_alternate_are_told_once(preset: str) -> None:
    layers = [line.name for line in explained(preset).lines if line.name.startswith("decoder layer")]

    assert len(layers) <= 4
    assert any("..." in name for name in layers)


def test_mtp_is_in_the_sum_when_it_is_asked_for() -> None:
    model = paramcalc.load("deepseek-v3")

    lines = {line.name: line.result for line in explain_count(model, include_mtp=True).lines if line.level == 1}
    assert lines["mtp"] == 11_610_068_224
    assert lines["= total"] == 671_026_404_352 + 11_610_068_224
    rows = tree_rows(model.tree, 1, include_mtp=True)
    assert sum(row.total for row in rows) == lines["= total"]
    assert sum(row.total for row in tree_rows(model.tree, 3) if row.level == 0) == 671_026_404_352
