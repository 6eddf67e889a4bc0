"""Published series of models next to the points of a sweep."""

from __future__ import annotations

import csv

import paramcalc
from paramcalc.scaling.model_series import LADDERS
from tests.conftest import Run

TUTORIAL = "tutorial-110m"


def test_ladders_are_presets_from_the_smallest_on() -> None:
    for names in LADDERS.values():
        totals = [paramcalc.count(paramcalc.load(name)).parameters.total for name in names]
        assert totals == sorted(totals)


def test_published_models_are_set_beside_with_the_figures_of_points() -> None:
    """GPT-3's table 2.1 and MobileLLM's card: layers, d_model, parameters."""
    report = paramcalc.scale(TUTORIAL, {"depth": [12]}, overlay=["GPT3", "mobilellm"])
    found = {one.name: (one.depth, one.width, round(one.parameters.total / 1e9, 2)) for one in report.overlay}

    assert found["gpt3-125m"] == (12, 768, 0.13)
    assert found["gpt3-13b"] == (40, 5140, 12.94)
    assert found["gpt3-175b"] == (96, 12288, 174.6)
    assert found["mobilellm-1.5b"] == (54, 1600, 1.51)
    assert report.overlay[0].aspect_ratio == 64
    assert report.overlay[0].ladder == "gpt3"
    (same,) = paramcalc.scale("mobilellm-125m", {"depth": [30]}).rows
    one = next(one for one in report.overlay if one.name == "mobilellm-125m")
    assert (one.parameters, one.flops, one.kv_cache) == (same.parameters, same.flops, same.kv_cache)


def test_a_reason_is_told_once(run: Run) -> None:
    """A width that cannot be is so at every depth; a table says it once, JSON at each point."""
    _, printed, _ = run("scale", TUTORIAL, "--depth", "12:24:4", "--width", "1000")

    assert printed.count("does not give whole n_heads") == 1
    assert "depth 12, width 1000 and 3 more: width 1000 does not give whole n_heads: 12 x 1000 / 768" in printed


def test_all_is_every_ladder() -> None:
    report = paramcalc.design(TUTORIAL, 10**9, depth=[12], overlay=["all", "opt"])

    assert [one.name for one in report.overlay] == [name for names in LADDERS.values() for name in names]


def test_ladders_are_rows_after_the_models(run: Run) -> None:
    code, out, _ = run("scale", TUTORIAL, "--depth", "12", "--overlay", "mobilellm", "--format", "csv")
    rows = list(csv.DictReader(out.splitlines()))

    assert code == 0
    assert [row["name"] for row in rows] == ["", *LADDERS["mobilellm"]]
    assert (rows[3]["depth"], rows[3]["width"], rows[3]["aspect_ratio"]) == ("40", "1152", "28.800")
    _, table, _ = run("design", "--budget", "1.1B", "--depth", "24", "--overlay", "qwen3")
    assert "qwen3-32b" in table


def test_an_unknown_ladder_is_an_error_with_the_choices(run: Run) -> None:
    code, out, err = run("scale", TUTORIAL, "--depth", "12", "--overlay", "gpt3,gpt5")

    assert (code, out) == (2, "")
    assert (
        err == "error: unknown ladder 'gpt5'\nhint: known: gpt3, pythia, opt, llama, qwen3, mobilellm, gemma; or all\n"
    )
