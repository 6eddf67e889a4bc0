"""Plots in a terminal."""

from __future__ import annotations

import re

import pytest

import paramcalc
from paramcalc.plots.choose import choose_plots
from paramcalc.plots.data import Bars, HeatMap, Scatter
from paramcalc.render.charts import cells_in_proportion, chart
from paramcalc.reports.scaling import DesignReport, ScaleReport
from tests.conftest import Run

TUTORIAL = "tutorial-110m"


GRID = {"depth": [24, 12], "width": [768, 1000, 1536]}


@pytest.fixture(scope="module")
def grid() -> ScaleReport:
    return paramcalc.scale(TUTORIAL, GRID, overlay=["gpt3"])


@pytest.fixture(scope="module")
def design() -> DesignReport:
    return paramcalc.design(TUTORIAL, 10**9, depth=[12, 24, 48], overlay=["all"])


def plot(report: ScaleReport | DesignReport, base: str, kind: str) -> HeatMap | Bars | Scatter:
    (one,) = choose_plots(report, paramcalc.load(base), [kind])
    return one


def drawn(found: HeatMap | Bars | Scatter, width: int | None = None) -> str:
    return chart(found, width, color=False).plain


def test_a_heat_map_is_read_without_colour(grid: ScaleReport) -> None:
    assert drawn(plot(grid, TUTORIAL, "heatmap")) == (
        "tutorial-110m: total parameters\n"
        "depth (layers)\n"
        "24    194 M     -     █ 729 M \n"
        "12    110 M     -     ░ 389 M \n"
        "      768     1000     1536\n"
        "    width (channels)\n"
        "\n"
        "[ ] < 200 M   [░] < 500 M   [█] >= 500 M"
    )


def test_a_heat_map_has_colours_that_say_the_same(grid: ScaleReport) -> None:
    text = chart(plot(grid, TUTORIAL, "heatmap"), 80, color=True)
    styles = {text.plain[span.start : span.end].strip(): str(span.style) for span in text.spans}

    assert styles["110 M"] == "#ffffff on #440154"
    assert styles["729 M"] == "#000000 on #fde725"


@pytest.fixture(scope="module")
def large() -> ScaleReport:
    return paramcalc.scale(TUTORIAL, {"depth": list(range(8, 90, 2)), "width": list(range(64, 2561, 64))})


def test_large_grids_fit_a_terminal(large: ScaleReport) -> None:
    found = plot(large, TUTORIAL, "heatmap")
    narrow, wide = drawn(found, 80).splitlines(), drawn(found, 160).splitlines()

    assert max(map(len, narrow)) <= 80
    assert narrow[-1] == "every 2nd column and every 2nd row; --plot FILE shows all"
    assert max(map(len, wide)) <= 100
    assert wide[-1] == "every 2nd row; --plot FILE shows all"


@pytest.mark.parametrize("width", [60, 80, 160])
def test_many_bars_fit_a_terminal(width: int) -> None:
    found = plot(paramcalc.scale(TUTORIAL, {"depth": list(range(1, 60))}), TUTORIAL, "categories")

    assert max(map(len, drawn(found, width).splitlines())) <= width


def test_bars_add_up_and_say_what_cannot_be_seen() -> None:
    found = drawn(plot(paramcalc.scale(TUTORIAL, {"depth": [12, 24]}), TUTORIAL, "categories"), 60)

    assert found == (
        "tutorial-110m: parameters by category\n"
        "depth (layers)\n"
        "12  ██████▓▓▓▓▓▓▓▒▒▒▒▒▒▒▒▒▒▒▒▒  109.5 M\n"
        "24  ██████▓▓▓▓▓▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒  194.5 M\n"
        "\n"
        "██ embedding 22.4 % to 12.6 %\n"
        "▓▓ attention 25.8 % to 29.1 %   ▒▒ ffn 51.7 % to 58.2 %\n"
        "too small to draw:   norm 0.02 %"
    )


def test_cells_are_shared_out_to_the_last_one() -> None:
    assert cells_in_proportion([1, 1, 1], 10) == [4, 3, 3]
    assert cells_in_proportion([0, 0], 10) == [0, 0]


def test_a_frontier_marks_the_closest_and_names_what_there_is_room_for(design: DesignReport) -> None:
    lines = drawn(plot(design, TUTORIAL, "frontier"), 80).splitlines()

    assert lines[0] == "tutorial-110m: width at each depth, total 1 B"
    assert max(map(len, lines)) <= 80
    assert "o total 1 B   * closest   x gpt3 (6 of 8)   + pythia (6 of 10)   # opt (5 of 8)" in lines
    best = design.rows[design.best or 0].at["width"]
    assert re.search(rf"\* {best}|{best} \*", "\n".join(lines))


def test_a_chart_is_drawn_under_the_table(run: Run) -> None:
    code, out, _ = run("scale", "tutorial-moe", "--depth", "12,24", "--chart")

    assert code == 0
    assert out.index("training FLOPs") < out.index("parameters by category") < out.index("total against active")
    assert "\x1b" not in out
