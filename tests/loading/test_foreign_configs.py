"""Configs that contradict themselves, that belong to another library, or that are in a model's original format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import paramcalc
from paramcalc.base.errors import ConfigError

# -- class and type --------------------------------------------------------------------------------------------------

# A pruned Qwen3.5 whose file has the fields of text_config at its top and the class of the whole.
PRUNED_QWEN = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "model_type": "qwen3_5_moe_text",
    "dtype": "float16",
    "full_attention_interval": 4,
    "hidden_size": 2048,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "num_experts": 180,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 40,
    "tie_word_embeddings": False,
    "vocab_size": 248320,
}


def test_a_class_that_takes_another_config_is_not_said_to_be_missing() -> None:
    """The total is the index's total_parameters (bryce-hoehn/Qwen3.5-25B-REAP-A3B-Coding)."""
    model = paramcalc.load(PRUNED_QWEN)

    assert (paramcalc.count(model).parameters.total, model.status) == (25_091_371_648, "approximate")
    assert model.warnings == (
        "qwen3_5_moe_text: 'Qwen3_5MoeForConditionalGeneration' takes the config of qwen3_5_moe; its head is inferred "
        "from the suffix",
    )


@pytest.mark.parametrize(
    ("model_type", "stated", "owner"),
    [
        ("mistral", "LlamaForCausalLM", "llama"),
        ("qwen2", "Qwen2MoeForCausalLM", "qwen2_moe"),
        ("bert", "NomicBertModel", "nomic_bert"),
        ("deepseek_v3", "DeepseekV2ForCausalLM", "deepseek_v2"),
    ],
)
def test_a_class_of_a_family_with_another_config_contradicts_the_type(model_type: str, stated: str, owner: str) -> None:
    with pytest.raises(ConfigError, match=f"architectures names {stated}, a class of {owner}, but model_type is") as e:
        paramcalc.load({"model_type": model_type, "architectures": [stated]})

    assert f"--set model_type={owner}" in str(e.value.hint)


@pytest.mark.parametrize(
    ("model_type", "stated", "warning"),
    [
        # The classes read the same fields.
        ("camembert", "RobertaForMaskedLM", "class 'RobertaForMaskedLM' belongs to roberta"),
        ("mt5", "T5ForConditionalGeneration", "class 'T5ForConditionalGeneration' belongs to t5"),
        # The type may stand in a section of the class.
        ("ministral3", "Mistral3ForConditionalGeneration", "belongs to mistral3"),
        ("gemma3_text", "Gemma3ForConditionalGeneration", "takes the config of gemma3"),
        # Nobody knows the class.
        ("llama", "LlavaLlamaForCausalLM", "class 'LlavaLlamaForCausalLM' is not known"),
        ("llama", "LlamaForRewardModel", "class 'LlamaForRewardModel' is not known"),
    ],
)
def test_a_class_that_is_close_or_unknown_is_a_doubt(model_type: str, stated: str, warning: str) -> None:
    model = paramcalc.load({"model_type": model_type, "architectures": [stated]})

    assert model.status == "approximate"
    assert warning in model.warnings[0]


# -- another library -------------------------------------------------------------------------------------------------


def test_the_transformer_of_another_library_is_not_taken_for_our_own() -> None:
    """The fields of flame's transformer_340M.json."""
    fields = {"model_type": "transformer", "hidden_size": 1024, "num_heads": 16, "num_hidden_layers": 24}

    with pytest.raises(ConfigError, match="model_type 'transformer' is another library's"):
        paramcalc.load({**fields, "attention_bias": False, "fuse_norm": True, "vocab_size": 32000})


# -- original formats ------------------------------------------------------------------------------------------------

LLAMA3_8B = {
    "dim": 4096,
    "n_layers": 32,
    "n_heads": 32,
    "n_kv_heads": 8,
    "vocab_size": 128256,
    "ffn_dim_multiplier": 1.3,
    "multiple_of": 1024,
}
LLAMA1_7B = {"dim": 4096, "multiple_of": 256, "n_heads": 32, "n_layers": 32, "norm_eps": 1e-06, "vocab_size": -1}
LLAMA32_1B = {**LLAMA3_8B, "dim": 2048, "n_layers": 16, "ffn_dim_multiplier": 1.5, "multiple_of": 256}
MISTRAL_7B = {**LLAMA1_7B, "n_kv_heads": 8, "head_dim": 128, "hidden_dim": 14336, "vocab_size": 32000}
MAMBA_3B = {"d_model": 2560, "n_layer": 64, "vocab_size": 50277, "ssm_cfg": {}, "pad_vocab_size_multiple": 8}
MAMBA2_3B = {**MAMBA_3B, "ssm_cfg": {"layer": "Mamba2"}, "pad_vocab_size_multiple": 16, "attn_layer_idx": []}


