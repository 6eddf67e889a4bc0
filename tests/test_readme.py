"""README is true: its commands print what it shows, its code runs, its table is the index."""

from __future__ import annotations

import re

import pytest

from paramcalc.cli.app import COMMANDS
from tests.conftest import ROOT
from tests.readme import BLOCK, FAMILIES, README, families, output

TEXT = README.read_text()
SHOWN = BLOCK.findall(TEXT)
HOW = "run: python -m tests.readme"


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_commands_print_what_readme_shows(command: str, shown: str) -> None:
    assert output(command) == shown, HOW


def test_the_table_of_families_is_the_index() -> None:
    match = FAMILIES.search(TEXT)

    assert match
    assert match[0] == match[1] + families() + match[2], HOW


def test_python_blocks_run() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)

    assert blocks
    for block in blocks:
        exec(block, {})


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    assert f"paramcalc {command}" in TEXT


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!http)([^)]+)\)", TEXT):
        assert (ROOT / target).exists()
