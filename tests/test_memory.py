"""`paramcalc memory`: the report, its assumptions, and what people see."""

from __future__ import annotations

import json

import pytest

import paramcalc
from paramcalc.cli import main

LLAMA_WEIGHTS, LLAMA_CACHE = 16_060_522_496, 131_072  # bytes in bf16, and for each token


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["memory", *arguments, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
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
