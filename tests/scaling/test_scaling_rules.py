"""The rules by which the fields of a config follow a width or a depth."""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc
from paramcalc.config.schema import FieldValue
from paramcalc.scaling.scaling_rules import (
    ImpossibleError,
    ScalingRules,
    changes_for_depth,
    changes_for_width,
    extend_pattern,
    scaling_rules,
)


def valued(**fields: Any) -> dict[str, FieldValue]:
    return {name: FieldValue(name, value, isinstance(value, list | str)) for name, value in fields.items()}


LLAMA = valued(
    hidden_size=4096,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=None,
    intermediate_size=14336,
)


def test_heads_and_widths_grow_in_proportion() -> None:
    assert changes_for_width(LLAMA, 6144, ScalingRules()) == {
        "hidden_size": 6144,
        "num_attention_heads": 48,
        "num_key_value_heads": 12,
        "intermediate_size": 21504,  # 3.5 x 6144
    }


def test_a_feed_forward_width_is_rounded_to_a_multiple() -> None:
    # 14336 = 2^11 x 7: the multiple is 256, the largest there is; 3.5 x 4224 = 14784 lies between 14592 and 14848
    assert changes_for_width(LLAMA, 4224, ScalingRules())["intermediate_size"] == 14848
    assert changes_for_width(LLAMA, 4224, ScalingRules(multiple_of=1))["intermediate_size"] == 14784


def test_key_value_heads_divide_the_query_heads() -> None:
    """33 heads: a quarter of them would be 8.25; the divisors of 33 are 1, 3, 11 and 33, of which 11 is nearest."""
    assert changes_for_width(LLAMA, 33 * 128, ScalingRules())["num_key_value_heads"] == 11
    single = LLAMA | valued(num_key_value_heads=1)
    assert changes_for_width(single, 8192, ScalingRules())["num_key_value_heads"] == 1


def test_key_value_heads_of_windows_divide_the_query_heads_of_windows() -> None:
    """As Inkling has them: layers with windows have heads and groups of their own."""
    two = valued(
        hidden_size=96,
        num_attention_heads=6,
        num_key_value_heads=3,
        swa_num_attention_heads=96,
        swa_num_key_value_heads=16,
    )
    changed = changes_for_width(two, 192, ScalingRules())

    assert (changed["num_attention_heads"], changed["num_key_value_heads"]) == (12, 6)
    assert (changed["swa_num_attention_heads"], changed["swa_num_key_value_heads"]) == (192, 32)


def test_key_value_heads_are_never_far_from_their_ratio() -> None:
    """43 is a prime: 1 or 43 where 10.75 are meant would be another design; two heads of one group are as near as 2."""
    with pytest.raises(ImpossibleError, match=r"43 heads; none of their divisors is near 10\.75 key/value heads"):
        changes_for_width(LLAMA, 43 * 128, ScalingRules())
    assert changes_for_width(LLAMA, 256, ScalingRules())["num_key_value_heads"] == 1
    assert "num_key_value_heads" not in changes_for_width(LLAMA, 43 * 128, ScalingRules(kv_heads="kept"))


def test_embeddings_as_wide_as_the_model_stay_so() -> None:
    """OPT's and ELECTRA's have projections only where they are of another width."""
    opt = LLAMA | valued(word_embed_proj_dim=4096, embedding_size=128)

    assert changes_for_width(opt, 8192, ScalingRules())["word_embed_proj_dim"] == 8192
    assert "embedding_size" not in changes_for_width(opt, 8192, ScalingRules())


def test_distilbert_widens_its_feed_forward_too() -> None:
    (row,) = paramcalc.scale("distilbert-base-uncased", {"width": [1536]}).rows

    assert row.fields == {"hidden_size": 1536, "num_attention_heads": 24, "hidden_dim": 6144}


def test_a_pattern_of_letters_is_the_depth_where_there_is_no_other() -> None:
    assert changes_for_depth(valued(hybrid_override_pattern="M-M*" * 3), 4) == {"hybrid_override_pattern": "M-M*"}


def test_first_dense_layers_stay_as_many() -> None:
    """As transformers writes DeepSeek's files: one dense layer, then experts; a deeper model has one too."""
    dense, sparse = ["dense"], ["sparse"]

    assert extend_pattern(dense + 2 * sparse, 5, "mlp_layer_types") == dense + 4 * sparse
    assert extend_pattern([0, 1, 1, 1], 6, "moe_layer_freq") == [0, 1, 1, 1, 1, 1]
    with pytest.raises(ImpossibleError, match="without a period"):
        extend_pattern(2 * sparse + dense, 5, "mlp_layer_types")
    with pytest.raises(ImpossibleError, match="without a period"):
        extend_pattern(["full_attention", "sliding_attention", "sliding_attention"], 6, "layer_types")


SIX = {"num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("transformers_version", "4.57.1"),  # of six characters
        ("architectures", ["LlamaForCausalLM"]),
        ("eos_token_id", [2, 3, 5, 7, 11, 13]),
    ],
)
def test_only_lists_of_layers_follow_the_depth(key: str, value: Any) -> None:
    """Twelve layers of 4 x 64 x 64 + 3 x 64 x 128 + 2 x 64, two matrices of 100 rows and a norm."""
    fields = {"model_type": "llama", **SIX, key: value}
    depth = 1 if key == "architectures" else 6
    (row,) = paramcalc.scale(paramcalc.load({**fields, "num_hidden_layers": depth}), {"depth": [12]}).rows

    assert row.problem is None
    assert row.fields == {"num_hidden_layers": 12}
    assert row.parameters is not None
    assert row.parameters.total == 12 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 100 * 64 + 64


