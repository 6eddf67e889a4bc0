"""Tables as text, from fixed reports: exact strings, and columns that add up."""

from __future__ import annotations

import re

import pytest

import paramcalc
from paramcalc.counting.tree_rows import tree_rows
from paramcalc.render.count import count_models_table, count_table
from paramcalc.render.pattern import pattern_text
from paramcalc.render.table import Column, fit_columns, render_text, typed
from paramcalc.reports.count import CountReport

MOE = {
    "model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"],
    "_name_or_path": "tiny-moe",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_local_experts": 4,
    "num_experts_per_tok": 1,
    "vocab_size": 1000,
    "dtype": "bfloat16",
}


@pytest.fixture
def report() -> CountReport:
    return paramcalc.count(paramcalc.load(MOE))


EXPECTED = """\
tiny-moe  mixtral  MixtralForCausalLM  exact
3 x [attention + 4 experts, 1 active]

component   parameters               share    active
───────────────────────────────────────────────────────────────────────────────
embedding       64,000   64.00 K    16.5 %    64,000   ███████
attention       36,864   36.86 K     9.5 %    36,864   ████
experts        221,184   221.2 K    57.1 %    55,296   ████████████████████████
router             768       768     0.2 %       768   ▏
norm               448       448     0.1 %       448   ▏
head            64,000   64.00 K    16.5 %    64,000   ███████

total          387,264   387.3 K   100.0 %   221,376

active                          221,376  221.4 K  per token, including input and output embeddings
active without input embedding  157,376  157.4 K  excluding the lookup in the input embedding
non-embedding                   259,264  259.3 K  without embeddings and output head

weights  bfloat16 756.4 KiB (774,528 bytes)
         fp32 1.48 MiB  fp8 378.2 KiB
"""


def test_one_model_as_a_table(report: CountReport) -> None:
    assert render_text(count_table(report), width=None, color=False) == EXPECTED


def test_the_column_adds_up_to_the_printed_total(report: CountReport) -> None:
    text = render_text(count_table(report), width=None, color=False)
    rows = re.findall(r"^(\w[\w ]*?) +([\d,]+) +[\d.]+(?: K)? +[\d.<]+ %", text, re.MULTILINE)
    figures = {name: int(number.replace(",", "")) for name, number in rows}

    assert figures.pop("total") == sum(figures.values()) == report.parameters.total


def test_the_tree_opens_to_the_asked_depth(report: CountReport) -> None:
    tree = paramcalc.load(MOE).tree
    text = render_text(count_table(report, tree_rows(tree, 5)), width=None, color=False)

    assert re.search(r"^  3 x layers 0-2 +attention \+ 4 experts, 1 active ", text, re.MULTILINE)
    assert re.search(r"^      q_proj +64 x 64 +12,288 ", text, re.MULTILINE)
    assert [row.name for row in tree_rows(tree, 1)] == ["embed_tokens", "layers", "norm", "lm_head"]
    assert sum(row.total for row in tree_rows(tree, 1)) == report.parameters.total
    assert "4 x expert" in [row.name for row in tree_rows(tree, 6)]


def test_no_line_is_wider_than_the_terminal(report: CountReport) -> None:
    for width in (44, 60, 80, 120):
        text = render_text(count_table(report, width=width), width=width, color=False)
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text
        assert "387,264" in text


def test_several_models_as_a_table(report: CountReport) -> None:
    gpt2 = paramcalc.count(paramcalc.load("gpt2"))
    lines = render_text(count_models_table([report, gpt2], 400), width=None, color=False).splitlines()

    assert lines[2].split() == [
        "tiny-moe",
        "mixtral",
        "exact",
        "387,264",
        "387.3",
        "K",
        "221,376",
        "259,264",
        "bf16",
        "756.4",
        "KiB",
    ]
    assert lines[3].split()[:4] == ["gpt2", "gpt2", "exact", "124,439,808"]


def test_color_is_there_only_when_asked_for(report: CountReport) -> None:
    assert "\x1b[" not in render_text(count_table(report), width=None, color=False)
    assert "\x1b[" in render_text(count_table(report), width=80, color=True)


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ([(32, "a")], "32 x [a]"),
        ([(3, "a"), (58, "b")], "3 x [a]  58 x [b]"),
        ([(5, "s"), (1, "f")] * 10 + [(2, "s")], "10 x (5 x [s]  [f])  2 x [s]"),
        ([(1, "s"), (1, "f")] * 12, "12 x ([s]  [f])"),
        ([(2, "a"), (3, "a")], "5 x [a]"),
        ([(1, "a")], "1 x [a]"),
        (
            [(i, f"k{i}") for i in range(1, 12)],
            "[k1]  2 x [k2]  3 x [k3]  4 x [k4]  5 x [k5]  6 x [k6]  7 x [k7]  8 x [k8]  and 3 more runs",
        ),
    ],
    ids=range(7),
)
def test_patterns_are_written_once(runs: list[tuple[int, str]], text: str) -> None:
    assert pattern_text(runs) == text


def test_deepseek_is_three_and_fifty_eight() -> None:
    text = render_text(count_table(paramcalc.count(paramcalc.load("deepseek-v3"))), width=None, color=False)

    assert "3 x [attention + ffn]  58 x [attention + 256 experts, 8 active + 1 shared]" in text


def test_notes_wrap_before_they_are_left_out() -> None:
    """What a figure means is worth a line more on a terminal of 80 columns."""
    text = render_text(count_table(paramcalc.count(paramcalc.load("deepseek-v3")), width=80), width=80, color=False)
    assert "multi-token" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    tied = render_text(count_table(paramcalc.count(paramcalc.load("gemma2-2b")), width=80), width=80, color=False)
    assert "lm_head to embed_tokens, counted once" in tied


def test_a_long_table_looks_like_a_short_one() -> None:
    columns = [Column("", ["a", "bb"]), Column("total", ["1,000", "2"], right=True), Column("note", ["x", "longer"])]

    assert render_text(typed(columns), width=60, color=False) == render_text(
        fit_columns(columns, 60), width=60, color=False
    )
