"""Generated files are up to date, and mistakes in what they are generated from are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import paramcalc
from paramcalc.families import registry, schemas
from paramcalc.families.registry import get_family
from tests.tools import index


def test_the_index_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert index.main(["--check"]) == 0, capsys.readouterr().err


def test_a_file_that_is_not_up_to_date_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "index.json"
    stale.write_text("{}\n")
    monkeypatch.setattr(index, "PACKAGE", tmp_path / "paramcalc")
    monkeypatch.setattr(index, "files", lambda: {stale: "{1}\n"})

    assert index.main(["--check"]) == 1
    assert capsys.readouterr().err == "index.json is not up to date: python -m tests.tools.index\n"
    assert stale.read_text() == "{}\n"
    assert index.main([]) == 0
    assert stale.read_text() == "{1}\n"


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe next to Llama's, without an entry in the schema."""
    recipe = registry._registered[get_family("llama").name]
    monkeypatch.setitem(registry._registered, "gated_llama", recipe)
    registry._family.cache_clear()


@pytest.mark.usefixtures("forgotten")
def test_a_recipe_without_a_schema_entry_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    place = get_family("llama").recipe.__module__.removeprefix("paramcalc.families.").replace(".", "/")
    message = f"gated_llama has a recipe in {place}.py and no entry in schemas/{place}.json"

    with pytest.raises(paramcalc.ParamcalcError) as caught:
        get_family("gated_llama")
    assert str(caught.value) == message
    assert index.main(["--check"]) == 1
    assert capsys.readouterr().err == f"error: {message}\n"


@pytest.mark.usefixtures("forgotten")
def test_a_module_without_a_schema_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> dict[str, Any]:
        raise FileNotFoundError

    monkeypatch.setattr(schemas, "schema_entries", missing)

    with pytest.raises(paramcalc.ParamcalcError, match=r"gated_llama has a recipe in \S+\.py and no entry in schemas/"):
        get_family("gated_llama")
