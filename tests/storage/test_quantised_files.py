"""Bytes of files that bitsandbytes, torchao, AutoRound and compressed-tensors wrote: tests/goldens/quantised."""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc
from paramcalc.reports.memory import MemoryReport
from paramcalc.storage.formats.registry import format_named
from tests.goldens.store import QUANTISED


def report(name: str) -> MemoryReport:
    return paramcalc.memory(paramcalc.load(QUANTISED[name]["config"]), context=1)


@pytest.mark.parametrize("name", QUANTISED)
def test_bytes_of_files(name: str) -> None:
    """With what only files keep; the text that bitsandbytes writes beside each matrix is not counted."""
    weights = report(name).weights

    assert weights.bytes + weights.file_records == QUANTISED[name]["bytes"]
    assert not weights.estimate


def test_the_text_beside_each_matrix_is_about_a_hundred_bytes() -> None:
    """14 matrices of two layers."""
    assert QUANTISED["llama/nf4"]["text"] == 14 * 80
    assert QUANTISED["llama/nf4-dq"]["text"] // 14 == 170


def test_every_scheme_of_compressed_tensors_is_there() -> None:
    """Its presets in version 0.20."""
    presets = (
        "W4A16_ASYM W8A8 INT8 W4AFP8 FP8 FP8_DYNAMIC FP8_BLOCK NVFP4A16 NVFP4 MXFP4A16 MXFP4 MXFP4XFP8 MXFP6A16 "
        "MXFP6A8 MXFP8A16 MXFP8 W2A4 W2A8 W2A16 W3A4 W3A8 W3A16 W4A4 W4A8 W4A16 W5A8 W5A16 W6A8 W6A16 W7A8 W7A16 W8A16"
    )

    assert {f"llama/{name}" for name in presets.split()} <= set(QUANTISED)


@pytest.mark.parametrize(
    "config",
    [
        dict(quant_method="gptq", bits=4, checkpoint_format="bitblas"),
        dict(quant_method="awq", bits=4, version="gemv"),
        dict(quant_method="auto-round", bits=4, data_type="fp", group_size=64),
        dict(quant_method="auto-round", bits=4, packing_format="auto_round:gguf"),
        dict(
            quant_method="compressed-tensors",
            format="float-quantized",
            config_groups=dict(
                group_0=dict(targets=["Linear"], weights=dict(num_bits=5, type="float", strategy="channel"))
            ),
        ),
    ],
)
def test_layouts_that_are_not_known_are_an_estimate(config: dict[str, Any]) -> None:
    fields = {key: value for key, value in QUANTISED["llama/nf4"]["config"].items() if key != "quantization_config"}
    found = paramcalc.memory(paramcalc.load(fields | {"quantization_config": config}), context=1)

    assert found.weights.estimate
    assert any("estimate" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    "config",
    [
        dict(quant_method="gptq", bits=4, group_size=128, checkpoint_format="marlin"),
        dict(quant_method="gptq", bits=4, group_size=128, is_marlin_format=True),
        dict(quant_method="marlin", group_size=128),
    ],
)
def test_marlin_keeps_neither_index_nor_zero_points(config: dict[str, Any]) -> None:
    """Of each layer 589,824 values in 4 bits; two bytes for two groups of 1,792 outputs, and for four of 256."""
    fields = {key: value for key, value in QUANTISED["llama/nf4"]["config"].items() if key != "quantization_config"}
    shares = paramcalc.memory(paramcalc.load(fields | {"quantization_config": config}), context=1).weights.by_format

    assert shares["marlin-int4-g128"].bytes == 2 * (589_824 // 2 + 2 * (2 * 1_792 + 4 * 256))


def test_what_comes_out_of_the_projections_says_how_quark_keeps_a_cache() -> None:
    assert report("llama/quark fp8-kv").kv_cache.dtype == "float8_e4m3fn"
    assert report("llama/quark fp8").kv_cache.dtype == "bfloat16"


def other(quantization: dict[str, Any]) -> MemoryReport:
    fields = QUANTISED["llama/nf4"]["config"] | {"quantization_config": quantization}
    return paramcalc.memory(paramcalc.load(fields), context=1)


def test_scales_of_quark_depend_on_its_version() -> None:
    """Fields of the config that Quark 0.13 does not leave out; exponents are a byte in any version."""
    fp8, fp4 = dict(dtype="fp8_e4m3", qscheme="per_tensor"), dict(dtype="fp4", qscheme="per_group", group_size=32)

    assert other(dict(quant_method="quark", global_quant_config=dict(weight=fp8))).weights.estimate
    assert not other(dict(quant_method="quark", global_quant_config=dict(weight=fp4))).weights.estimate
    with pytest.raises(paramcalc.ParamcalcError, match="fp4 per_group with groups of 16 is unknown"):
        other(dict(quant_method="quark", global_quant_config=dict(weight=fp4 | {"group_size": 16})))


def test_three_bits_of_hqq_are_packed_ten_groups_at_a_time() -> None:
    """hqq 0.2.8: a matrix of 128 x 256 in groups of 64, 512 of them: W_q of 52 x 64 int32."""
    assert format_named("hqq-int3-g64").value_bytes((128, 256)) == 52 * 64 * 4


@pytest.mark.parametrize(("nested", "estimate"), [(None, False), (dict(nbits=8, group_size=128), True)])
def test_scales_of_hqq_that_are_quantised_are_an_estimate(nested: dict[str, int] | None, estimate: bool) -> None:
    stated = dict(weight_quant_params=dict(nbits=4, group_size=64), scale_quant_params=nested)

    assert other(dict(quant_method="hqq", quant_config=stated)).weights.estimate is estimate


@pytest.mark.parametrize("name", ["NVFP4", "nvfp4", "MXFP8", "mxfp8"])
def test_algorithms_of_modelopt_in_any_case(name: str) -> None:
    shares = other(dict(quant_method="modelopt", quant_algo=name, ignore=["lm_head"])).weights.by_format

    assert name.lower() in shares
