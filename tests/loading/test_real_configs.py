"""What real configs contain and tools read wrong: each kind once.

Numbers are from transformers or worked out by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcalc
from paramcalc.base.errors import ConfigError
from paramcalc.reports.count import CountReport

D, V, FFN = 64, 100, 96
LLAMA = {
    "model_type": "llama",
    "hidden_size": D,
    "intermediate_size": FFN,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": V,
    "dtype": "bfloat16",
}
FFN_AND_NORMS = 3 * D * FFN + 2 * D


def count(fields: Any, **overrides: Any) -> CountReport:
    return paramcalc.count(paramcalc.load(fields, overrides=overrides))


def llama_total(*, heads: int = 4, kv_heads: int = 2, head_dim: int = 16, layers: int = 2, tied: bool = False) -> int:
    attention = 2 * D * heads * head_dim + 2 * D * kv_heads * head_dim
    return layers * (attention + FFN_AND_NORMS) + D + V * D * (1 if tied else 2)


# -- reading a config --------------------------------------------------------------------------------------------


def test_null_is_absent() -> None:
    assert count(LLAMA | {"head_dim": None, "mlp_bias": None}).parameters.total == llama_total()


def test_null_in_a_section_is_what_its_own_class_makes_of_it() -> None:
    """Voxtral completes text_config with a head_dim of 128; null there is Llama's d / h."""
    audio = {"hidden_size": 32, "intermediate_size": 40, "num_attention_heads": 4, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": None, "head_dim": None}
    text = {"model_type": "llama", "hidden_size": 48, "intermediate_size": 40, "num_hidden_layers": 3, "vocab_size": 50}
    fields = {
        "model_type": "voxtral",
        "audio_config": {"model_type": "voxtral_encoder", **audio, "num_mel_bins": 9, "max_source_positions": 12},
        "text_config": {**text, **heads},
    }

    assert paramcalc.count(paramcalc.load(fields)).parameters.total == 72_640


@pytest.mark.parametrize(
    ("model_type", "total"), [("granite_docling_text", 168_475_648), ("cosmos3_edge_text", 432_027_648)]
)
def test_null_is_a_number_of_key_heads_where_the_class_says_so(model_type: str, total: int) -> None:
    """These default to fewer key/value heads than query heads; null is as many (transformers, three layers)."""
    fields = {"model_type": model_type, "num_hidden_layers": 3, "num_key_value_heads": None}

    assert paramcalc.count(paramcalc.load(fields)).parameters.total == total


def test_a_list_that_gpt_neo_writes_beside_its_pattern_wins() -> None:
    """GPTNeoForCausalLM builds three layers of 62,928, though the pattern gives 24."""
    pattern = [[["global", "local"], 12]]
    sizes = {"hidden_size": 72, "num_heads": 1, "num_layers": 3, "max_position_embeddings": 2}
    fields = {"model_type": "gpt_neo", **sizes, "attention_types": pattern, "attention_layers": ["global"] * 3}
    report = paramcalc.count(paramcalc.load(fields))

    assert (report.model.status, [(run.repeat, run.total) for run in report.layers]) == ("exact", [(3, 62_928)])


def test_no_shared_experts_are_a_network_of_no_width_with_a_bias_in_aria() -> None:
    """Of 10,392 by AriaTextForCausalLM, two layers have 24 in the last bias of what they share."""
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    experts = {"intermediate_size": 12, "moe_num_experts": 3, "moe_topk": 1, "moe_num_shared_experts": 0}
    fields = {"model_type": "aria_text", **sizes, **experts, "mlp_bias": True, "vocab_size": 30}
    report = paramcalc.count(paramcalc.load(fields))

    assert (report.model.status, report.parameters.total) == ("exact", 10_392)
    assert report.components["shared_experts"].total == 48


def test_head_dim_need_not_be_width_by_heads() -> None:
    assert count(LLAMA | {"head_dim": 24}).parameters.total == llama_total(head_dim=24)
    odd = count(LLAMA | {"num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 10})  # 64 / 6 is no integer
    assert odd.parameters.total == llama_total(heads=6, kv_heads=3, head_dim=10)


def test_sizes_nest() -> None:
    nested = {
        "model_type": "mpt",
        "d_model": D,
        "n_heads": 4,
        "n_layers": 2,
        "vocab_size": V,
        "attn_config": {"alibi": True, "attn_impl": "torch", "clip_qkv": None},
        "dtype": "bfloat16",
    }

    report = count(nested)

    assert report.model.status == "exact"
    assert report.parameters.total == 2 * (4 * D * D + 8 * D * D + 2 * D) + D + V * D


def test_a_full_a_sparse_and_an_old_file_agree() -> None:
    full = LLAMA | {
        "attention_bias": False,
        "rope_theta": 1e4,
        "hidden_act": "silu",
        "_name_or_path": "x",
        "use_cache": True,
    }
    old = {key: value for key, value in full.items() if key != "attention_bias"} | {"torch_dtype": "torch.bfloat16"}
    old.pop("dtype")

    assert count(full).parameters == count(LLAMA).parameters == count(old).parameters
    assert count(old).weights.dtype == "bfloat16"


def test_an_unknown_type_is_found_by_its_class() -> None:
    report = count(LLAMA | {"model_type": "brandnew", "architectures": ["LlamaForCausalLM"]})

    assert (report.model.family, report.model.status) == ("llama", "approximate")
    assert report.parameters.total == llama_total()


def test_names_differ_by_family_and_are_not_shared() -> None:
    gpt2 = {"model_type": "gpt2", "n_embd": D, "n_layer": 1, "n_head": 4, "vocab_size": V, "n_positions": 32}
    layer = 12 * D * D + 13 * D
    assert count(gpt2).parameters.total == layer + 2 * D + V * D + 32 * D
    report = count(LLAMA | {"n_layer": 9})  # no name of Llama's
    assert report.parameters.total == llama_total()
    assert report.model.status == "approximate"


def test_flags_that_make_others_moot() -> None:
    falcon = {
        "model_type": "falcon",
        "hidden_size": D,
        "num_attention_heads": 4,
        "num_hidden_layers": 1,
        "vocab_size": V,
        "num_kv_heads": 2,
    }
    multi_query = D * (D + 2 * 16) + D * D + 8 * D * D + 2 * D + 2 * D + V * D
    grouped = D * (D + 4 * 16) + D * D + 8 * D * D + 4 * D + 2 * D + V * D
    assert count(falcon).parameters.total == multi_query  # num_kv_heads is not read
    assert count(falcon | {"new_decoder_architecture": True}).parameters.total == grouped


def test_a_list_of_another_length_than_the_depth_names_the_field() -> None:
    with pytest.raises(ConfigError, match="layer_types has 3 entries for 2 layers"):
        count({"model_type": "gemma2", "num_hidden_layers": 2, "layer_types": ["full_attention"] * 3})


def test_declared_is_not_always_used() -> None:
    moe = {
        "model_type": "qwen3_moe",
        "hidden_size": D,
        "intermediate_size": 999,  # stands in every published file, and no layer uses it
        "moe_intermediate_size": 8,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": V,
        "dtype": "bfloat16",
    }
    attention = 2 * D * D + 2 * D * 32 + 2 * 16
    layer = attention + 4 * D + 4 * 3 * D * 8 + 2 * D
    assert count(moe).parameters.total == 2 * layer + D + 2 * V * D
    assert count(moe).parameters.active == 2 * (layer - 2 * 3 * D * 8) + D + 2 * V * D


def test_biases_are_implied_by_the_family_or_by_flags() -> None:
    assert count(LLAMA | {"attention_bias": True}).parameters.total == llama_total() + 2 * (64 + 2 * 32 + D)
    assert count(LLAMA | {"mlp_bias": True}).parameters.total == llama_total() + 2 * (2 * FFN + D)
    assert count(LLAMA | {"model_type": "qwen2"}).parameters.total == llama_total() + 2 * (64 + 2 * 32)


@pytest.mark.parametrize(
    ("model_type", "per_layer", "final"),
    [
        ("llama", 2 * D, D),
        ("olmo", 0, 0),
        ("gemma2", 4 * D, D),
        ("olmo2", 2 * D + 64 + 32, D),
        ("gemma3_text", 4 * D + 32, D),
    ],
)
def test_norms_come_in_all_numbers(model_type: str, per_layer: int, final: int) -> None:
    report = count(LLAMA | {"model_type": model_type, "head_dim": 16})

    norms = report.components["norm"].total if "norm" in report.components else 0
    assert norms == 2 * per_layer + final


@pytest.mark.parametrize(
    ("model_type", "tied"), [("llama", False), ("gemma", True), ("mistral", False), ("qwen2", False)]
)
def test_the_tie_flag_has_a_default_of_its_own(model_type: str, tied: bool) -> None:
    fields = LLAMA | {"model_type": model_type, "head_dim": 16}

    assert bool(count(fields).tied) is tied
    assert bool(count(fields | {"tie_word_embeddings": not tied}).tied) is not tied


def test_flan_t5_follows_the_checkpoint_and_says_so() -> None:
    flan_t5_small = {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "d_model": 512,
        "d_ff": 1024,
        "d_kv": 64,
        "num_heads": 6,
        "num_layers": 8,
        "num_decoder_layers": 8,
        "vocab_size": 32128,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
    }

    report = count(flan_t5_small)

    assert report.parameters.total == 76_961_152
    assert "transformers 5 ties it by force and counts 16,449,536 fewer" in report.warnings[0]
    assert count(flan_t5_small | {"tie_word_embeddings": True}).parameters.total == 60_511_616


@pytest.mark.parametrize(
    ("fields", "dtype"),
    [
        ({"torch_dtype": "float16"}, "float16"),
        ({"dtype": "torch.bfloat16"}, "bfloat16"),
        ({"torch_dtype": None}, "float32"),
        ({}, "float32"),
    ],
    ids=str,
)
def test_dtypes_in_all_their_places(fields: dict[str, Any], dtype: str) -> None:
    bare = {key: value for key, value in LLAMA.items() if key != "dtype"}

    report = count(bare | fields)

    assert report.weights.dtype == dtype
    assert ("names no dtype" in " ".join(report.warnings)) is (dtype == "float32")


def test_infinity_in_a_harmless_key_is_fine_and_in_a_size_is_not(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "mamba2", "time_step_limit": [0.0, float("inf")], "dtype": "bfloat16"}))
    assert count(path).model.status == "exact"
    path.write_text(json.dumps(LLAMA | {"hidden_size": float("inf")}))
    with pytest.raises(ConfigError, match="must be an integer, not inf"):
        count(path)


def test_digits_in_quotes_are_read_with_a_warning_and_words_are_not() -> None:
    report = count(LLAMA | {"vocab_size": "100"})

    assert report.parameters.total == llama_total()
    assert report.model.status == "approximate"
    assert "is a string ('100'); read as an integer" in report.warnings[0]
    with pytest.raises(ConfigError):
        count(LLAMA | {"vocab_size": "auto"})


# -- classifiers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "total"),
    [  # totals from transformers 5.24 on the meta device
        ({"model_type": "bart", "architectures": ["BartForSequenceClassification"]}, 407_344_131),
        ({"model_type": "albert", "architectures": ["AlbertForPreTraining"], "num_labels": 7}, 223_178_935),
        ({"model_type": "albert", "architectures": ["AlbertForPreTraining"], "id2label": {"0": "a"}}, 223_154_353),
        ({"model_type": "bert", "architectures": ["BertForSequenceClassification"], "num_labels": 5}, 109_486_085),
    ],
)
def test_the_labels_a_class_assumes(fields: dict[str, Any], total: int) -> None:
    report = count(fields)
    assert (report.parameters.total, report.model.status) == (total, "exact")


