"""Elements that the Hub counts in published fp8 checkpoints: those of the model, and one for each scale beside it.

The Hub adds up the safetensors headers. Where it shows one figure with scales and one without (the base model's), the
difference is the number of scales.
"""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc
from paramcalc.assumptions import assume
from paramcalc.model import Model
from paramcalc.storage import weights

FP8 = dict(activation_scheme="dynamic", fmt="e4m3", quant_method="fp8", weight_block_size=[128, 128])
DEEPSEEK_V32 = dict(
    model_type="deepseek_v32",
    architectures=["DeepseekV32ForCausalLM"],
    num_nextn_predict_layers=1,
    torch_dtype="bfloat16",
)
GLM_5 = dict(model_type="glm_moe_dsa", num_nextn_predict_layers=1, torch_dtype="bfloat16")
KIMI_K2 = dict(
    model_type="kimi_k2",
    architectures=["DeepseekV3ForCausalLM"],
    vocab_size=163840,
    hidden_size=7168,
    num_hidden_layers=61,
    num_attention_heads=64,
    n_routed_experts=384,
    first_k_dense_replace=1,
    num_nextn_predict_layers=0,
    torch_dtype="bfloat16",
)
QWEN3_CODER_480B = dict(
    model_type="qwen3_moe",
    vocab_size=151936,
    hidden_size=6144,
    num_hidden_layers=62,
    num_attention_heads=96,
    num_key_value_heads=8,
    head_dim=128,
    moe_intermediate_size=2560,
    num_experts=160,
    tie_word_embeddings=False,
    torch_dtype="bfloat16",
)


def loaded(source: Any) -> Model:
    return paramcalc.load(source, overrides={"quantization_config": FP8})


def scales(model: Model) -> int:
    """Scales beside the quantised matrices, of the modules for multi-token prediction too."""
    return sum(
        one.tensors * one.layout.extras[0].bytes(*map(int, one.weight.shape)) * 8 // one.layout.extras[0].bits
        for one in weights.stored_tensors(model, assume(context=1, include_mtp=True))
        if one.layout is not None and one.layout.extras
    )


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("deepseek-v3", 41_555_600 - 59 * 256),  # F32 elements, less the corrections of 59 routers
        (DEEPSEEK_V32, 685_396_921_376 - 685_355_329_792),  # DeepSeek-V3.2-Exp, and DeepSeek-V3.2
        (GLM_5, 753_910_024_032 - 753_864_139_008),  # GLM-5-FP8, and GLM-5
        (KIMI_K2, 1_026_470_731_056 - 1_026_408_235_864),  # Kimi-K2-Base, and Kimi-K2-Instruct
        ("qwen3-30b-a3b", 30_533_947_392 - 30_532_122_624),  # Qwen3-30B-A3B-Instruct-2507-FP8, and without
        ("qwen3-235b-a22b", 235_107_904_512 - 235_093_634_560),
        (QWEN3_CODER_480B, 480_184_064_000 - 480_154_875_392),
    ],
)
def test_scales_of_published_files(source: Any, number: int) -> None:
    assert scales(loaded(source)) == number


@pytest.mark.parametrize(
    ("source", "elements"),
    [("deepseek-v3", 684_531_386_000 - 41_540_496), (DEEPSEEK_V32, 685_355_329_792), (GLM_5, 753_864_139_008)],
)
def test_elements_with_modules_for_multi_token_prediction(source: Any, elements: int) -> None:
    """DeepSeek's hold embedding and head once more; GLM-5's do not."""
    found = weights.stored_tensors(loaded(source), assume(context=1, include_mtp=True))

    assert sum(one.tensors * int(one.weight.elements) for one in found) == elements


@pytest.mark.parametrize(("family", "estimate"), [("deepseek_v3", False), ("glm4_moe", True), ("glm_moe_dsa", False)])
def test_tables_that_not_all_checkpoints_repeat_are_said(family: str, estimate: bool) -> None:
    """GLM-4.5 has 358,337,791,296 elements on the Hub, GLM-4.6 of the same sizes 356,785,898,816."""
    model = paramcalc.load(dict(model_type=family, num_nextn_predict_layers=1, torch_dtype="bfloat16"))
    report = paramcalc.memory(model, context=1, include_mtp=True)

    assert report.weights.estimate is estimate
    assert any("counted again" in warning for warning in report.warnings) is estimate


def test_dtypes_that_nobody_read_are_an_estimate() -> None:
    """DeepSeek's code says of the indexer's weights_proj that the checkpoint has it in bfloat16; not so of its norm."""
    report = paramcalc.memory(loaded(DEEPSEEK_V32), context=1)

    assert report.weights.estimate
    assert any("DeepSeek-V3.2" in warning for warning in report.warnings)
    assert not paramcalc.memory(loaded("deepseek-v3"), context=1).weights.estimate
