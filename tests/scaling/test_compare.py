"""Models side by side: the figures of their reports, and ratios to the first."""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc
from paramcalc.base.errors import ParamcalcError
from paramcalc.reports.compare import Compared, CompareReport

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


def compared(*sources: Any, **options: Any) -> CompareReport:
    return paramcalc.compare([paramcalc.load(source) for source in sources], **options)


def row(report: CompareReport, name: str) -> Compared:
    return next(one for one in report.rows if f"{one.report}.{one.name}" == name)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("count.parameters.total", 6_738_415_616, 8_030_261_248),  # Touvron et al. 2023; Llama 3's model card
        ("count.components.attention.total", 2_147_483_648, 1_342_177_280),  # 32 x 4 x 4,096^2; 32 x 2.5 x 4,096^2
        ("count.components.head.total", 131_072_000, 525_336_576),
        ("shape.layers", 32, 32),
        ("shape.sequential_steps", 32, 32),
        ("shape.d_model", 4096, 4096),
        ("shape.aspect_ratio", 128.0, 128.0),
        ("shape.heads", 32, 32),
        ("shape.kv_heads", 32, 8),
        ("shape.head_dim", 128, 128),
        ("shape.d_ff", 11008, 14336),
        ("shape.ffn_ratio", 2.6875, 3.5),
        ("memory.working.logits.vocabulary", 32_000, 128_256),
        ("memory.weights.bytes", 13_476_831_232, 16_060_522_496),
        ("memory.kv_cache.bytes_per_token", 524_288, 131_072),  # 32 x 2 x heads x 128 x 2 bytes
        ("memory.kv_cache.per_sequence.bytes", 4_294_967_296, 1_073_741_824),
        ("flops.per_token.attention", 4_294_967_296, 4_294_967_296),  # 4 x 32 x 4,096 x 8,192
        ("flops.per_token.total", 17_509_122_048, 19_304_284_160),  # and 2 x 6,607,077,376; 2 x 7,504,658,432
    ],
)
def test_two_llamas(name: str, old: int, new: int) -> None:
    found = row(compared("llama2-7b", "llama3-8b"), name)

    assert found.values == (old, new)
    assert found.differences == (0, new - old)
    assert found.differs is (old != new)


def test_ratios_are_to_the_first_and_have_six_digits() -> None:
    report = compared("llama3-8b", "llama2-7b", "gpt2")

    assert row(report, "count.parameters.total").ratios == (1.0, 0.839128, 0.0154964)
    assert row(report, "shape.aspect_ratio").values == (128.0, 128.0, 64.0)
    assert row(report, "count.components.head.total").ratios == (1.0, 0.249501, 0.0)  # GPT-2's head is its embedding


def test_a_ratio_to_nothing_is_none() -> None:
    assert row(compared("gpt2", "llama2-7b"), "count.components.head.total").ratios == (None, None)


def test_a_context_is_for_caches_and_work() -> None:
    report = compared("llama3-8b", "gemma2-9b", context=1024)

    assert report.assumptions.context == 1024
    assert row(report, "memory.kv_cache.per_sequence.bytes").values[0] == 134_217_728
    assert row(report, "flops.per_token.attention").values[0] == 536_870_912
    # no window is as short as that; the published file of Gemma 2 says float32
    assert report.notes == ("llama3-8b: weights in bfloat16", "gemma2-9b: weights in float32")
    assert compared("llama3-8b", "qwen3-8b").notes == ()


def test_notes_and_warnings_are_under_the_name_of_their_model() -> None:
    report = compared("gemma2-9b", OLD | {"surprise": 1}, {"model_type": "llama"})

    assert report.notes[0].startswith("gemma2-9b: windows limit attention to 4,096 tokens")
    assert report.warnings[0].startswith("the given mapping (1): llama: unrecognised key 'surprise' ignored")
    assert report.warnings[-1].startswith("the given mapping (2): ")
    assert report.models[1].status == "approximate"


def test_only_what_differs() -> None:
    report = compared("llama2-7b", "llama3-8b", only_different=True)

    assert {one.name for one in report.rows if one.report == "shape"} == {"kv_heads", "d_ff", "ffn_ratio"}
    assert all(one.differs for one in report.rows)


def test_the_same_model_twice() -> None:
    report = compared("gpt2", "gpt2", only_different=True)

    assert report.rows == ()
    assert report.change
    assert report.change.steps == ()
    assert report.change.difference == 0


@pytest.mark.parametrize("models", [[], ["gpt2"]])
def test_it_takes_two(models: list[str]) -> None:
    with pytest.raises(ParamcalcError, match="compare needs at least two models, not "):
        compared(*models)


@pytest.mark.parametrize("wrong", ["gpt2", ["gpt2", "gpt2"], None, [None, None]])
def test_only_models_are_compared(wrong: Any) -> None:
    with pytest.raises(ParamcalcError, match="compare needs a list of Models, not"):
        paramcalc.compare(wrong)
