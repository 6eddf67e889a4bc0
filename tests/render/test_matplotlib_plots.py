"""Plots as files."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import paramcalc
from paramcalc.base.units import short_count
from paramcalc.plots.choose import choose_plots
from paramcalc.plots.data import Bars, HeatMap, Scatter
from paramcalc.plots.scatter import number_axis
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

    assert texts(content)[-4:] == ["total 1.10 B", "closest", "gpt3 (6 of 8)", "mobilellm"]
    assert "width (channels)" in texts(content)


def test_several_plots_are_side_by_side_and_always_the_same(run: Run, tmp_path: Path) -> None:
    arguments = ("scale", "tutorial-moe", "--depth", "12,24", "--plot-kind", "moe,categories")
    content = svg(run, tmp_path, *arguments)

    assert [one for one in texts(content) if one.startswith("tutorial-moe: ")] == [
        "tutorial-moe: total against active parameters",
        "tutorial-moe: parameters by category",
    ]
    assert "active parameters per token" in content
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
        (["--plot", "x.pdf"], "error: --plot x.pdf: unknown file type\nhint: use .svg, .png or .html\n"),
        (["--plot-kind", "pie", "--chart"], "error: unknown kind of plot 'pie'\nhint: known: heatmap, categories, "),
        (["--plot-kind", "moe"], "error: --plot-kind without a plot\n"),
        (["--chart", "--format", "csv"], "error: --chart needs --format table, not csv\n"),
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
