"""`paramcalc memory --explain`: the arithmetic of bytes, and where engines differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

import paramcalc
from paramcalc.assumptions import assume
from paramcalc.footprint.explain import explain_memory
from paramcalc.render.explain import explanation_text
from paramcalc.reports.count import Explanation, Line
from tests.conftest import Run


def explained(name: str, **assumptions: Any) -> Explanation:
    return explain_memory(paramcalc.load(name), assume(**{"context": 8192, **assumptions}))


def lines(explanation: Explanation, name: str) -> list[Line]:
    return [line for line in explanation.lines if line.name == name]


def test_keys_and_values_of_llama3_8b_by_hand() -> None:
    found = explained("llama3-8b", context=131_072, batch=4)
    (entry,) = lines(found, "key + value")
    (held,) = lines(found, "all entries")
    (cache,) = lines(found, "= kv cache")

    assert (entry.formula, entry.numbers, entry.result) == ("2 g d_h x bfloat16", "2 x 8 x 128 x 2", 4_096)
    assert (held.formula, held.numbers) == ("layers x T x entry", "32 x 131,072 x 4,096")
    assert (cache.formula, cache.result) == ("B x one sequence", 68_719_476_736)
    assert {symbol.symbol: symbol.value for symbol in found.symbols} == {"g": 8, "d_h": 128, "T": 131_072, "B": 4}


def test_windows_have_as_many_entries_as_they_are_wide() -> None:
    sliding, full = lines(explained("gpt-oss-20b"), "all entries")

    assert (sliding.formula, sliding.numbers) == ("layers x min(T, 128) x entry", "12 x 128 x 2,048")
    assert (full.formula, full.numbers) == ("layers x T x entry", "12 x 8,192 x 2,048")


def test_keys_and_values_in_dtypes_of_their_own_are_told_apart() -> None:
    found = explained("llama3-8b", kv_cache_dtype="q8_0", v_cache_dtype="q4_0")

    assert (lines(found, "key")[0].numbers, lines(found, "key")[0].result) == ("8 x 128 / 32 x 34", 1_088)
    assert (lines(found, "value")[0].numbers, lines(found, "value")[0].result) == ("8 x 128 / 32 x 18", 576)


def test_a_latent_and_its_rotary_key() -> None:
    latent = lines(explained("deepseek-v3"), "latent")[0]

    assert (latent.formula, latent.numbers, latent.result) == ("(r_kv + d_r) x bfloat16", "(512 + 64) x 2", 1_152)


def test_weights_by_format() -> None:
    """gpt-oss-20b: 19,110,297,600 values of experts in 4 bits with a scale for each 32, the rest in bfloat16."""
    found = explained("gpt-oss-20b")

    assert lines(found, "bfloat16")[0].numbers == "1,804,459,584 x 2"
    assert lines(found, "values")[0].numbers == "19,110,297,600 / 2 x 1"
    assert lines(found, "scales")[0].result == 19_110_297_600 // 32
    assert lines(found, "= weights")[0].result == 13_761_264_768


def test_blocks_of_a_gguf_file() -> None:
    (line,) = lines(explained("llama3-8b", dtype="q4_k_m"), "Q4_K")

    assert (line.numbers, line.result) == ("6,498,025,472 / 256 x 144", 3_655_139_328)


@pytest.mark.parametrize(
    "name",
    ["gpt2", "deepseek-v3", "gpt-oss-20b", "jamba-v0.1", "mamba-130m", "t5-small", "bert-base-uncased", "opt-125m"],
)
@pytest.mark.parametrize("asked", [{}, {"batch": 3, "kv_policy": "uniform", "mla": "expanded"}, {"attention": "eager"}])
def test_the_sums_are_those_of_the_report(name: str, asked: dict[str, Any]) -> None:
    report = paramcalc.memory(paramcalc.load(name), context=8192, **asked)
    found = explained(name, **asked)

    for title, part in {
        "= weights": "weights",
        "= kv cache": "kv_cache",
        "= state": "state",
        "= working": "working",
    }.items():
        (result,) = [line.result for line in lines(found, title)] or [0]
        assert result == getattr(report, part).bytes, title
    assert lines(found, "= total")[0].result == report.total.bytes


def test_devices_have_their_rules_and_their_sum() -> None:
    found = explained("llama3-8b", tensor_parallel=2)
    report = paramcalc.memory(paramcalc.load("llama3-8b"), context=8192, tensor_parallel=2)

    assert "q_proj" in lines(found, "column")[0].remark
    assert lines(found, "= total")[1].result == report.per_device.total.bytes


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("deepseek-v3", "--mla expanded"),
        ("gpt-oss-20b", "--kv-policy uniform"),
        ("qwen3-next-80b-a3b", "--conv-columns kernel-1"),
        ("jamba-v0.1", "--state-dtype"),
    ],
)
def test_where_engines_differ_an_option_is_named(run: Run, name: str, option: str) -> None:
    for extra in (["--explain"], []):
        assert option in " ".join(run("memory", name, *extra)[1].split())


def test_json_is_an_explanation(run: Run) -> None:
    code, out, _ = run("memory", "gpt2", "--explain", "--json", "-c", "8192")

    assert (code, json.loads(out)) == (0, explained("gpt2").model_dump(mode="json"))


@pytest.mark.parametrize("fmt", ["csv", "markdown"])
def test_other_formats(run: Run, fmt: str) -> None:
    code, out, _ = run("memory", "gpt2", "--explain", "--format", fmt)

    assert code == 0
    assert "all entries" in out


def test_an_encoder_keeps_nothing() -> None:
    found = explained("bert-base-uncased", context=512)

    assert not lines(found, "= kv cache")
    assert "no KV cache or state" in found.lines[-1].name


def test_what_has_no_figures_is_folded() -> None:
    text = explanation_text(explained("deepseek-v3"))

    assert max(map(len, text.splitlines())) <= 120


def test_sizes_that_are_equal_by_chance_are_not_told_as_one() -> None:
    """Qwen3-Next's convolutions run over 2 h_k d_k channels of queries and keys, and over h_v d_v of values."""
    convolved = lines(explained("qwen3-next-80b-a3b"), "conv")

    assert [line.formula for line in convolved] == ["2 h_k d_k x bfloat16", "h_v d_v x bfloat16"]
