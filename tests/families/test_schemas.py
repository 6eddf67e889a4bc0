"""Schemas are written by hand, defaults are generated, and together they give each field one default."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paramcalc.base.errors import UnknownFamilyError
from paramcalc.config.known_keys import known_keys
from paramcalc.families import schemas
from paramcalc.families.registry import get_family
from tests.goldens.defaults import DEFAULTS, SCHEMAS

FILES = sorted(path.relative_to(SCHEMAS) for path in SCHEMAS.rglob("*.json"))


def read(folder: Path, file: Path) -> dict[str, Any]:
    return dict(json.loads((folder / file).read_text(encoding="utf-8")))


def test_each_schema_has_its_defaults() -> None:
    assert sorted(path.relative_to(DEFAULTS) for path in DEFAULTS.rglob("*.json")) == FILES


def test_all_defaults_are_of_one_release() -> None:
    assert len({read(DEFAULTS, file)["transformers"] for file in FILES}) == 1


@pytest.mark.parametrize("file", FILES, ids=str)
def test_each_field_has_one_default(file: Path) -> None:
    entries, generated = read(SCHEMAS, file), read(DEFAULTS, file)
    listed = {name: entry for name, entry in entries.items() if "fields" in entry}

    assert set(generated) == {"transformers", *listed}
    for name, entry in listed.items():
        by_hand = entry.get("defaults", {})
        assert sorted([*by_hand, *generated[name]]) == sorted(entry["fields"])
        assert None not in generated[name].values()


def unused(entry: dict[str, Any]) -> set[str]:
    """The unused keys of an entry and of its sections."""
    return set(entry.get("unused", ())).union(*map(unused, entry.get("sections", {}).values()))


@pytest.mark.parametrize("file", FILES, ids=str)
def test_keys_that_are_harmless_everywhere_are_listed_once(file: Path) -> None:
    repeated = {key for entry in read(SCHEMAS, file).values() for key in unused(entry)} & known_keys().harmless

    assert repeated == set()


def test_a_default_is_the_class_s_or_stated() -> None:
    defaults = get_family("llama").schema.defaults

    assert defaults["intermediate_size"] == 11008  # LlamaConfig
    assert defaults["num_key_value_heads"] is None  # stated: as many as query heads
    assert list(defaults)[:3] == ["vocab_size", "tie_word_embeddings", "hidden_size"]


def test_a_field_without_a_default_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "paramcalc.families.text.llama"
    monkeypatch.setattr(schemas, "class_defaults", lambda _: {"llama": {"vocab_size": 1}})

    with pytest.raises(UnknownFamilyError) as caught:
        schemas.schema_entry(module, "llama")
    assert str(caught.value) == (
        "llama has fields in schemas/text/llama.json without a default there or in defaults/text/llama.json"
    )


def test_a_recipe_without_an_entry_is_named() -> None:
    with pytest.raises(UnknownFamilyError) as caught:
        schemas.schema_entry("paramcalc.families.text.llama", "gated_llama")
    assert str(caught.value) == "gated_llama has a recipe in text/llama.py and no entry in schemas/text/llama.json"
