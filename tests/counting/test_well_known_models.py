"""Fifteen well-known models from their configs alone: total and active, equal to transformers 5.24 on the meta device.

README compares them with what other tools say, measured on 2026-11-29.
"""

from __future__ import annotations

import pytest

import paramcalc

FIFTEEN = {
    "llama3-8b": (8_030_261_248, 8_030_261_248),
    "llama3.2-1b": (1_235_814_400, 1_235_814_400),
    "qwen2.5-7b": (7_615_616_512, 7_615_616_512),
    "qwen3-0.6b": (596_049_920, 596_049_920),
    "mistral-7b": (7_241_732_096, 7_241_732_096),
    "gemma2-9b": (9_241_705_984, 9_241_705_984),
    "gemma3-27b-text": (27_009_346_304, 27_009_346_304),
    "mixtral-8x7b": (46_702_792_704, 12_879_925_248),
    "deepseek-v3": (671_026_404_352, 37_552_282_624),
    "gpt-oss-20b": (20_914_757_184, 4_187_440_704),
    "gpt2": (124_439_808, 124_439_808),
    "bert-base-uncased": (109_514_298, 109_514_298),
    "t5-base": (222_903_552, 222_903_552),
    "jamba-1.5-mini": (51_570_323_328, 12_110_311_296),
    "qwen3-next-80b-a3b": (79_674_391_296, 3_874_929_408),
}


@pytest.mark.parametrize("preset", FIFTEEN)
def test_total_and_active_are_right(preset: str) -> None:
    report = paramcalc.count(paramcalc.load(preset))

    assert (report.parameters.total, report.parameters.active) == FIFTEEN[preset]
    assert report.model.status == "exact"
