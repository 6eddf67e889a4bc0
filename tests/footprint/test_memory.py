"""`paramcalc memory`: the report, its assumptions, and what people see."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

import paramcalc
from paramcalc.cli import main
from paramcalc.reports.memory import AssumptionInfo

LLAMA_WEIGHTS, LLAMA_CACHE = 16_060_522_496, 131_072  # bytes in bf16, and for each token


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["memory", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_weights_and_cache_of_llama3_8b(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "llama3-8b", "--context", "128k", "--batch", "4")

    assert found["weights"]["bytes"] == LLAMA_WEIGHTS
    assert found["kv_cache"]["bytes"] == 4 * 131_072 * LLAMA_CACHE
    assert found["assumptions"]["context"] == 131_072


def test_json_is_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    report = paramcalc.memory(paramcalc.load("mixtral-8x7b"), context=4096, batch=2)

    assert answer(capsys, "mixtral-8x7b", "-c", "4k", "-b", "2") == report.model_dump(mode="json")


@pytest.mark.parametrize(("text", "tokens"), [("128k", 131_072), ("128000", 128_000), ("1M", 1_048_576)])
def test_128k_is_binary_and_128000_is_not(capsys: pytest.CaptureFixture[str], text: str, tokens: int) -> None:
    assert answer(capsys, "llama3-8b", "-c", text)["kv_cache"]["bytes"] == tokens * LLAMA_CACHE


def test_the_table_says_what_was_assumed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "llama3-8b"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert "context 8,192 tokens" in lines[1]
    assert "batch 1" in lines[1]
    assert "policy windowed" in lines[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--context", "0"],
        ["--context", "many"],
        ["--batch", "-1"],
        ["--kv-policy", "paged"],
        ["--mla", "compressed"],
        ["--dtype-of", "norm"],
        ["--dtype", "float7"],
        ["--kv-cache-dtype", "q99"],
    ],
)
def test_what_is_not_understood_is_an_error(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["memory", "llama3-8b", *arguments]) == 2
    written = capsys.readouterr()

    assert written.out == ""
    assert written.err.startswith("error: ")


def test_memory_wants_a_model() -> None:
    with pytest.raises(paramcalc.ParamcalcError, match="wants a Model"):
        paramcalc.memory("llama3-8b", context=1)  # type: ignore[arg-type]


def test_the_table_says_what_is_not_as_usual(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--tp", "2", "--pp", "2", "--v-cache-dtype", "fp8", "--attention", "eager", "--dtype-of", "norm=fp32"]
    assert main(["memory", "llama3-8b", *asked]) == 0
    line = capsys.readouterr().out.splitlines()[1]

    assert line == (
        "context 8,192 tokens  batch 1  weights bfloat16  norm fp32  cache bfloat16 / float8_e4m3fn  policy windowed  "
        "tp 2  pp 2  eager attention"
    )


def test_more_tokens_than_a_config_states_are_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "llama3-8b", "--context", "128k"]) == 0
    said = "note: a context of 131,072 tokens is beyond the config's max_position_embeddings of 8,192"

    assert capsys.readouterr().out.splitlines()[-1] == said
    assert main(["memory", "llama3.1-8b", "--context", "128k"]) == 0
    assert "beyond" not in capsys.readouterr().out


def test_a_section_states_the_positions_of_the_language_model() -> None:
    text = dict(model_type="llama", max_position_embeddings=4096, dtype="bfloat16")
    model = paramcalc.load(dict(model_type="llava", text_config=text))

    assert model.facts.max_positions == ("max_position_embeddings", 4096)


def test_the_signature_shows_all_assumptions() -> None:
    shown = inspect.signature(paramcalc.memory).parameters

    assert list(shown)[:4] == ["model", "context", "batch", "source"]
    assert shown["context"].default is inspect.Parameter.empty
    defaults = ("batch", "dtype", "kv_cache_dtype", "kv_policy", "mla", "tensor_parallel")
    assert [shown[name].default for name in defaults] == [1, None, None, "windowed", "latent", 1]
    assert set(AssumptionInfo.model_fields) == set(shown) - {"model"}
    assert set(shown) < set(inspect.signature(paramcalc.fit).parameters)


def test_the_keys_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """The contract with programs: what is there stays there."""
    found = answer(capsys, "jamba-v0.1", "--tp", "2")
    parts = ["weights", "kv_cache", "state", "working", "overhead"]
    about = {"schema_version", "version", "model", "warnings", "notes", "assumptions"}

    assert set(found) == about | set(parts) | {"total", "per_device"}
    assert {"context", "batch", "dtype", "kv_cache_dtype", "kv_policy", "mla", "tensor_parallel"} <= set(
        found["assumptions"]
    )
    assert {"bytes", "by_format", "by_category"} <= set(found["weights"])
    assert set(found["weights"]["by_format"]["bfloat16"]) == {"tensors", "parameters", "bytes"}
    assert {"bytes", "bytes_per_token", "per_sequence"} <= set(found["kv_cache"])
    assert {"fixed", "per_token", "windows"} <= set(found["kv_cache"]["per_sequence"])
    for part in ("state", "working", "overhead", "total"):
        assert isinstance(found[part]["bytes"], int)
        assert isinstance(found["per_device"][part]["bytes"], int)
    assert found["total"]["bytes"] == sum(found[part]["bytes"] for part in parts)


def test_several_models_have_their_assumptions_above_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "llama3-8b", "gpt-oss-20b", "--kv-cache-dtype", "fp8", "--batch", "2"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()

    assert first == "context 8,192 tokens  batch 2  weights as stored  cache float8_e4m3fn  policy windowed"
    assert [line.split()[:2] for line in rest[-2:]] == [["llama3-8b", "bfloat16"], ["gpt-oss-20b", "mxfp4"]]


@pytest.mark.parametrize("arguments", [["--batch", "0"], ["--tp", "0"], ["--kv-policy", "paged"], ["--dtype", "x"]])
def test_every_error_has_a_hint(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["memory", "llama3-8b", *arguments]) == 2
    error, hint = capsys.readouterr().err.splitlines()

    assert error.startswith("error: ")
    assert hint.startswith("hint: ")


@pytest.mark.parametrize(("form", "estimate"), [("bf16", False), ("q4_k_m", False), ("exl2-4.65bpw", True)])
def test_weights_are_marked_where_they_are_an_estimate(
    capsys: pytest.CaptureFixture[str], form: str, estimate: bool
) -> None:
    assert answer(capsys, "llama3-8b", "--dtype", form)["weights"]["estimate"] is estimate
    assert main(["memory", "llama3-8b", "--dtype", form]) == 0
    assert ("weights (estimate)" in capsys.readouterr().out) is estimate
