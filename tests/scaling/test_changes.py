"""The effect of each changed field on the total."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import paramcalc
from paramcalc.reports.compare import Compared, CompareReport
from paramcalc.scaling import changes
from tests.goldens.store import COUNT

OLD = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}


NEW = OLD | {"intermediate_size": 192, "num_hidden_layers": 3, "num_key_value_heads": 4, "rope_theta": 500000.0}


def compared(*sources: Any, **options: Any) -> CompareReport:
    return paramcalc.compare([paramcalc.load(source) for source in sources], **options)


def row(report: CompareReport, name: str) -> Compared:
    return next(one for one in report.rows if f"{one.report}.{one.name}" == name)


def steps(report: CompareReport) -> list[tuple[list[str], int]]:
    assert report.change
    return [([field.name for field in step.fields], step.difference) for step in report.change.steps]


def test_what_each_field_did() -> None:
    """By hand: 2 x 3 x 64 x 64 of FFN; a layer of 12,288 + 36,864 + 128; 3 x 2 x 64 x 2 x 16 of keys and values."""
    report = compared(OLD, NEW)

    assert steps(report) == [
        (["intermediate_size"], 24_576),
        (["num_hidden_layers"], 49_280),
        (["num_key_value_heads"], 12_288),
        (["rope_theta"], 0),
    ]
    assert report.change
    assert report.change.steps[1].components == {"attention": 12_288, "ffn": 36_864, "norm": 128}
    assert report.change.components == {"attention": 24_576, "ffn": 61_440, "norm": 128}
    assert row(report, "count.parameters.total").differences == (0, 86_144)


def test_the_changes_from_llama_2_to_llama_3() -> None:
    """2 x 96,256 x 4,096; 32 x 3 x 4,096 x 3,328; -32 x 2 x 4,096 x 24 x 128."""
    assert [step for step in steps(compared("llama2-7b", "llama3-8b")) if step[1]] == [
        (["vocab_size"], 788_529_152),
        (["intermediate_size"], 1_308_622_848),
        (["num_key_value_heads"], -805_306_368),
    ]


def test_the_order_is_the_second_files() -> None:
    reversed_new = dict(reversed(NEW.items()))

    assert steps(compared(OLD, reversed_new)) == [
        (["rope_theta"], 0),
        (["num_key_value_heads"], 8_192),  # in two layers
        (["num_hidden_layers"], 41_088),  # 16,384 + 24,576 + 128
        (["intermediate_size"], 36_864),  # in three
    ]


def test_a_default_that_is_stated_is_no_difference() -> None:
    """LlamaConfig's own."""
    stated = dict(vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, head_dim=None)

    assert steps(compared({"model_type": "llama"}, {"model_type": "llama", "attention_bias": False, **stated})) == []


def test_a_field_that_is_gone_is_its_default_again() -> None:
    report = compared({"model_type": "llama", "num_hidden_layers": 2}, {"model_type": "llama"})
    assert report.change

    assert [field.model_dump() for field in report.change.steps[0].fields] == [
        {"name": "num_hidden_layers", "old": 2, "new": 32}
    ]
    assert report.change.difference == 30 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096)


def test_other_names_of_a_field_are_that_field() -> None:
    same = {"model_type": "gpt2", "num_hidden_layers": 3, "dtype": "float16"}

    assert steps(compared({"model_type": "gpt2", "n_layer": 3, "torch_dtype": "float16"}, same)) == []
    assert steps(compared({"model_type": "gpt2", "n_layer": 3}, {"model_type": "gpt2", "num_hidden_layers": 4})) == [
        (["num_hidden_layers"], 7_087_872)  # 12 x 768^2 of matrices, 9 x 768 of biases, 4 x 768 of norms
    ]


def test_fields_that_make_no_model_alone_go_together() -> None:
    """A list for each layer and the depth; what stands between them has a step of its own."""
    full = "full_attention"
    base = {"model_type": "qwen3", "hidden_size": 64, "num_attention_heads": 2, "head_dim": 32, "vocab_size": 100}
    base |= {"intermediate_size": 128, "num_key_value_heads": 2, "tie_word_embeddings": True}
    old = base | {"num_hidden_layers": 2, "layer_types": [full] * 2}
    new = {"num_hidden_layers": 3} | base | {"vocab_size": 101, "layer_types": [full] * 3}

    assert steps(compared(old, new)) == [
        (["vocab_size"], 64),
        (["num_hidden_layers", "layer_types"], 4 * 64 * 64 + 3 * 64 * 128 + 2 * 64 + 2 * 32),
    ]


def test_another_class_is_a_change() -> None:
    report = compared(OLD, NEW | {"architectures": ["LlamaModel"]})

    assert steps(report)[0] == (["architectures"], -6_400)  # the head
    assert sum(difference for _, difference in steps(report)) == 86_144 - 6_400


def test_fields_in_sections_have_dots() -> None:
    old = {"model_type": "gemma3", "text_config": {"num_hidden_layers": 2}}
    new = {"model_type": "gemma3", "text_config": {"num_hidden_layers": 2, "vocab_size": 262_208, "hidden_size": 1152}}
    report = compared(old, new)

    assert [names for names, _ in steps(report)] == [["text_config.hidden_size"]]  # the vocabulary is the default
    assert report.change
    assert set(report.change.components) >= {"embedding", "attention", "ffn", "norm"}


def test_a_section_of_which_only_one_file_speaks_is_one_change() -> None:
    text = {"model_type": "qwen2", "num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 2}
    text["num_key_value_heads"] = 2
    changed = [
        names for names, _ in steps(compared({"model_type": "llava"}, {"model_type": "llava"} | {"text_config": text}))
    ]

    assert changed == [["text_config"]]


def test_models_of_other_families_are_no_change() -> None:
    assert compared("llama3-8b", "qwen3-8b").change is None
    assert compared("llama3-8b", "llama2-7b", "llama-7b").change is None


def test_the_same_file_read_in_another_way_is_no_change() -> None:
    whole, text = (paramcalc.load({"model_type": "llava"}, text_only=text_only) for text_only in (False, True))

    assert paramcalc.compare([whole, text]).change is None


def test_values_that_json_does_not_know_are_text() -> None:
    report = compared(OLD | {"rope_theta": float("nan")}, NEW | {"rope_theta": float("inf")})
    again = compared(OLD | {"rope_theta": float("nan")}, OLD | {"rope_theta": float("nan")})

    assert report.change
    assert [(field.old, field.new) for step in report.change.steps for field in step.fields][-1] == ("nan", "inf")
    assert steps(again) == []


FAMILIES = ("bert", "bloom", "deepseek_v3", "falcon", "gemma3n_text", "jamba", "mamba2", "mpt", "nemotron_h", "bart")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_steps_sum_to_what_the_reference_has_more(family: str) -> None:
    goldens = [COUNT[name] for name in COUNT.families[family] if "/odd-" in name][:4]

    assert len(goldens) > 1
    for old, new in pairwise(goldens):
        found = changes.change_figures([paramcalc.load(golden["config"]) for golden in (old, new)])
        assert found
        assert found["difference"] == new["total"] - old["total"]
        assert sum(step["difference"] for step in found["steps"]) == found["difference"]
        assert all(sum(step["components"].values()) == step["difference"] for step in found["steps"])
