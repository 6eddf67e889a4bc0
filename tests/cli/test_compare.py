"""The command compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcalc
from paramcalc.render.compare import compare_table, value_text
from paramcalc.render.table import render_text
from paramcalc.reports.compare import CompareReport
from tests.conftest import Run

OLD = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}


NEW = OLD | {"intermediate_size": 192, "num_hidden_layers": 3, "num_key_value_heads": 4, "rope_theta": 500000.0}


def compared(*sources: Any, **options: Any) -> CompareReport:
    return paramcalc.compare([paramcalc.load(source) for source in sources], **options)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "old.json").write_text(json.dumps(OLD))
    (tmp_path / "new.json").write_text(json.dumps(NEW))
    return str(tmp_path / "old.json"), str(tmp_path / "new.json")


@pytest.mark.parametrize(
    "argv",
    [
        ("--preset", "gpt2", "opt-125m", "-pbert-base-uncased"),
        ("-p", "gpt2", "opt-125m", "--preset=bert-base-uncased"),
        ("gpt2", "opt-125m", "bert-base-uncased"),
        ("gpt2", "-p", "opt-125m", "--", "bert-base-uncased"),
        ("gpt2", "-p", "opt-125m", "-p", "bert-base-uncased"),
    ],
)
def test_models_stand_in_the_order_in_which_they_are_given(argv: tuple[str, ...], run: Run) -> None:
    code, out, _ = run("compare", "--json", *argv)

    assert code == 0
    assert [model["name"] for model in json.loads(out)["models"]] == ["gpt2", "opt-125m", "bert-base-uncased"]


def test_a_difference_fails_only_where_that_is_asked_for(run: Run, files: tuple[str, str]) -> None:
    old, new = files

    assert run("compare", old, new)[0] == 0
    assert run("compare", old, new, "--fail-on-difference")[0] == 1
    assert run("compare", old, new, "--exit-code", "--json")[0] == 1
    assert run("compare", old, old, "--exit-code")[0] == 0


def test_one_model_is_a_usage_error(run: Run, files: tuple[str, str]) -> None:
    code, out, err = run("compare", files[0])

    assert (code, out) == (2, "")
    assert err.splitlines()[0] == "error: compare needs at least two models, not one"
    assert err.splitlines()[1].startswith("hint: paramcalc compare --preset")


def test_a_table_of_a_change(run: Run, files: tuple[str, str]) -> None:
    code, out, _ = run("compare", *files, "--only-different")

    assert code == 0
    assert out.splitlines()[6] == "total                       86,848     172,992      +86,144   1.992 x"
    assert "num_hidden_layers        2     3      +49,280   ffn +36.86 K, attention +12.29 K, norm +128" in out
    assert "difference                            +86,144\n" in out
    assert "without effect on the count: rope_theta unstated -> 500000.0\n" in out


def test_rows_for_other_programs(run: Run, files: tuple[str, str]) -> None:
    lines = run("compare", *files, "--format", "csv")[1].splitlines()

    assert lines[0] == "figure,old,new,new difference,new ratio"
    assert lines[1] == "count.parameters.total,86848,172992,86144,1.99189"
    assert "shape.aspect_ratio,32.0,21.3333,-10.6667,0.666667" in lines
    assert "config.num_hidden_layers,2,3,49280," in lines
    assert (
        "| count.parameters.total | 86,848 | 172,992 | 86,144 | 1.99189 |"
        in run("compare", *files, "--format", "markdown")[1].splitlines()
    )


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("names", [("llama2-7b", "llama3-8b"), ("llama3-8b", "deepseek-v3", "gemma2-9b", "t5-base")])
def test_no_figure_is_cut_however_narrow(width: int, names: tuple[str, ...]) -> None:
    report = compared(*names)
    text = render_text(compare_table(report, width), width=width, color=False)

    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for one in report.rows:
        assert all(value_text(value) in text.split() or value is None for value in one.values)
    assert ("1.192 x" in text) is (width > 60 and len(names) == 2)


def test_layers_that_differ_show_their_range() -> None:
    assert value_text((1024, 2048)) == "1,024 / 2,048"
    assert value_text((2, 3, 5, 8)) == "2-8"
    assert value_text(None) == "-"
