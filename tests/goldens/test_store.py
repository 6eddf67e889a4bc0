"""The files of goldens are complete and in order."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.goldens import store
from tests.goldens.store import COUNT, FLOPS, Goldens

FILES = sorted(store.HERE.rglob("*.jsonl"))


def test_files_are_sorted_lines_with_the_id_first() -> None:
    assert len(FILES) > 400
    for path in FILES:
        rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
        ids = [row.split('"', 4)[3] for row in rows]
        assert all(row.startswith('{"id": "') and row.endswith("}\n") for row in rows), path
        assert ids == sorted(set(ids)), path
        assert [store.line(name, record) for name, record in store.read(path).items()] == rows, path


def test_goldens_never_come_from_paramcalc() -> None:
    scripts = [path for path in store.HERE.rglob("*.py") if not path.name.startswith("test_")]

    assert len(scripts) > 20
    assert [path for path in scripts if re.search(r"^\s*(import|from) paramcalc", path.read_text(), re.MULTILINE)] == []


def test_records_are_named_by_family_and_case() -> None:
    assert COUNT["llama/llama3-8b"]["total"] == 8_030_261_248
    assert FLOPS["llama/odd-1"]["runs"]
    assert "odd-3" in {name.partition("/")[2] for name in COUNT.families["llama"]}


def test_a_record_is_nobody_elses() -> None:
    COUNT["llama/odd-1"]["config"]["hidden_size"] = 1

    assert COUNT["llama/odd-1"]["config"]["hidden_size"] > 1


def test_floats_that_json_has_no_word_for_are_read() -> None:
    assert store.floats({"__float__": "Infinity"}) == float("inf")
    assert store.floats({"a": 1}) == {"a": 1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store.write(tmp_path / "x.jsonl", {"b/1": {"total": 2}, "a/2": {"total": 1}, "a/10": {"total": 3}})
    return tmp_path / "x.jsonl"


def test_what_is_written_is_read(path: Path) -> None:
    assert path.read_text() == '{"id": "a/10", "total": 3}\n{"id": "a/2", "total": 1}\n{"id": "b/1", "total": 2}\n'
    assert store.read(path) == {"a/10": {"total": 3}, "a/2": {"total": 1}, "b/1": {"total": 2}}


def test_one_family_is_replaced_among_others(path: Path) -> None:
    store.replace(path, "a", {"3": {"total": 4}})

    assert [json.loads(row)["id"] for row in path.read_text().splitlines()] == ["a/3", "b/1"]


def test_a_file_without_records_is_deleted(path: Path) -> None:
    store.write(path, {})

    assert not path.exists()
    assert store.read(path) == {}


def test_changes_are_told_field_by_field() -> None:
    old, new = {"total": 1, "categories": {"ffn": 2}}, {"total": 1, "categories": {"ffn": 3, "norm": 1}}

    assert list(store.differences(old, new)) == ["categories.ffn: 2 -> 3", "categories.norm: null -> 1"]
    assert store.changed({"x": old}, {"x": new, "y": old}) == ["x", "y"]
    assert store.changed({"x": old}, {"x": dict(old)}) == []


def test_a_folder_without_files_has_no_records() -> None:
    assert list(Goldens("odd")) == []
