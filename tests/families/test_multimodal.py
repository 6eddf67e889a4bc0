"""Models that see or hear: the language model alone, and what is marked where a part is not counted."""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc
from paramcalc.base.errors import ConfigError
from tests.goldens.store import COUNT

DEFAULTS = {family: COUNT[f"{family}/default"] for family in COUNT.families if f"{family}/default" in COUNT}
WITH_TOWERS = {name: golden for name, golden in DEFAULTS.items() if "text_total" in golden}
# PI0 has two models; text and images pass through the others' encoder.
WITHOUT_A_LANGUAGE_MODEL = {"neomme", "pi0", "t5gemma2", "udop"}


@pytest.mark.parametrize("name", sorted(set(WITH_TOWERS) - WITHOUT_A_LANGUAGE_MODEL - {"nemo_speechlm"}))
def test_text_only_is_the_whole_without_towers_and_projectors(name: str) -> None:
    model = paramcalc.load(WITH_TOWERS[name]["config"], text_only=True)

    assert paramcalc.count(model).parameters.total == WITH_TOWERS[name]["text_total"]
    assert model.status == "exact", model.warnings


def test_a_pattern_of_layers_that_the_wrapper_passes_is_read_like_one_that_is_stated() -> None:
    """Nemotron-H as Nemotron3_5TranscribeForConditionalGeneration has it: text_total of its default golden without the
    head for time stamps, 30,568,503."""
    model = paramcalc.load({"model_type": "nemo_speechlm"}, text_only=True)

    assert (paramcalc.count(model).parameters.total, model.status) == (31_577_937_344, "exact")


@pytest.mark.parametrize(("name", "total"), [("gemma3", 1_321_715_968), ("llava", 2_205_702_144)])
def test_a_field_of_a_section_that_the_file_leaves_out_can_be_set(name: str, total: int) -> None:
    """Its class is built with eight layers in text_config, whose other fields stay what the wrapper passes."""
    model = paramcalc.load({"model_type": name}, overrides={"text_config.num_hidden_layers": 8})

    assert paramcalc.count(model).parameters.total == total


@pytest.mark.parametrize("name", sorted(WITH_TOWERS))
def test_a_section_that_is_stated_as_it_is_changes_nothing(name: str) -> None:
    variants = paramcalc.load(WITH_TOWERS[name]["config"]).variants
    depth, width = (variants.values().get(field) for field in ("num_hidden_layers", "hidden_size"))
    same = {field.key: field.value for field in (depth, width) if field}
    stated = paramcalc.load(variants.changed_fields(same))

    assert paramcalc.count(stated).parameters.total == WITH_TOWERS[name]["total"] or stated.status == "approximate"


@pytest.mark.parametrize("name", sorted(WITHOUT_A_LANGUAGE_MODEL))
def test_text_only_says_why_it_cannot(name: str) -> None:
    with pytest.raises(paramcalc.ParamcalcError) as caught:
        paramcalc.load(WITH_TOWERS[name]["config"], text_only=True)

    assert caught.value.hint


@pytest.mark.parametrize(("name", "silent"), [("qwen2_5_omni", 11_338_288_896), ("qwen3_omni_moe", 18_620_183_664)])
def test_a_model_that_speaks_can_be_silent(name: str, silent: int) -> None:
    model = paramcalc.load(DEFAULTS[name]["config"] | {"enable_audio_output": False})

    assert (paramcalc.count(model).parameters.total, model.status) == (silent, "exact")


# Sections that are read as one kind of model, in classes that build whatever kind a section names.
ELSEWHERE = {
    "shieldgemma2": {"text_config": {"model_type": "mixtral"}},
    "glm46v": {"vision_config": {"model_type": "qwen2_5_vl_vision"}},
    "cosmos3_omni": {"vision_config": {"model_type": "siglip_vision_model"}},
    "voxtral_realtime": {"text_config": {"model_type": "qwen3"}},
    "modernvbert": {"text_config": {"model_type": "bert"}},
}


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_a_section_of_another_kind_is_not_taken_for_the_usual_one(name: str) -> None:
    with pytest.raises(paramcalc.ParamcalcError, match="_config is a"):
        paramcalc.load({"model_type": name, **ELSEWHERE[name]})


