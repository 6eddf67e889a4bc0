"""The options of the commands scale and design that exclude each other, and what is printed and written."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import paramcalc
from paramcalc.cli import progress
from paramcalc.scaling.scaling_rules import (
    ABOUT_EXPERTS,
)
from tests.conftest import Run

TUTORIAL = "tutorial-110m"


@pytest.mark.parametrize(
    "arguments",
    [
        ["design"],
        ["design", "--budget", "many"],
        ["design", "--budget", "1.1B", "--match", "weight-bytes"],
        ["design", "--budget", "8GiB", "--match", "total"],
        ["design", "--budget", "1.1B", "--gpu", "nosuch"],
        ["design", TUTORIAL, "--budget", "1B", "--vocab", "5"],
        ["scale"],
        ["scale", TUTORIAL],
        ["scale", TUTORIAL, "--depth", "x"],
        ["scale", TUTORIAL, "--depth", "12:"],
        ["scale", TUTORIAL, "--depth", "9:3"],
        ["scale", TUTORIAL, "--sweep", "d_ff"],
        ["scale", TUTORIAL, "--sweep", "nosuch=1"],
        ["scale", TUTORIAL, "gpt2", "--depth", "3"],
        ["scale", TUTORIAL, "--depth", "3", "--rule", "heads"],
    ],
)
def test_what_cannot_be_asked_is_an_error(run: Run, arguments: list[str]) -> None:
    code, out, err = run(*arguments)

    assert code == 2
    assert out == ""
    assert err.startswith("error: ")


@pytest.mark.parametrize(
    ("base", "hint"),
    [
        ((), ABOUT_EXPERTS),
        (("llama3-8b",), "`paramcalc families NAME` lists the fields of a family"),
    ],
)
def test_a_base_without_experts_has_no_number_of_them(run: Run, base: tuple[str, ...], hint: str) -> None:
    """No hint at the very word that was given."""
    code, out, err = run("design", *base, "--budget", "1.1B", "--solve", "n_experts")

    assert (code, out) == (2, "")
    assert err.splitlines()[1] == f"hint: {hint}"


@pytest.mark.parametrize("option", [("--set", "vocab_size=100"), ("--text-only",), ("--strict",)])
@pytest.mark.parametrize("command", [("design", "--budget", "1B"), ("scale", "--depth", "12")])
def test_what_is_for_a_base_is_no_option_without_one(
    run: Run, command: tuple[str, ...], option: tuple[str, ...]
) -> None:
    code, out, err = run(*command, *option)

    assert (code, out) == (2, "")
    assert err.splitlines()[0] == f"error: {option[0]} needs a base model, and none is given"


def test_a_bar_is_shown_for_a_few_slow_points_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of seven points that take 0.3 seconds each the fourth ends after the first second."""
    now, shown = iter(range(0, 3000, 300)), []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("time.monotonic", lambda: next(now) / 1000)
    monkeypatch.setattr(progress._Bar, "at", lambda _, done, many: shown.append((done, many)))
    with progress.progress("points") as each:
        for done in range(1, 8):
            each(done, 7)

    assert shown == [(4, 7), (5, 7), (6, 7), (7, 7)]


def test_layers_that_a_token_passes_are_told_where_they_are_no_axis(run: Run) -> None:
    """T5's encoder and its decoder have a depth each, of which a token passes both."""
    _, out, _ = run("scale", "t5-small", "--depth", "6,12", "--format", "csv")
    rows = list(csv.DictReader(out.splitlines()))

    assert [(row["depth"], row["layers"]) for row in rows] == [("6", "12"), ("12", "24")]
    _, table, _ = run("scale", "t5-small", "--depth", "6,12")
    assert [line.split()[:2] for line in table.splitlines() if line.startswith(("depth", "    6", "   12"))] == [
        ["depth", "steps"],
        ["6", "12"],
        ["12", "24"],
    ]


def test_json_is_the_report(run: Run) -> None:
    _, out, _ = run("scale", TUTORIAL, "--depth", "12,24", "--width", "768,1000", "--json", "--context", "1k")
    report = paramcalc.scale(TUTORIAL, {"depth": [12, 24], "width": [768, 1000]}, context=1024)

    assert paramcalc.ScaleReport.model_validate_json(out) == report


def test_an_interrupted_file_is_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    path = tmp_path / "table.csv"
    path.write_text("before\n")

    def stop(_from: str, _to: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", stop)
    code, _, _ = run("scale", TUTORIAL, "--depth", "12", "--format", "csv", "--output", str(path))

    assert code == 130
    assert path.read_text() == "before\n"
    assert list(tmp_path.iterdir()) == [path]
