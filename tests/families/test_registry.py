"""The register of families is complete, tidy and indexed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from paramcalc.base.errors import ParamcalcError
from paramcalc.config.known_keys import known_keys
from paramcalc.config.view import Config
from paramcalc.families.builders.towers import TOWER_RECIPES
from paramcalc.families.registry import HEAD_ENDINGS, Family, get_family, index, split_class
from paramcalc.loading.load import load
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Stack, stacks
from tests.conftest import ROOT
from tests.goldens.store import COUNT

NAMES = [name for name in index() if name != "transformer"]


# Whisper's encoder under other names, which is read as one.
WHISPERS = {"audioflamingo3_encoder", "moss_transcribe_diarize_audio", "qwen2_audio_encoder", "voxtral_encoder"}
SCHEMAS = ROOT / "paramcalc" / "families" / "schemas"
READINGS = {
    ".".join(path.relative_to(SCHEMAS).with_suffix("").parts): json.loads(path.read_text())
    for path in SCHEMAS.rglob("*.json")
}


@pytest.mark.parametrize("module", sorted(READINGS))
def test_every_reading_belongs_to_a_recipe(module: str) -> None:
    for each in READINGS:  # a section may name a tower of another module
        import_module(f"paramcalc.families.{each}")
    families = {name for name, entry in index().items() if entry.module == module}
    towers = {kind for kind, recipe in TOWER_RECIPES.items() if recipe.__module__ == f"paramcalc.families.{module}"}

    assert set(READINGS[module]) == families | towers
    for entry in READINGS[module].values():
        assert set(entry) <= PARTS | {"class"}
        assert all(set(section) <= PARTS | {"kind", "spellings", "free"} for section in sections(entry))
        assert all(section.get("kind", "llama") in {*index(), *TOWER_RECIPES, *WHISPERS} for section in sections(entry))


PARTS = {"note", "fields", "defaults", "names", "fixed", "nullable", "unused", "ignored", "sections"}


def sections(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The readings of nested mappings, however deep."""
    for section in entry.get("sections", {}).values():
        yield section
        yield from sections(section)


def test_every_family_is_documented() -> None:
    """The first line of a recipe names the reference class."""
    families = {name: get_family(name) for name in NAMES}
    summaries = {name: (family.recipe.__doc__ or "").partition("\n")[0].rstrip() for name, family in families.items()}

    assert [name for name, family in families.items() if family.name != name] == []
    assert [name for name, summary in summaries.items() if not summary.endswith((")", ").", "."))] == []


def test_every_family_is_verified() -> None:
    """If not: python -m tests.goldens.make FAMILY, then python -m tests.tools.index."""
    goldens = {name: [COUNT[case] for case in COUNT.families.get(name, ())] for name in NAMES}
    kinds = {name: [golden["kind"] for golden in found] for name, found in goldens.items()}
    built = [name for name, found in goldens.items() if found and "transformers" in found[0]]

    assert [name for name, found in goldens.items() if not found] == []
    assert [name for name in built if "default" not in kinds[name] or kinds[name].count("odd") < 3] == []


def test_every_golden_belongs_to_a_family() -> None:
    assert set(COUNT.families) <= set(index())


def variations(family: Family) -> Iterator[dict[str, Any]]:
    """The configs of a family's goldens, as they are and with each of its flags turned the other way."""
    flags = [name for name, default in family.schema.defaults.items() if isinstance(default, bool)]
    for case in COUNT.families[family.name]:
        config = COUNT[case]["config"]
        yield config
        for flag in flags:
            yield config | {flag: not config.get(flag, family.schema.defaults[flag])}


def never_read(family: Family, fields: set[str]) -> set[str]:
    """Which of these fields a family's recipe reads over none of these."""
    left = set(fields)
    configs = list(variations(family))
    cases = [(config, None) for config in configs] + [(configs[0], head) for head in set(HEAD_ENDINGS.values())]
    for config, other_head in cases:
        if not left:
            break
        architecture = (config.get("architectures") or [family.main_class])[0]
        head = other_head or split_class(architecture)[1] or "lm"
        view = Config(config, family.schema, family=family.name, origin="x", architecture=architecture, head=head)
        with contextlib.suppress(ParamcalcError):  # some flags and heads exclude each other
            family.recipe(view)
        left -= set(vars(view)) | view._read
    return left


# Read only where another field has a value that no golden has.
CONDITIONAL = {"neomme": {"embedding_dim"}, "tapas": {"num_aggregation_labels"}, "whisper": {"use_weighted_layer_sum"}}


@pytest.mark.parametrize("name", NAMES)
def test_every_declared_default_is_read(name: str) -> None:
    # A key with a default counts as known. One that the recipe never reads would be ignored in silence.
    family = get_family(name)
    known = {"vocab_size", "tie_word_embeddings"} | CONDITIONAL.get(name, set())  # the two are declared for all

    assert never_read(family, set(family.schema.defaults) - known - known_keys().harmless) == set()


def test_harmless_keys_are_sorted() -> None:
    for keys in json.loads((ROOT / "paramcalc" / "config" / "known_keys.json").read_text()).values():
        assert keys == sorted(set(keys))


@pytest.mark.parametrize(
    ("architecture", "split"),
    [
        ("LlamaForCausalLM", ("Llama", "lm")),
        ("GPT2LMHeadModel", ("GPT2", "lm")),
        ("BertModel", ("Bert", "none")),
        ("T5EncoderModel", ("T5", "encoder")),
        ("LlamaForFun", ("LlamaForFun", None)),
    ],
)
def test_classes_split_into_prefix_and_head(architecture: str, split: tuple[str, str | None]) -> None:
    assert split_class(architecture) == split


def test_a_model_without_goldens_would_not_be_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = index()["llama"]._replace(goldens=0)
    monkeypatch.setitem(index(), "llama", entry)

    model = load({"model_type": "llama", "hidden_size": 64, "dtype": "bfloat16"})

    assert model.status == "approximate"
    assert model.warnings == ("llama: this family has not been verified against a reference",)


def test_presets_have_goldens_of_their_own() -> None:
    goldens = {name.partition("/")[2] for name, golden in COUNT.items() if golden["kind"] == "published"}
    presets = {path.stem for path in (ROOT / "presets").glob("*.yaml")} - {"gpus"}

    assert presets - goldens == {"tutorial-110m", "tutorial-moe", "gpt3-13b"}


def test_the_index_is_one_family_a_line() -> None:
    lines = Path(ROOT / "paramcalc" / "families" / "index.json").read_text().splitlines()

    assert len(lines) == len(index()) + 2
    assert json.loads("{" + lines[1].rstrip(",") + "}")


def test_only_containers_hold_stacks_of_layers() -> None:
    """What looks for stacks, a sweep's every point, need not look into attention and experts."""

    def below(component: Component) -> list[Stack]:
        if isinstance(component, Stack):
            return [component]
        return [stack for part in component.children() for stack in below(part.component)]

    for name in COUNT:
        if name.endswith("/default"):
            tree = load(COUNT[name]["config"]).tree
            assert [id(stack) for stack in stacks(tree)] == [id(stack) for stack in below(tree)]
