"""Decoders whose files list the sizes of each layer after structured pruning."""

from __future__ import annotations

import pytest

import paramcalc
from paramcalc.base.errors import ConfigError

QWEN2_7B = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
SMALL = {
    "vocab_size": 10,
    "hidden_size": 8,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "head_dim": 2,
    "intermediate_size": 16,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def total(config: dict[str, object]) -> int:
    return paramcalc.count(paramcalc.load(config)).parameters.total


def test_a_pruned_qwen2_has_the_sizes_of_its_lists() -> None:
    """Twenty layers without four heads (2 x 512 x 3584 and 512 biases) and without 3072 channels (3 x 3072 x 3584):
    36,700,672 fewer than in the 7,615,616,512 of Qwen2-7B, for each."""
    heads = [28] * 4 + [24] * 20 + [28] * 4
    widths = [18944] * 4 + [15872] * 20 + [18944] * 4
    model = paramcalc.load({**QWEN2_7B, "layer_head_num": heads, "layer_inter_size": widths})

    assert paramcalc.count(model).parameters.total == 6_881_603_072
    assert model.status == "approximate"
    assert len(model.warnings) == 2
    assert "layer_head_num gives each layer a size of its own" in model.warnings[0]


@pytest.mark.parametrize("key", ["layer_inter_size", "layer_intermediate_sizes"])
@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma2", "mistral", "phi3"])
def test_decoders_follow_the_widths_of_their_layers(family: str, key: str) -> None:
    """Three matrices of 8 x 4 fewer in the second layer, 8 x 8 in the third."""
    whole = {"model_type": family, **SMALL, "num_key_value_heads": 2, "pad_token_id": 0}

    assert total({**whole, key: [16, 12, 8]}) == total(whole) - 3 * 8 * (4 + 8)


def test_layers_of_different_kinds_are_pruned_too() -> None:
    whole = {"model_type": "gemma3_text", **SMALL, "num_key_value_heads": 1, "pad_token_id": 0}
    words = ["sliding_attention", "full_attention", "sliding_attention"]

    assert total({**whole, "layer_types": words, "layer_head_num": [4, 2, 1]}) == total(whole) - 2 * 8 * 2 * (2 + 3)


def test_key_value_heads_go_with_the_query_heads_where_each_has_its_own() -> None:
    """Two heads fewer in four matrices of 8 x 2 for each head."""
    whole = {"model_type": "llama", **SMALL}

    assert total({**whole, "layer_head_num": [4, 4, 2]}) == total(whole) - 4 * 2 * 8 * 2


def test_a_list_for_experts_is_reported_and_not_followed() -> None:
    model = paramcalc.load({"model_type": "mixtral", **SMALL, "num_key_value_heads": 2, "layer_inter_size": [16, 8, 8]})

    assert model.status == "approximate"
    assert "'layer_inter_size' ignored" in model.warnings[0]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"layer_head_num": [4, 4]}, "layer_head_num has 2 entries for 3 layers"),
        ({"layer_head_num": [4, 4, 3], "num_key_value_heads": 2}, "has 3, which is not divisible by num_key_value"),
        ({"layer_inter_size": [4, 4, 0]}, "layer_inter_size must be at least 1"),
        ({"layer_inter_size": [4, 4, "8k"]}, "layer_inter_size must be an integer"),
    ],
)
def test_impossible_lists_are_refused(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        paramcalc.load({"model_type": "llama", **SMALL, **changes})
