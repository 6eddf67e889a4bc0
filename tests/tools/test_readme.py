"""README.md and docs/*.md are true: commands print what they show, their code runs, their links resolve."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paramcalc.cli.app import COMMANDS
from tests.conftest import ROOT
from tests.tools.readme import PAGES, TABLE, Session, commands, missing, table

HOW = "run: python -m tests.tools.readme"
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
each_page = pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])


@each_page
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = Session()

    for command, shown in commands(TEXTS[page]):
        if absent := missing(command):
            pytest.skip(f"the rest of this page needs {', '.join(absent)}")
        assert session.run(command, shown) == shown, f"{command}: {HOW}"


@each_page
def test_tables_are_up_to_date(page: Path) -> None:
    for match in TABLE.finditer(TEXTS[page]):
        assert match[0] == match[1] + table(match[2]) + match[3], HOW


@each_page
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}

    for block in re.findall(r"^```python\n(.*?)^```$", TEXTS[page], re.MULTILINE | re.DOTALL):
        exec(block, names)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    assert any(f"paramcalc {command}" in text for text in TEXTS.values())


def test_readme_is_one_page() -> None:
    assert len(TEXTS[ROOT / "README.md"].splitlines()) <= 200


def test_modules_that_developers_are_told_to_run_exist() -> None:
    files = [*ROOT.glob(".github/*.md"), *ROOT.glob("tests/**/*.md"), *ROOT.glob("paramcalc/**/*.md"), *PAGES]
    texts = [path.read_text(encoding="utf-8") for path in files]
    named = {name for text in texts for name in re.findall(r"python -m (tests[.\w]+)", text)}

    assert {"tests.tools.index", "tests.goldens.make", "tests.goldens.cache.make"} <= named
    assert [name for name in named if not (ROOT / f"{name.replace('.', '/')}.py").exists()] == []
    assert [path for path, text in zip(files, texts, strict=True) if "python tests/" in text] == []
