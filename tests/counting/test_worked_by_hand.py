"""Numbers worked out by hand, and figures that publishers state. None of them was computed by this code."""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc
from paramcalc.reports.count import CountReport

SMALL = {  # the text-book decoder of 110 M parameters
    "model_type": "transformer",
    "d_model": 768,
    "n_layers": 12,
    "n_heads": 12,
    "d_ff": 3072,
    "vocab_size": 32000,
}


def count(source: Any, **overrides: Any) -> CountReport:
    return paramcalc.count(paramcalc.load(source, overrides=overrides))


def test_the_tutorial_model() -> None:
    report = count("tutorial-110m")

    assert report.parameters.total == 109_529_856
    assert report.layers[0].repeat == 12
    assert report.layers[0].total == 7_079_424 == 2_359_296 + 4_718_592 + 1_536
    assert report.components["embedding"].total == 24_576_000
    assert report.components["attention"].total == 12 * 2_359_296
    assert report.components["ffn"].total == 12 * 4_718_592
    assert report.components["norm"].total == 19_200
    assert report.weights.bytes == 219_059_712  # 208.9 MiB
    assert report.tied == (("lm_head", "embed_tokens"),)


def test_a_gated_ffn_of_two_thirds_costs_the_same() -> None:
    assert count(SMALL, ffn="gated", d_ff=2048).components["ffn"].total == 12 * 4_718_592


def test_twice_the_depth_is_linear_and_twice_the_width_is_quadratic() -> None:
    assert count("tutorial-110m", n_layers=24).parameters.total == 194_482_944
    assert count("tutorial-110m", d_model=1536, d_ff=6144).parameters.total == 388_929_024


def test_eight_experts() -> None:
    report = count("tutorial-moe")

    assert report.layers[0].total == 40_115_712
    assert report.layers[0].active == 11_804_160
    assert report.components["router"].total == 12 * 6_144
    assert report.components["experts"].total == 12 * 8 * 4_718_592
    assert report.parameters.total == 505_965_312  # 506 M, 965 MiB in two bytes each
    assert report.parameters.active == 166_226_688  # 166 M
    assert report.weights.bytes == 1_011_930_624


def test_a_torch_style_block() -> None:
    config = {
        "model_type": "transformer",
        "d_model": 32,
        "n_layers": 6,
        "n_heads": 4,
        "d_ff": 128,
        "norm": "layer",
        "bias": {"attention": False, "ffn": True},
    }

    report = count(config)

    assert report.layers[0].total == 12_576
    assert report.parameters.total == 75_456
    assert report.components["attention"].total == 6 * 4_096
    assert report.components["norm"].total == 6 * 128
    assert report.components["ffn"].total == 6 * (8_192 + 160)


PUBLISHED = [
    # preset, total, active
    ("llama3-8b", 8_030_261_248, 8_030_261_248),
    ("gpt2", 124_439_808, 124_439_808),
    ("mistral-7b", 7_241_732_096, 7_241_732_096),
    ("mixtral-8x7b", 46_702_792_704, 12_879_925_248),
    ("deepseek-v3", 671_026_404_352, 37_552_282_624),
    ("gpt-oss-20b", 20_914_757_184, 4_187_440_704),
    ("bert-base-uncased", 109_514_298, 109_514_298),
]


@pytest.mark.parametrize(("preset", "total", "active"), PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_published_totals(preset: str, total: int, active: int) -> None:
    parameters = count(preset).parameters

    assert (parameters.total, parameters.active) == (total, active)


def test_llama3_8b_weighs_sixteen_billion_bytes() -> None:
    assert count("llama3-8b").weights.bytes == 16_060_522_496


def test_deepseek_v3_reports_buffers_and_mtp_apart() -> None:
    parameters = count("deepseek-v3").parameters

    assert parameters.buffers == 14_848  # 58 layers x 256 experts
    assert parameters.mtp == 11_610_068_224
    with_mtp = paramcalc.count(paramcalc.load("deepseek-v3"), include_mtp=True)
    assert with_mtp.parameters.total == 671_026_404_352 + 11_610_068_224


def test_gpt_oss_leaves_its_input_embedding_out_of_active() -> None:
    assert count("gpt-oss-20b").parameters.active_without_input_embedding == 3_608_307_264


def test_bert_without_a_head_has_a_pooler() -> None:
    assert count("bert-base-uncased", architectures=["BertModel"]).parameters.total == 109_482_240


def test_gpt2_figures_are_named() -> None:
    assert count("gpt2").parameters.non_embedding == 85_056_000  # neither tokens nor positions nor head
    assert count("gpt2").parameters.total - count("gpt2").components["embedding"].total == 85_056_000


def test_old_falcon_names_count_as_falcon() -> None:
    old = {
        "model_type": "RefinedWebModel",
        "architectures": ["RWForCausalLM"],
        "hidden_size": 4544,
        "n_layer": 32,
        "n_head": 71,
        "multi_query": True,
        "parallel_attn": True,
        "bias": False,
        "alibi": False,
        "vocab_size": 65024,
        "torch_dtype": "bfloat16",
    }

    assert count(old).parameters.total == 6_921_720_704  # falcon-7b