@pytest.mark.parametrize("name", ["got_ocr2", "pp_chart2table", "qwen3_asr", "moss_transcribe_diarize", "omniasr"])
def test_a_section_that_is_null_is_absent(name: str) -> None:
    model = paramcalc.load({**DEFAULTS[name]["config"], "text_config": None})

    assert paramcalc.count(model).parameters.total == DEFAULTS[name]["total"]


def test_a_type_without_a_recipe_is_refused_with_the_reason() -> None:
    with pytest.raises(paramcalc.ParamcalcError, match=r"vits in .* cannot be counted: a text-to-speech model"):
        paramcalc.load({"model_type": "vits", "hidden_size": 8})


SHALLOW = {"num_hidden_layers": 3}
UNTIED = {"tie_word_embeddings": False}


@pytest.mark.parametrize(
    ("fields", "total"),
    [
        ({"model_type": "kosmos-2", "text_config": UNTIED, "vision_config": SHALLOW}, 1_399_964_672),
        ({"model_type": "blip", "text_config": SHALLOW | UNTIED, "vision_config": SHALLOW}, 75_114_812),
        ({"model_type": "blip", "text_config": SHALLOW | UNTIED, "vision_config": SHALLOW} | UNTIED, 98_587_768),
    ],
    ids=["kosmos-2", "blip", "blip untied in both"],
)
def test_a_head_is_tied_where_the_whole_file_or_the_text_says_so(fields: dict[str, Any], total: int) -> None:
    """Both classes know the tie, and one that is not told otherwise ties."""
    model = paramcalc.load(fields)

    assert (paramcalc.count(model).parameters.total, model.status) == (total, "exact")


@pytest.mark.parametrize(
    ("fields", "total", "status"),
    [
        ({}, 23_340_272_640, "exact"),  # what the class of transformers 5.24 builds
        ({"transformers_version": "5.24.0"}, 23_340_272_640, "exact"),
        ({"transformers_version": "4.50.0.dev0"}, 24_011_361_280, "approximate"),  # the published checkpoint
        ({"torch_dtype": "bfloat16"}, 24_011_361_280, "approximate"),
        ({"torch_dtype": "bfloat16", "tie_word_embeddings": False}, 24_011_361_280, "exact"),
        ({"torch_dtype": "bfloat16", "architectures": ["Mistral3Model"]}, 23_340_272_640, "exact"),
        ({"torch_dtype": "bfloat16", "text_config": None}, 23_340_272_640, "exact"),  # nothing to go by
    ],
)
def test_a_tie_that_only_newer_classes_make_is_a_doubt_in_older_files(
    fields: dict[str, Any], total: int, status: str
) -> None:
    """Mistral Small 3.1, whose head is a matrix of 131,072 x 5,120 of its own; its file leaves that to text_config."""
    text = {
        "model_type": "mistral",
        "hidden_size": 5120,
        "intermediate_size": 32768,
        "num_hidden_layers": 40,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 131_072,
    }
    model = paramcalc.load({"model_type": "mistral3", "text_config": text} | fields)

    assert (paramcalc.count(model).parameters.total, model.status) == (total, status)


def test_a_learned_frequency_of_an_odd_rotary_width_is_rounded_up() -> None:
    """Three channels have two frequencies."""
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 40, "intermediate_size": 4}
    heads = {"qk_nope_head_dim": 2, "qk_rope_head_dim": 3, "v_head_dim": 4, "vocab_size": 5}
    fields = {"model_type": "mistral_large4_text", **sizes, **heads, "first_k_dense_replace": 4}
    model = paramcalc.load(fields)

    assert (paramcalc.count(model).parameters.total, model.status) == (199_422, "exact")
    assert paramcalc.load(fields | {"rope_parameters": {"partial_rotary_factor": 0.5}}).status == "approximate"


