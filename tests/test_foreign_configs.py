"""Configs that contradict themselves, that belong to another library, or that are in a model's original format."""

from __future__ import annotations

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
