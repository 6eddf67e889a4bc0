"""Models that see or hear: the language model alone, and what is marked where a part is not counted."""

from __future__ import annotations

import json

import pytest

import paramcalc
from tests.test_goldens import GOLDENS

DEFAULTS = {path.parent.name: json.loads(path.read_text()) for path in sorted(GOLDENS.glob("*/default.json"))}
WITH_TOWERS = {name: golden for name, golden in DEFAULTS.items() if "text_total" in golden}
# Nemotron-H's default is a pattern without sizes; the others' text and images pass through the same encoder.
WITHOUT_A_LANGUAGE_MODEL = {"nemo_speechlm", "neomme", "t5gemma2"}


@pytest.mark.parametrize("name", sorted(set(WITH_TOWERS) - WITHOUT_A_LANGUAGE_MODEL))
def test_text_only_is_the_whole_without_towers_and_projectors(name: str) -> None:
    model = paramcalc.load(WITH_TOWERS[name]["config"], text_only=True)

    assert paramcalc.count(model).parameters.total == WITH_TOWERS[name]["text_total"]
    assert model.status == "exact", model.warnings


@pytest.mark.parametrize("name", sorted(WITHOUT_A_LANGUAGE_MODEL))
def test_text_only_says_why_it_cannot(name: str) -> None:
    with pytest.raises(paramcalc.ParamcalcError) as caught:
        paramcalc.load(WITH_TOWERS[name]["config"], text_only=True)

    assert caught.value.hint


@pytest.mark.parametrize("name", ["qwen2_5_omni", "qwen3_omni_moe"])
def test_a_model_that_speaks_is_marked(name: str) -> None:
    config = DEFAULTS[name]["config"] | {"enable_audio_output": True}
    whole, alone = paramcalc.load(config), paramcalc.load(config, text_only=True)

    assert whole.status == "approximate"
    assert "the talker and what makes sound are not" in whole.warnings[0]
    assert alone.status == "exact"
