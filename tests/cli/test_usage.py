"""How commands are used: JSON on failure, options of a group, words in the wrong place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paramcalc import catalog
from tests.conftest import Run

NOTHING = "no preset 'nothing'"


@pytest.mark.parametrize(
    "argv",
    [
        ["count", "nothing", "--json"],
        ["count", "nothing", "-ef", "json"],
        ["count", "nothing", "-efjson"],
        ["count", "nothing", "--format=JSON"],
        ["count", "--json", "--", "nothing"],
        ["presets", "--json", "show", "nothing"],
        ["presets", "-f", "json", "show", "nothing"],
    ],
    ids=" ".join,
)
def test_a_failure_is_json_however_json_is_asked_for(run: Run, argv: list[str]) -> None:
    code, out, err = run(*argv)

    assert code == 2
    assert json.loads(out)["error"]["message"] == NOTHING
    assert err.startswith(f"error: {NOTHING}\n")


@pytest.mark.parametrize(
    "argv",
    [
        ["count", "--no-such", "--json"],
        ["count", "--json", "--no-such"],
        ["count", "-Zf", "json"],
        ["count", "--json", "--preset"],
        ["presets", "--json", "nothing"],
        ["families", "--json", "a", "b"],
    ],
    ids=" ".join,
)
def test_a_usage_error_is_json_too(run: Run, argv: list[str]) -> None:
    code, out, _ = run(*argv)

    assert (code, json.loads(out)["error"]["exit_code"]) == (2, 2)


@pytest.mark.parametrize(
    "argv",
    [["count", "--", "--json"], ["count", "-p", "--json"], ["count", "nothing", "-o", "--json"], ["nothing", "--json"]],
    ids=" ".join,
)
def test_a_value_that_looks_like_an_option_asks_for_nothing(run: Run, argv: list[str]) -> None:
    code, out, err = run(*argv)

    assert (code, out) == (2, "")
    assert err.startswith("error: ")


def test_what_a_group_is_told_holds_for_its_commands(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, infos = tmp_path / "out.txt", catalog.preset_infos()
    monkeypatch.setattr(catalog, "preset_infos", lambda: infos)  # counted once

    assert run("presets", "--json", "list") == run("presets", "list", "--json")
    assert run("presets", "--format", "csv", "show", "gpt2") == run("presets", "show", "gpt2", "--format", "csv")
    assert run("presets", "--format", "csv", "list", "--format", "json") == run("presets", "list", "--json")
    assert run("presets", "--json", "list", "--format", "csv") == run("presets", "list", "--format", "csv")
    assert run("presets", "--output", str(target), "list") == (0, "", "")
    assert "llama3-8b" in target.read_text()


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["presets", "nothing"], "paramcalc presets list, or paramcalc presets show NAME"),
        (["presets", "lst"], "did you mean 'list'?"),
        (["presets", "GPT2"], "to show it: paramcalc presets show gpt2"),
        (["presets", "lama3-8b"], "did you mean 'llama3-8b'"),
        (["gpt2"], "to count it: paramcalc count gpt2"),
        (["cuont"], "did you mean 'count'?"),
        (["nothing"], "commands: count, "),
        (["--preset", "gpt2"], "options follow a command, as in paramcalc count --preset llama3-8b"),
        (["count", "--preste", "gpt2"], "paramcalc count --help"),
    ],
    ids=str,
)
def test_a_word_in_the_wrong_place_is_explained(run: Run, argv: list[str], hint: str) -> None:
    code, out, err = run(*argv)

    assert (code, out) == (2, "")
    assert err.splitlines()[0].startswith("error: no such ")
    assert err.splitlines()[1].startswith(f"hint: {hint}")


def test_a_file_in_the_place_of_a_command_is_explained(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("{}")

    assert f"hint: to count it: paramcalc count {path}\n" in run(str(path))[2]