@pytest.mark.parametrize(
    ("fields", "total"),
    [
        (LLAMA3_8B, 8_030_261_248),
        ({**LLAMA3_8B, "model_type": "llama"}, 8_030_261_248),
        ({**LLAMA3_8B, "dim": 8192, "n_heads": 64, "n_layers": 80, "multiple_of": 4096}, 70_553_706_496),
        (MISTRAL_7B, 7_241_732_096),
        (MAMBA_3B, 2_768_345_600),
        ({**MAMBA_3B, "d_model": 768, "n_layer": 24}, 129_135_360),
        (MAMBA2_3B, 2_702_599_680),
    ],
)
def test_original_formats_come_to_the_published_totals(fields: dict[str, object], total: int) -> None:
    model = paramcalc.load(fields)

    assert (paramcalc.count(model).parameters.total, model.status) == (total, "exact")
    assert "was translated to the fields of a" in model.warnings[0]


@pytest.mark.parametrize(
    ("fields", "field", "value", "total", "assumed"),
    [
        (LLAMA1_7B, "vocab_size", 32000, 6_738_415_616, 6_738_415_616),
        (LLAMA32_1B, "tie_word_embeddings", True, 1_235_814_400, 1_498_482_688),
    ],
)
def test_what_an_original_format_leaves_out_is_assumed_until_it_is_set(
    fields: dict[str, object], field: str, value: object, total: int, assumed: int
) -> None:
    silent, said = paramcalc.load(fields), paramcalc.load(fields, overrides={field: value})

    assert (paramcalc.count(silent).parameters.total, silent.status) == (assumed, "approximate")
    assert (paramcalc.count(said).parameters.total, said.status) == (total, "exact")


def test_params_json_with_a_window_is_mistral_s() -> None:
    model = paramcalc.load({**MISTRAL_7B, "sliding_window": 4096})

    assert (model.family, paramcalc.count(model).parameters.total) == ("mistral", 7_241_732_096)


def test_a_folder_with_params_json_alone_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "Meta-Llama-3-8B"
    folder.mkdir()
    (folder / "params.json").write_text(json.dumps(LLAMA3_8B))
    model = paramcalc.load(folder)

    assert (model.name, paramcalc.count(model).parameters.total) == ("Meta-Llama-3-8B", 8_030_261_248)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({**LLAMA3_8B, "moe_args": {"num_experts": 16}}, "with moe_args: that is not counted"),
        ({**LLAMA3_8B, "vision_chunk_size": 448}, "with vision_chunk_size: that is not counted"),
        ({**LLAMA3_8B, "dim": "4096"}, "dim must be a positive integer, not '4096'"),
        ({**LLAMA3_8B, "ffn_dim_multiplier": "1.3"}, "ffn_dim_multiplier must be a positive number"),
        ({**MAMBA2_3B, "attn_layer_idx": [9, 18]}, "with attn_layer_idx: that is not counted"),
        ({**MAMBA_3B, "rms_norm": False}, "with rms_norm: that is not counted"),
        ({**MAMBA_3B, "ssm_cfg": {"layer": "Mamba3"}}, "ssm_cfg.layer is 'Mamba3'"),
        ({**MAMBA_3B, "ssm_cfg": {"d_ssm": 64}}, "with d_ssm: that is not counted"),
        ({**MAMBA_3B, "ssm_cfg": 5}, "ssm_cfg must be a mapping, not 5"),
        ({**MAMBA2_3B, "d_model": 30}, "is not divisible by headdim"),
    ],
)
def test_original_formats_with_other_parts_are_refused(fields: dict[str, object], problem: str) -> None:
    with pytest.raises(paramcalc.ParamcalcError, match=problem):
        paramcalc.load(fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"model_type": "gpt2", "dim": 64, "depth": 3, "vocab_size": 100},
        {"model_type": "qwen2_vl", "text_config": {"vocab_size": 100, "width": 64}},
    ],
)
def test_a_config_of_which_no_size_was_read_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="no size was read, and"):
        paramcalc.load(fields)


def test_a_config_of_which_one_size_was_read_is_approximate() -> None:
    model = paramcalc.load({"model_type": "gpt2", "dim": 64, "n_layer": 3})

    assert model.status == "approximate"
