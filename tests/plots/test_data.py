"""Plots as data, before anything is drawn."""

from __future__ import annotations

import pytest

import paramcalc
from paramcalc.base.units import short_count
from paramcalc.plots.choose import choose_plots
from paramcalc.plots.data import Bars, HeatMap, Scatter
from paramcalc.plots.heatmap import between, contour_levels
from paramcalc.plots.scatter import evenly
from paramcalc.reports.scaling import DesignReport, ScaleReport

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


def test_a_heat_map_has_the_totals_from_the_lowest_values_on(grid: ScaleReport) -> None:
    """The tutorial's figures; 1,000 channels are no whole heads of 64."""
    found = plot(grid, TUTORIAL, "heatmap")

    assert isinstance(found, HeatMap)
    assert (found.x.label, found.y.label) == ("width (channels)", "depth (layers)")
    assert (found.x.values, found.y.values) == ((768, 1000, 1536), (12, 24))
    assert found.totals == ((109_529_856, None, 388_929_024), (194_482_944, None, 728_704_512))
    assert found.levels == (200_000_000, 500_000_000)


def test_published_models_are_at_their_place_on_the_grid(grid: ScaleReport) -> None:
    """GPT-3 350M has 24 layers of 1,024: 24 of the 536 channels between 1,000 and 1,536."""
    found = plot(grid, TUTORIAL, "heatmap")
    assert isinstance(found, HeatMap)
    places = {mark.name: (mark.x, mark.y) for mark in found.marks}

    assert places == {
        "gpt3-125m": (0, 0),
        "gpt3-350m": (1 + 24 / 536, 1),
        "gpt3-760m": (2, 1),
    }


def test_places_outside_are_none() -> None:
    assert between([12, 24], 18) == 0.5
    assert between([12, 24], 25) is None


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (100, 1000, (200, 500)),
        (90, 1001, (100, 200, 500, 1000)),
        (60_000_000, 57_000_000_000, (10**8, 5 * 10**8, 10**9, 5 * 10**9, 10**10, 5 * 10**10)),
        (11, 11, ()),
        (1, 10**12, (10, 1000, 10**5, 10**7, 10**9, 10**11)),
    ],
)
def test_levels_are_round_and_few(low: int, high: int, found: tuple[int, ...]) -> None:
    assert contour_levels(low, high) == found


def test_ticks_are_round_and_within() -> None:
    assert evenly(11, 25) == (12, 14, 16, 18, 20, 22, 24)
    assert evenly(900, 2800) == (1000, 1500, 2000, 2500)
    assert evenly(0.5, 1.5) == (1,)


def test_categories_are_those_of_count_and_add_up(grid: ScaleReport) -> None:
    found = plot(grid, TUTORIAL, "categories")
    counted = paramcalc.count(paramcalc.load(TUTORIAL))

    assert isinstance(found, Bars)
    assert found.x.label == "depth (layers) x width (channels)"
    assert found.x.values[3] == "12 x 768"
    assert {name: values[3] for name, values in found.parts.items()} == {
        name: share.total for name, share in counted.components.items()
    }
    assert found.totals == [194_482_944, 0, 728_704_512, 109_529_856, 0, 388_929_024]


def test_experts_are_a_category_and_a_plot_of_their_own() -> None:
    """Mixtral 8x7B: 46.70 B, of which a token uses 12.88 B."""
    report = paramcalc.scale("mixtral-8x7b", {"n_experts": [4, 8]})
    first, second = choose_plots(report, paramcalc.load("mixtral-8x7b"))

    assert isinstance(first, Bars)
    assert first.parts["experts"][1] == 32 * 8 * 3 * 4096 * 14336
    assert isinstance(second, Scatter)
    assert second.diagonal == "dense"
    (series,) = second.series
    assert (series.dots[1].x, series.dots[1].y, series.dots[1].name) == (12_879_925_248, 46_702_792_704, "8")


def test_a_frontier_is_the_width_at_each_depth(design: DesignReport) -> None:
    found = plot(design, TUTORIAL, "frontier")

    assert isinstance(found, Scatter)
    assert (found.x.label, found.y.label) == ("depth (layers)", "width (channels)")
    own, *ladders = found.series
    assert [(dot.x, dot.y) for dot in own.dots] == [(row.depth, row.at["width"]) for row in design.rows]
    assert own.best == design.best
    names = [one.name for one in ladders]
    assert names[:2] == ["gpt3 (6 of 8)", "pythia (6 of 10)"]  # from 100 M to 10 B
    assert {dot.name for dot in ladders[0].dots} == {"", "gpt3-760m", "gpt3-1.3b"}  # from 500 M to 2 B


def test_what_is_the_same_on_both_axes_lies_on_a_straight_line() -> None:
    """Both are logarithmic, though active parameters differ by less than total ones."""
    report = paramcalc.scale("tutorial-moe", {"depth": [12, 24], "width": [768, 1536], "n_experts": [8, 128]})
    found = plot(report, "tutorial-moe", "moe")

    assert isinstance(found, Scatter)
    assert (found.x.logarithmic, found.y.logarithmic) == (True, True)
    assert [one.name for one in found.series] == [
        "depth 12, width 768",
        "depth 12, width 1536",
        "depth 24, width 768",
        "depth 24, width 1536",
    ]
    assert [dot.name for dot in found.series[0].dots] == ["8", "128"]


def test_the_best_on_a_device_is_the_largest() -> None:
    found = plot(paramcalc.design(TUTORIAL, depth=[12, 24], gpu="8GiB"), TUTORIAL, "frontier")

    assert isinstance(found, Scatter)
    assert (found.series[0].name, found.series[0].distinction) == ("largest on 8GiB", "largest")


@pytest.mark.parametrize(
    ("kind", "words"),
    [("frontier", "paramcalc design"), ("moe", "has no experts"), ("pie", "unknown kind of plot 'pie'")],
)
def test_kinds_that_do_not_suit_are_errors(grid: ScaleReport, kind: str, words: str) -> None:
    with pytest.raises(paramcalc.ParamcalcError, match=words):
        plot(grid, TUTORIAL, kind)


def test_a_heat_map_of_one_axis_is_an_error() -> None:
    with pytest.raises(paramcalc.ParamcalcError, match="two axes"):
        plot(paramcalc.scale(TUTORIAL, {"depth": [12, 24], "width": [768]}), TUTORIAL, "heatmap")


def test_no_model_is_no_plot() -> None:
    with pytest.raises(paramcalc.ParamcalcError, match="nothing to plot: width 1000 does not give whole"):
        plot(paramcalc.scale(TUTORIAL, {"width": [1000]}), TUTORIAL, "categories")


@pytest.mark.parametrize(
    ("number", "text"),
    [(999, "999"), (109_529_856, "110 M"), (39_047_679_488, "39.0 B"), (1_408_255_488, "1.41 B"), (2 * 10**9, "2 B")],
)
def test_counts_in_plots_have_three_figures(number: int, text: str) -> None:
    assert short_count(number) == text