# Bases whose FFN, heads or sections have names of their own, and what is as wide as the model at twice the width.
WIDER: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "ctrl": (
        {"model_type": "ctrl", "n_embd": 64, "n_layer": 2, "n_head": 4, "dff": 128, "vocab_size": 100},
        {"dff": 256},
    ),
    "dbrx": (
        {"model_type": "dbrx", "d_model": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 100}
        | {
            "attn_config": {"kv_n_heads": 2},
            "ffn_config": {"ffn_hidden_size": 96, "moe_num_experts": 4},
        },
        {"attn_config.kv_n_heads": 4, "ffn_config.ffn_hidden_size": 192},
    ),
    "qwen2_vl": (
        {"model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"]}
        | {"text_config": {**SIX, "num_key_value_heads": 2}, "vision_config": {"hidden_size": 64, "depth": 2}},
        {"text_config.hidden_size": 128, "text_config.num_key_value_heads": 4, "text_config.intermediate_size": 256},
    ),
    "florence2": (
        {"model_type": "florence2", "architectures": ["Florence2ForConditionalGeneration"]}
        | {"text_config": {"model_type": "bart", "d_model": 64, "encoder_attention_heads": 4, "vocab_size": 100}}
        | {"vision_config": {"projection_dim": 64}},
        {"text_config.d_model": 128},
    ),
}


@pytest.mark.parametrize("name", WIDER)
def test_all_that_belongs_to_a_width_follows_it(name: str) -> None:
    config, expected = WIDER[name]
    (row,) = paramcalc.scale(paramcalc.load(config), {"width": [128]}).rows

    assert expected.items() <= row.fields.items()


def test_layers_that_say_of_themselves_what_they_are_follow_width_and_depth() -> None:
    """By hand: a layer of d = 128 with 4 heads of 32, one with 8; FFNs of 256 and of 192, each of two matrices."""
    layers = [{"repeat": 2, "n_heads": 4}, {"d_ff": 96}] * 2
    fields = {"model_type": "transformer", "d_model": 64, "n_heads": 2, "d_ff": 128, "vocab_size": 100, "norm": "rms"}
    base = paramcalc.load({**fields, "head_dim": 32, "layers": layers})
    (row,) = paramcalc.scale(base, {"depth": [9], "width": [128]}).rows

    assert row.parameters is not None
    more, less = 4 * 128 * 8 * 32 + 2 * 128 * 256, 4 * 128 * 4 * 32 + 2 * 128 * 192
    assert row.parameters.non_embedding == 6 * more + 3 * less + 9 * 2 * 128 + 128


def test_an_encoder_and_a_decoder_of_their_own_have_no_one_width() -> None:
    part = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    sections = {name: {"model_type": "bert", **part, "vocab_size": 100} for name in ("encoder", "decoder")}
    sections["decoder"] |= {"is_decoder": True, "add_cross_attention": True}
    base = paramcalc.load({"model_type": "encoder-decoder", **sections})
    report = paramcalc.scale(base, {"depth": [4]})
    (deep,), (wide,) = report.rows, paramcalc.scale(base, {"width": [128]}).rows
    (own,) = paramcalc.scale(base, {"decoder.num_hidden_layers": [2]}).rows

    assert deep.problem == "depth: the model has several: encoder.num_hidden_layers, decoder.num_hidden_layers"
    assert wide.problem == "width: the model has several: encoder.hidden_size, decoder.hidden_size"
    assert own.parameters == report.base.parameters


def test_what_leaves_the_model_as_it_is_is_no_point_of_a_sweep() -> None:
    """HRM-Text builds num_layers_per_stack layers, whatever num_hidden_layers says beside it."""
    base = paramcalc.load({"model_type": "hrm_text", "num_hidden_layers": 56, "num_layers_per_stack": 7})
    (row,) = paramcalc.scale(base, {"depth": [112]}).rows

    assert row.problem == "depth: num_hidden_layers does not change this model"
    assert not row.valid


def test_rules_can_be_changed() -> None:
    wide = changes_for_width(
        LLAMA | valued(head_dim=128), 8192, scaling_rules({"heads": "kept", "kv_heads": "kept", "ffn": "kept"})
    )

    assert wide == {"hidden_size": 8192, "head_dim": 256}


@pytest.mark.parametrize("given", [{"head": "kept"}, {"heads": "same"}, {"multiple_of": "0"}, {"multiple_of": "x"}])
def test_unknown_rules_are_errors(given: dict[str, str | int]) -> None:
    with pytest.raises(paramcalc.ParamcalcError):
        scaling_rules(given)


def test_a_width_without_whole_heads_is_impossible() -> None:
    with pytest.raises(ImpossibleError, match="width 4100 does not give whole num_attention_heads"):
        changes_for_width(LLAMA, 4100, ScalingRules())


def test_lists_of_layers_go_on_in_their_period() -> None:
    assert extend_pattern(["s", "s", "f"] * 2, 8, "layer_types") == ["s", "s", "f", "s", "s", "f", "s", "s"]
    assert extend_pattern(["s", "s", "f"] * 2, 4, "layer_types") == ["s", "s", "f", "s"]
    with pytest.raises(ImpossibleError, match="without a period"):
        extend_pattern(["d", "s", "s", "s"], 8, "mlp_layer_types")


def test_a_depth_takes_its_lists_along() -> None:
    pattern = valued(num_hidden_layers=4, layer_types=["f", "s"] * 2, rope=[1, 2])

    assert changes_for_depth(pattern, 3) == {"num_hidden_layers": 3, "layer_types": ["f", "s", "f"]}
