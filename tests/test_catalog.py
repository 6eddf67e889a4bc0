"""Every JSON answer of the command line has a schema that `paramcalc schema` prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paramcalc import catalog
from paramcalc.cli import main
from paramcalc.cli.app import COMMANDS
from paramcalc.reports.error import ErrorReport

# A command line without --json, and the schema of its answers. Every command and subcommand, and every option that
# changes what a command answers.
ANSWERS = {
    "count gpt2": "count",
    "count gpt2 --explain": "explain",
    "memory gpt2": "memory",
    "memory gpt2 --explain": "explain",
    "fit gpt2 --gpu h100": "fit",
    "flops gpt2 --explain --by-part": "flops",
    "trace gpt2": "trace",
    "scale gpt2 --depth 2": "scale",
    "design gpt2 --budget 1B": "design",
    "compare gpt2 gpt2-xl": "compare",
    "presets": "presets",
    "presets list": "presets",
    "presets show gpt2": "presets",
    "gpus": "gpus",
    "gpus h100": "gpus",
    "families": "families",
    "families gpt2": "families",
    "dtypes": "dtypes",
    "dtypes q4_0": "dtypes",
}
NO_REPORT = {"schema"}  # its answers are JSON Schemas


@pytest.mark.parametrize("line", ANSWERS)
def test_an_answer_has_its_schema(line: str, tmp_path: Path) -> None:
    path, report = tmp_path / "answer.json", catalog.REPORTS[ANSWERS[line]]

    assert main([*line.split(), "--json", "--output", str(path)]) == 0
    answer = json.loads(path.read_text())
    for one in answer if isinstance(answer, list) else [answer]:
        report.model_validate_json(json.dumps(one), strict=True)


@pytest.mark.parametrize("line", ["count lama", "memory gpt2 --context x", "scale gpt2", "fit gpt2", "count --nope"])
def test_a_failure_has_its_schema(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([*line.split(), "--json"])
    failure = ErrorReport.model_validate_json(capsys.readouterr().out, strict=True)

    assert failure.error.exit_code == code == 2


def test_every_command_and_every_schema_is_tried() -> None:
    assert {line.split()[0] for line in ANSWERS} | NO_REPORT == set(COMMANDS)
    assert {*ANSWERS.values(), "error"} == catalog.REPORTS.keys()
    assert catalog.schemas().keys() == {*catalog.REPORTS, "model"}
