"""Plots: what they show as data, how a terminal draws them, and what is in the files."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import paramcalc
from paramcalc.base.units import short_count
from paramcalc.plots.choose import choose_plots
from paramcalc.plots.data import Bars, HeatMap, Scatter
from paramcalc.plots.heatmap import between, contour_levels
from paramcalc.plots.scatter import evenly, number_axis
from paramcalc.render.charts import cells_in_proportion, chart
from paramcalc.render.matplotlib_plots import draw_plot
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


# -- data ---------------------------------------------------------------------------------------------------------


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
    assert (found.series[0].name, found.series[0].distinction) == ("largest on 8GiB", "the largest")


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


# -- in a terminal ------------------------------------------------------------------------------------------------


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
        "too small to see:   norm 0.02 %"
    )


def test_cells_are_shared_out_to_the_last_one() -> None:
    assert cells_in_proportion([1, 1, 1], 10) == [4, 3, 3]
    assert cells_in_proportion([0, 0], 10) == [0, 0]


def test_a_frontier_marks_the_closest_and_names_what_there_is_room_for(design: DesignReport) -> None:
    lines = drawn(plot(design, TUTORIAL, "frontier"), 80).splitlines()

    assert lines[0] == "tutorial-110m: width at each depth, total 1 B"
    assert max(map(len, lines)) <= 80
    assert "o total 1 B   * the closest   x gpt3 (6 of 8)   + pythia (6 of 10)" in lines
    best = design.rows[design.best or 0].at["width"]
    assert re.search(rf"\* {best}|{best} \*", "\n".join(lines))


def test_a_chart_is_drawn_under_the_table(run: Run) -> None:
    code, out, _ = run("scale", "tutorial-moe", "--depth", "12,24", "--chart")

    assert code == 0
    assert out.index("training FLOPs") < out.index("parameters by category") < out.index("total against active")
    assert "\x1b" not in out


# -- as files -----------------------------------------------------------------------------------------------------


def svg(run: Run, tmp_path: Path, *arguments: str) -> str:
    pytest.importorskip("matplotlib")
    path = tmp_path / "plot.svg"
    code, _, err = run(*arguments, "--plot", str(path), "--format", "csv")
    assert (code, err) == (0, "")
    return path.read_text()


def texts(content: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", content)


def test_a_heat_map_as_a_file(run: Run, tmp_path: Path) -> None:
    content = svg(run, tmp_path, "scale", TUTORIAL, "--depth", "12,24", "--width", "768,1000,1536,3072")
    found = {"depth (layers)", "width (channels)", "12", "24", "768", "110 M", "2.82 B", "no model"}

    assert found <= set(texts(content))


def names_in(found: HeatMap | Bars | Scatter) -> set[str]:
    """Letters with a halo, which are paths in a file."""
    figure = pytest.importorskip("matplotlib.figure").Figure(layout="constrained")
    axes = figure.subplots()
    draw_plot(found, figure, axes)
    return {text.get_text() for text in axes.texts}


def test_lines_of_equal_parameters_and_published_models_are_named(grid: ScaleReport, design: DesignReport) -> None:
    plain = paramcalc.scale(TUTORIAL, {"depth": [12, 24, 48], "width": [768, 1536, 3072]})

    assert {"200 M", "500 M", "1 B", "2 B", "5 B", "110 M"} <= names_in(plot(plain, TUTORIAL, "heatmap"))
    gaps = paramcalc.scale(TUTORIAL, {"depth": [12, 24], "width": [768, 800, 1536, 3072]})  # 800 is no model
    assert {"200 M", "500 M", "1 B", "2 B"} <= names_in(plot(gaps, TUTORIAL, "heatmap"))
    assert {"gpt3-125m", "gpt3-350m", "gpt3-760m"} <= names_in(plot(grid, TUTORIAL, "heatmap"))
    assert {str(row.at["width"]) for row in design.rows} <= names_in(plot(design, TUTORIAL, "frontier"))


def test_large_heat_maps_have_a_scale_instead_of_numbers(run: Run, tmp_path: Path) -> None:
    content = svg(run, tmp_path, "scale", TUTORIAL, "--depth", "4:48:4", "--width", "256:3072:256")

    assert {"parameters", "1 B", "tutorial-110m: total parameters"} <= set(texts(content))
    content = svg(run, tmp_path, "scale", TUTORIAL, "--depth", "4:48:4", "--width", "256:3072:32")
    assert "tutorial-110m: total parameters; grey: no model" in texts(content)
    assert "110 M" not in content


def test_categories_as_a_file(run: Run, tmp_path: Path) -> None:
    content = svg(run, tmp_path, "scale", "llama3-8b", "--depth", "16,32,64")
    found = texts(content)

    assert {"parameters (billions)", "depth (layers)", "8.03 B"} <= set(found)
    assert found[-5:] == ["head", "norm", "ffn", "attention", "embedding"]  # from the top on, as they are stacked


def test_a_frontier_as_a_file(run: Run, tmp_path: Path) -> None:
    content = svg(run, tmp_path, "design", "--budget", "1.1B", "--depth", "12:48:12", "--overlay", "gpt3,mobilellm")

    assert texts(content)[-4:] == ["total 1.10 B", "the closest", "gpt3 (6 of 8)", "mobilellm"]
    assert "width (channels)" in texts(content)


def test_several_plots_are_side_by_side_and_always_the_same(run: Run, tmp_path: Path) -> None:
    arguments = ("scale", "tutorial-moe", "--depth", "12,24", "--plot-kind", "moe,categories")
    content = svg(run, tmp_path, *arguments)

    assert [one for one in texts(content) if one.startswith("tutorial-moe: ")] == [
        "tutorial-moe: total against active parameters",
        "tutorial-moe: parameters by category",
    ]
    assert "active parameters of one token" in content
    assert svg(run, tmp_path, *arguments) == content


@pytest.mark.parametrize("name", ["plot.png", "plot.html"])
def test_pictures_and_pages(run: Run, tmp_path: Path, name: str) -> None:
    pytest.importorskip("matplotlib")
    model = tmp_path / "a & b $x$.yaml"
    model.write_text("{model_type: gpt2}")
    code, _, _ = run("scale", str(model), "--depth", "2,4", "--width", "768,1536", "--plot", str(tmp_path / name))
    content = (tmp_path / name).read_bytes()

    assert code == 0
    if name == "plot.png":
        assert content.startswith(b"\x89PNG")
    else:
        assert b"<title>a &amp; b $x$: total parameters</title>" in content
        assert content.count(b"<svg") == 1
        assert b"<?xml" not in content
        assert b"<script" not in content


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plot", "x.pdf"], "error: --plot x.pdf: not a kind of plot\nhint: name it .svg, .png or .html\n"),
        (["--plot-kind", "pie", "--chart"], "error: unknown kind of plot 'pie'\nhint: known: heatmap, categories, "),
        (["--plot-kind", "moe"], "error: --plot-kind without a plot\n"),
        (["--chart", "--format", "csv"], "error: --chart is drawn under a table, not in csv\n"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(run: Run, arguments: list[str], message: str) -> None:
    code, out, err = run("scale", TUTORIAL, "--depth", "12", *arguments)

    assert (code, out) == (2, "")
    assert err.startswith(message)


def test_without_matplotlib_files_are_an_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = run("scale", TUTORIAL, "--depth", "12", "--plot", "x.svg")

    assert (code, out) == (2, "")
    assert err == "error: plots as files need matplotlib\nhint: pip install 'paramcalc[plot]'\n"


def test_an_axis_of_nearly_equal_values_tells_its_labels_apart() -> None:
    """Mixtral with 4 to 32 experts: the active parameters differ by the router's rows alone."""
    found = number_axis("active", [12_879_401_984, 12_883_071_232], written=short_count)

    assert len(found.ticks) == len(set(map(short_count, found.ticks))) >= 3