def test_a_text_that_is_no_decoder_does_not_attend_to_the_image() -> None:
    """BLIP has cross attention where is_decoder says so; a T5 encoder that is told to decode is not counted."""
    text = {"num_hidden_layers": 2, "is_decoder": False, "intermediate_size": 32, "tie_word_embeddings": False}
    vision = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2}
    blip = paramcalc.load({"model_type": "blip", "text_config": text, "vision_config": vision, **UNTIED})

    assert (paramcalc.count(blip).parameters.total, blip.status) == (53_676_408, "exact")

    melody = {"model_type": "musicgen_melody", "text_encoder": {"model_type": "t5", "is_decoder": True}}
    assert paramcalc.load(melody).status == "approximate"


def test_a_field_that_a_class_sets_again_under_its_other_name_is_a_doubt() -> None:
    """Step 3.7's text has num_local_experts and n_routed_experts, which are one; its default for the second wins."""
    for stated, status in (({"n_routed_experts": 16}, "exact"), ({"num_local_experts": 16}, "approximate")):
        fields = {"model_type": "step3p7", "text_config": {"num_hidden_layers": 6} | stated}
        assert paramcalc.load(fields).status == status


def test_an_override_does_not_hide_fields_that_stand_at_the_top() -> None:
    """A file from before transformers had text_config: a section that holds one field would hide all of them."""
    flat = {"model_type": "qwen2_5_vl", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28}
    flat |= {"num_key_value_heads": 4, "vision_config": {"out_hidden_size": 3584}}
    with pytest.raises(
        ConfigError, match="has no text_config; its top level holds the language model's fields"
    ) as error:
        paramcalc.load(flat, overrides={"text_config.num_hidden_layers": 2})
    assert error.value.hint == "use --set num_hidden_layers=..."
    assert paramcalc.load(flat, overrides={"vision_config.depth": 2}).status == "exact"


# -- sections that the config does not have --------------------------------------------------------------------------

# A language model that was cut out of Qwen3.5-2B; its file has the fields of text_config and no vision_config.
TEXT_CONVERSION = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "model_type": "qwen3_5",
    "tie_word_embeddings": True,
    "text_config": {
        "model_type": "qwen3_5_text",
        "dtype": "bfloat16",
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 24,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 16,
        "mamba_ssm_dtype": "float32",
        "vocab_size": 248320,
    },
}


def test_a_default_tower_is_named_with_its_parameters() -> None:
    """Exact, because Qwen3_5ForConditionalGeneration does build the tower of its default vision_config."""
    model = paramcalc.load(TEXT_CONVERSION)

    assert model.status == "exact"
    assert model.warnings == (
        "qwen3_5: the config has no vision_config; the default qwen3_5_vision is counted, 415,891,440 parameters; "
        "--text-only leaves out towers and projectors",
    )


def test_without_the_default_tower_the_bytes_are_those_of_the_file() -> None:
    """3,763,692,313 bytes of published weights are these and the header of the file."""
    model = paramcalc.load(TEXT_CONVERSION, text_only=True)

    assert paramcalc.memory(model, context=8).weights.bytes == 3_763_650_752
    assert model.warnings == ()


# The classes of these have no section for a tower, none that is counted (perception_lm), or their golden states it.
WITHOUT_A_SECTION = {"neomme", "udop", "fuyu", "perception_lm"}
STATED = {name for name, golden in WITH_TOWERS.items() if {"vision_config", "encoder"} & golden["config"].keys()}


@pytest.mark.parametrize("name", sorted(set(WITH_TOWERS) - WITHOUT_A_SECTION - STATED))
def test_every_family_names_the_towers_that_it_assumes(name: str) -> None:
    model = paramcalc.load({**WITH_TOWERS[name]["config"], "use_cache": True})

    assert any("the config has no " in warning and " is counted, " in warning for warning in model.warnings)


@pytest.mark.parametrize("name", ["qwen2.5-vl-3b", "gemma3-4b", "qwen3-vl-2b"])
def test_published_configs_assume_no_tower(name: str) -> None:
    assert not any("the config has no" in warning for warning in paramcalc.load(name).warnings)
