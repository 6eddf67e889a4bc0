"""How answers are given: one figure on all screens, unknown names, assumptions, verdicts."""

from __future__ import annotations

import json
from typing import Any

import pytest

import paramcalc
from paramcalc.reports.memory import MemoryReport
from tests.conftest import Run


def memory(source: Any, context: int = 8192, **assumptions: Any) -> MemoryReport:
    return paramcalc.memory(paramcalc.load(source), context=context, **assumptions)


@pytest.mark.parametrize("name", ["llama3-8b", "gpt-oss-20b", "jamba-v0.1"])
def test_two_screens_never_show_two_numbers_for_one_thing(run: Run, name: str) -> None:
    counted = json.loads(run("count", name, "--json")[1])["parameters"]["total"]
    held = json.loads(run("memory", name, "--json")[1])
    fitted = json.loads(run("fit", name, "--gpu", "h100", "--json")[1])
    told = json.loads(run("memory", name, "--explain", "--json")[1])["lines"]

    assert sum(share["parameters"] for share in held["weights"]["by_format"].values()) == counted
    assert fitted["per_device"] == held["per_device"]
    assert fitted["used_bytes"] == held["per_device"]["total"]["bytes"]
    assert held["total"]["bytes"] in [line["result"] for line in told if line["name"] == "= total"]


@pytest.mark.parametrize(
    ("arguments", "choice"),
    [
        (["memory", "llama3-8b", "--dtype", "int3.5"], "float16"),
        (["memory", "llama3-8b", "--dtype", "q4_k_x"], "q4_k_m"),
        (["memory", "llama3-8b", "--kv-cache-dtype", "tiny"], "q8_0"),
        (["memory", "llama3-8b", "--kv-policy", "paged"], "uniform"),
        (["memory", "llama3-8b", "--mla", "full"], "expanded"),
        (["fit", "llama3-8b", "--gpu", "h1000"], "h100-sxm"),
        (["gpus", "voodoo-2"], "rtx-4090"),
        (["dtypes", "float7"], "float16"),
    ],
)
def test_unknown_names_exit_with_2_and_the_choices(run: Run, arguments: list[str], choice: str) -> None:
    code, out, err = run(*arguments)

    assert (code, out) == (2, "")
    assert err.startswith("error: unknown ")
    assert choice in err.splitlines()[1]


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (["memory", "llama3-8b", "--dtype", "q4_k_m"], ["memory", "LLAMA3-8B", "--dtype", "Q4_K_M"]),
        (["memory", "llama3-8b", "--kv-cache-dtype", "fp8"], ["memory", "llama3-8b", "--kv-cache-dtype", "FP8"]),
        (["memory", "gpt-oss-20b", "--kv-policy", "uniform"], ["memory", "gpt-oss-20b", "--kv-policy", "Uniform"]),
        (["memory", "deepseek-v3", "--mla", "expanded"], ["memory", "deepseek-v3", "--mla", "EXPANDED"]),
        (["fit", "llama3-8b", "--gpu", "h100"], ["fit", "llama3-8b", "--gpu", "H100"]),
        (["fit", "llama3-8b", "--gpu", "rtx-4090"], ["fit", "llama3-8b", "--gpu", "RTX 4090"]),
    ],
)
def test_names_are_understood_in_any_case(run: Run, lower: list[str], upper: list[str]) -> None:
    one, other = (json.loads(run(*arguments, "--json")[1]) for arguments in (lower, upper))

    for part in ("weights", "kv_cache", "total") if lower[0] == "memory" else ("gpu", "used_bytes"):
        assert one[part] == other[part]


def test_unknown_fields_are_listed() -> None:
    fields = paramcalc.load("llama3-8b").config
    report = memory({**fields, "use_per_layer_gate": True})

    assert report.model.status == "approximate"
    assert "use_per_layer_gate" in report.warnings[0]


@pytest.mark.parametrize("command", [["memory"], ["fit", "--gpu", "h100"]])
def test_every_answer_says_what_was_assumed(run: Run, command: list[str]) -> None:
    for extra in ([], ["gpt-oss-20b"] if command == ["memory"] else []):
        out = run(*command, "llama3.1-8b", *extra)[1]
        (line,) = [line for line in out.splitlines() if line.startswith("context ")]

        for word in ("context 8,192 tokens", "batch 1", "weights", "cache bfloat16", "policy windowed"):
            assert word in line, word


def test_a_verdict_has_its_figures_beside_it(run: Run) -> None:
    code, out, _ = run("fit", "llama3-8b", "--gpu", "24GiB")

    assert code == 0
    assert "fits: yes, 74% of 24.0 GiB" in out
    assert "19,047,379,968" in out
