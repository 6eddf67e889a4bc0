"""Designs: the model that comes closest to a budget, or the largest that fits a device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import paramcalc
from tests.conftest import Run

TUTORIAL = "tutorial-110m"


def test_a_design_is_the_closest_width() -> None:
    """Around 389 M at 12 layers: 1,536 is it exactly; its neighbours of 64 channels more or less are further off."""
    report = paramcalc.design(TUTORIAL, 388_929_024, depth=[12, 24])
    first, second = report.rows

    assert first.at == {"depth": 12, "width": 1536}
    assert first.deviation == 0
    assert first.aspect_ratio == 128
    assert report.best == 0
    assert second.deviation is not None
    assert second.parameters is not None
    other = paramcalc.scale(TUTORIAL, {"depth": [24], "width": [second.at["width"] - 64, second.at["width"] + 64]})
    for row in other.rows:
        assert row.parameters is not None
        assert abs(row.parameters.total - 388_929_024) > abs(second.deviation)


def test_one_field_can_be_solved_for() -> None:
    """7.99 B = 8.03 B less 32 layers x 3 x 4,096 channels for each of 77 columns of the FFN."""
    report = paramcalc.design("llama3-8b", 8_030_261_248 - 77 * 32 * 3 * 4096, solve="d_ff")
    (row,) = report.rows

    assert row.at == {"width": 4096, "d_ff": 14336 - 77}
    assert row.deviation == 0


def test_widths_are_multiples_of_what_is_asked_and_of_a_head() -> None:
    """Of 64 and of 100: 1,600 and 3,200, of which 1,600 comes closer at 24 layers, 3,200 at 12.

    By hand at 24 x 1,600 with 25 heads in five groups and an FFN of 4,352 (8/3 x 1,600 to a multiple of 256, upwards).
    """
    report = paramcalc.design(budget=1_100_000_000, depth=[12, 24], multiple_of=100)

    assert [row.at["width"] for row in report.rows] == [3200, 1600]
    layer = 2 * 1600 * 1600 + 2 * 1600 * 5 * 64 + 3 * 1600 * 4352 + 2 * 1600
    assert report.rows[1].parameters is not None
    assert report.rows[1].parameters.total == 32_000 * 1600 + 24 * layer + 1600


def test_what_grows_nowhere_is_the_closest_of_what_can_be() -> None:
    """More heads of fewer channels in eight groups: fewer parameters, and most numbers do not divide the width."""
    (row,) = paramcalc.design("llama3-8b", 9_000_000_000, solve="n_heads").rows

    # 8 heads of 512: keys and values of 8 x 512 channels instead of 8 x 128, in 32 layers
    assert row.at["n_heads"] == 8
    assert row.parameters is not None
    assert row.parameters.total == 8_030_261_248 + 32 * 2 * 4096 * 8 * (512 - 128)


def test_a_design_for_a_device_fits_it_and_the_next_width_does_not() -> None:
    report = paramcalc.design(TUTORIAL, depth=[24], gpu="8GiB", context=32768)
    (row,) = report.rows
    width = row.at["width"]
    one, next_one = (
        paramcalc.memory(
            paramcalc.load(TUTORIAL, overrides={"n_layers": 24, "d_model": w, "n_heads": w // 64, "d_ff": 4 * w}),
            context=32768,
        )
        for w in (width, width + 64)
    )

    assert one.per_device.total.bytes <= 8 * 2**30 < next_one.per_device.total.bytes


def test_a_design_may_be_of_a_gguf_file() -> None:
    """Where llama.cpp's converter does not know the family, the bits are typical ones, and that is said."""
    report = paramcalc.design(None, 8 * 2**30, match="weight-bytes", dtype="q4_k_m", gpu="12GiB", depth=[32])
    (row,) = report.rows

    assert row.weights is not None
    assert row.weights.bytes <= 8 * 2**30
    assert any("estimate" in warning for warning in report.warnings)


def test_a_design_is_saved_as_a_model(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "design.yaml"
    code, out, _ = run("design", "--budget", "1.1B", "--depth", "22", "--vocab", "32000", "--save", str(path), "--json")
    row = json.loads(out)["rows"][0]

    assert code == 0
    assert paramcalc.count(paramcalc.load(path)).parameters.total == row["parameters"]["total"]


def test_no_design_within_the_limit_is_an_answer(run: Run) -> None:
    """A width of 64 at 4 layers takes 4.5 MB; the table says so, nothing is saved, and the answer is no."""
    code, out, err = run("design", "--budget", "1KiB", "--depth", "4", "--save", "/nowhere/design.yaml")

    assert (code, err) == (1, "")
    assert out.rstrip().endswith("depth 4, width 64: even the smallest model exceeds the budget")


def test_a_design_is_saved_as_yaml_alone(run: Run, tmp_path: Path) -> None:
    code, _, err = run("design", "--budget", "1.1B", "--save", tmp_path / "design.json")
    assert (code, err.splitlines()[1]) == (2, "hint: name the file like design.yaml")
    assert list(tmp_path.iterdir()) == []


def test_a_budget_in_words_is_for_the_command_line() -> None:
    with pytest.raises(paramcalc.ParamcalcError, match=r"budget must be an integer, not '1\.1B'"):
        paramcalc.design(budget="1.1B")  # type: ignore[arg-type]  # what a hurried user writes