def test_num_labels_wins_over_a_map_that_contradicts_it() -> None:
    fields = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "id2label": {"0": "a"}}
    report = count(fields | {"num_labels": 5})
    assert report.parameters.total == 109_486_085  # transformers 5.24, which warns too
    assert report.model.status == "approximate"


def test_a_t5_encoder_that_is_told_to_decode_is_marked() -> None:
    # transformers 5.24 builds 41,625,344 parameters: the cross attention of a decoder, in a class that has none.
    report = count({"model_type": "t5", "architectures": ["T5EncoderModel"], "is_decoder": True})
    assert report.model.status == "approximate"


# -- the Python API ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "at_root", "in_section", "total"),
    [  # totals from transformers 5.24: the text class reads text_config alone, the multimodal one the root
        ("Gemma3Text", {"num_labels": 3}, {}, 4_333_504),
        ("Gemma3Text", {"num_labels": 7}, {"num_labels": 3}, 4_333_568),
        ("Gemma3", {"num_labels": 3}, {}, 97_267_712),
        ("Gemma3", {"num_labels": 7}, {"num_labels": 3}, 97_267_968),
    ],
)
def test_whose_labels_a_classifier_takes(
    prefix: str, at_root: dict[str, int], in_section: dict[str, int], total: int
) -> None:
    text = {"model_type": "gemma3_text", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100, **in_section}
    report = count(
        {
            "model_type": "gemma3",
            "architectures": [f"{prefix}ForSequenceClassification"],
            "text_config": text,
            **at_root,
        }
    )
    assert (report.parameters.total, report.model.status) == (total, "exact")


def test_dbrx_by_another_name_of_its_width_is_refused() -> None:
    """Its class sizes the experts by d_model before it takes hidden_size: there is no such model to count."""
    with pytest.raises(paramcalc.ParamcalcError, match="does not reach the experts"):
        paramcalc.load({"model_type": "dbrx", "hidden_size": 60, "n_heads": 4})

    wide = paramcalc.load({"model_type": "dbrx"}, overrides={"hidden_size": 1024})
    assert wide.config["d_model"] == 1024


@pytest.mark.parametrize(("word", "total"), [("xielu", 3_380), ("prelu", 3_378), ("relu", 3_376)])
def test_activations_with_parameters_where_a_recipe_counts_them(word: str, total: int) -> None:
    """Apertus' FFN has one activation per layer: two slopes, one, none."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    fields = {"model_type": "apertus", **sizes, "intermediate_size": 12, "vocab_size": 30, "hidden_act": word}
    model = paramcalc.load(fields)

    assert model.status == "exact"
    assert paramcalc.count(model).parameters.total == total


def test_an_activation_with_parameters_in_a_key_that_says_two_things_is_a_doubt() -> None:
    assert paramcalc.load({"model_type": "t5", "feed_forward_proj": "gated-prelu"}).status == "approximate"
    assert paramcalc.load({"model_type": "t5", "feed_forward_proj": "prelu"}).status == "approximate"
    assert paramcalc.load({"model_type": "t5", "feed_forward_proj": "gated-gelu"}).status == "exact"
