"""Formats: what a matrix takes in each, which tensors they leave alone, and what people may call them.

The matrix is 4096 x 4096, 16,777,216 values: 8,388,608 bytes in 4 bits, with 131,072 groups of 128 or 262,144 of 64.
"""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

import paramcalc
from paramcalc.base.dtypes import dtype
from paramcalc.cli import main
from paramcalc.render.listings import dtype_row
from paramcalc.render.listings import listing_table as drawn
from paramcalc.render.table import render_text
from paramcalc.reports.memory import MemoryReport
from paramcalc.storage.formats.format import bits_per_weight
from paramcalc.storage.formats.registry import format_named, listed_formats
from paramcalc.storage.gguf.types import FTYPE_BASES, PUBLISHED_BITS
from paramcalc.storage.listing import dtype_infos

SQUARE = (4096, 4096)
FOUR = 8_388_608  # bytes of its values in 4 bits


def memory(source: object, **assumptions: object) -> MemoryReport:
    return paramcalc.memory(paramcalc.load(source), context=1, **assumptions)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("float32", 67_108_864),
        ("bf16", 33_554_432),
        ("gptq-int4-g128", FOUR + 131_072 * 2 + 131_072 // 2 + 4096 * 4),  # scale, 4-bit zero, an index per input
        ("gptq-int3-g128", 6_291_456 + 131_072 * 2 + 131_072 * 3 // 8 + 4096 * 4),
        ("gptq-int8-gnone", 16_777_216 + 4096 * 2 + 4096 + 4096 * 4),
        ("awq-int4-g128", FOUR + 131_072 * 2 + 131_072 // 2),
        ("w4a16-g128", FOUR + 131_072 * 2),
        ("w4a16-g128-asym", FOUR + 131_072 * 2 + 131_072 // 2),
        ("int4", FOUR + 131_072 * 2),
        ("nf4", FOUR + 262_144 * 4),
        ("nf4-dq", FOUR + 262_144 + 1024 * 4),  # 8 bits for each 64, a float32 for each 256 of those
        ("int8", 16_777_216 + 4096 * 4),
        ("w8a8", 16_777_216 + 4096 * 2),
        ("fp8", 16_777_216 + 4),
        ("fp8-channel", 16_777_216 + 4096 * 2),
        ("fp8-block128", 16_777_216 + 32 * 32 * 4),
        ("mxfp4", FOUR + 524_288),
        ("nvfp4", FOUR + 1_048_576 + 4),
        ("mlx-int4-g64", FOUR + 2 * 262_144 * 2),
        ("mlx-int8-g64", 16_777_216 + 2 * 262_144 * 2),
        ("hqq-int4-g64", FOUR + 2 * 262_144 * 2),
        ("torchao-int4-g128", FOUR + 131_072 * 4),
        ("bitnet", 4_194_304 + 2),
        ("exl2-4.65bpw", 104_858 * 93),  # 4.65 bits are 93 bytes for 160 values
        ("autoround-int4-g128", FOUR + 131_072 * 5 // 2),  # a scale of 2 bytes and a zero of 4 bits for each group
        ("marlin-int4-g128", FOUR + 131_072 * 2),
        ("mxfp6", 3 * FOUR // 2 + 16_777_216 // 32),
        ("fp8-g128", 2 * FOUR + 131_072 * 2),
        ("torchao-int8", 2 * FOUR + 4096 * 5),
    ],
)
def test_bytes_of_a_matrix(name: str, size: int) -> None:
    assert format_named(name).bytes(SQUARE) == size


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("w4a16-g128", "4.125"),
        ("awq-int4-g128", "4.1562"),
        ("nf4", "4.5"),
        ("nf4-dq", "4.127"),
        ("mxfp4", "4.25"),
        ("nvfp4", "4.5"),
        ("mlx-int4-g64", "4.5"),
    ],
)
def test_four_bits_are_not_four(name: str, bits: str) -> None:
    assert str(bits_per_weight(format_named(name))) == bits


def test_sides_that_do_not_divide_are_rounded_up() -> None:
    """576 x 7168 in squares of 128: 4.5, so 5, by 56; 100 inputs in groups of 64: two for each of 3 rows."""
    assert format_named("fp8-block128").bytes((576, 7168)) == 576 * 7168 + 5 * 56 * 4
    assert format_named("w4a16-g64").bytes((3, 100)) == 3 * 52 + 3 * 2 * 2  # 13 words of 8 values in a row


@pytest.mark.parametrize(("name", "size"), [("q8_0", 34), ("q4_0", 18), ("q5_1", 24), ("q4_1", 20), ("q5_0", 22)])
def test_caches_have_dtypes_in_blocks_of_32(name: str, size: int) -> None:
    assert dtype(name).bytes(4096) == 128 * size


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("GPTQ-Int4-G128", "gptq-int4-g128"),
        ("gptq", "gptq-int4-g128"),
        ("torch.bfloat16", "bfloat16"),
        ("FP8_E4M3", "float8_e4m3fn"),
        ("NF4-DQ", "nf4-dq"),
        ("4.65bpw", "exl2-4.65bpw"),
        ("exl2-4.65", "exl2-4.65bpw"),
        ("w4a16-g32-asym", "w4a16-g32-asym"),
    ],
)
def test_names_in_any_case(text: str, name: str) -> None:
    assert format_named(text).name == name


@pytest.mark.parametrize("name", ["nf5", "gptq-int5-g128", "", "exl2-99bpw", "float7", "q"])
def test_unknown_names_are_errors_with_a_hint(name: str) -> None:
    with pytest.raises(paramcalc.ParamcalcError) as raised:
        format_named(name)

    assert raised.value.hint


def test_names_of_what_is_listed_are_understood() -> None:
    formats = listed_formats()

    assert len({form.name for form in formats}) == len(formats) > 30
    assert [format_named(form.name) for form in formats] == formats
    assert all(form.summary and form.source for form in formats)


# -- which tensors ---------------------------------------------------------------------------------------------------

# Llama 3.2 1B: 16 layers of 60,817,408 in seven matrices, 33 norms of 2048, one embedding that is the head too.
MATRICES, NORMS, EMBEDDING = 16 * 60_817_408, 33 * 2048, 128_256 * 2048


def test_embeddings_norms_and_a_tied_head_stay_in_16_bits() -> None:
    """486,539,264 bytes of 4-bit values, 15,204,352 of scales, 525,471,744 of embedding and norms."""
    weights = memory("llama3.2-1b", dtype="w4a16-g128").weights

    assert weights.bytes == 1_027_215_360
    assert weights.by_format["w4a16-g128"].model_dump() == dict(tensors=112, parameters=MATRICES, bytes=501_743_616)
    assert weights.by_format["bfloat16"].model_dump() == dict(
        tensors=34, parameters=NORMS + EMBEDDING, bytes=2 * (NORMS + EMBEDDING)
    )


def test_the_head_of_mixtral_and_its_routers_stay_in_16_bits() -> None:
    """A router is 8 x 4096; of the 46,702,792,704 parameters 263,462,912 are in no layer's matrices but routers'."""
    shares = memory("mixtral-8x7b", dtype="nf4").weights.by_format
    rest = 2 * 32_000 * 4096 + 65 * 4096 + 32 * 8 * 4096

    assert shares["bfloat16"].parameters == rest
    assert shares["nf4"].parameters == 46_702_792_704 - rest
    assert shares["nf4"].bytes == (46_702_792_704 - rest) * 9 // 16


def test_published_checkpoints_by_the_name_of_their_format() -> None:
    assert memory("gpt-oss-20b", dtype="mxfp4").weights.bytes == 13_761_264_768
    assert memory("gpt-oss-120b", dtype="mxfp4").weights.bytes == 65_248_815_744
    assert memory("deepseek-v3", dtype="fp8-block128").weights.bytes == 673_150_611_808
    assert memory("deepseek-v3", dtype="fp8-block128", include_mtp=True).weights.bytes == 688_574_839_360


def test_mxfp4_is_for_all_layers_where_there_are_no_experts() -> None:
    shares = memory("llama3.2-1b", dtype="mxfp4").weights.by_format

    assert shares["mxfp4"].bytes == MATRICES * 17 // 32


@pytest.mark.parametrize("name", ["mxfp4", "fp8-block128", "nf4"])
def test_stages_of_a_pipeline_hold_the_whole_together(name: str) -> None:
    """Three of DeepSeek-V3's layers have no experts, and stages of their own."""
    report = memory("deepseek-v3", dtype=name, pipeline_parallel=61)

    assert sum(stage.weights_bytes for stage in report.per_device.stages) == report.weights.bytes


def test_mlx_quantises_embeddings_too() -> None:
    shares = memory("llama3.2-1b", dtype="mlx-int4-g64").weights.by_format

    assert shares["mlx-int4-g64"].parameters == MATRICES + EMBEDDING
    assert shares["mlx-int4-g64"].bytes == (MATRICES + EMBEDDING) * 9 // 16


def test_average_bits_are_marked_as_an_estimate() -> None:
    report = memory("llama3-8b", dtype="exl2-4.65bpw")

    assert any("estimate" in warning for warning in report.warnings)
    assert report.weights.by_format["exl2-6.0bpw"].parameters == 128_256 * 4096  # the head


def test_logical_parameters_never_change() -> None:
    for form in listed_formats():
        shares = memory("gpt-oss-20b", dtype=form.name).weights.by_format.values()
        assert sum(share.parameters for share in shares) == 20_914_757_184


def test_dtypes_of_parts() -> None:
    """32 norms twice and one more of 4096; routers 8 x 4096; a head of 32,000 x 4096."""
    parts = (("norm", "fp32"), ("Router", "float32"), ("lm_head", "fp8"))
    shares = memory("mixtral-8x7b", dtype="nf4", dtype_of=parts).weights.by_format

    assert shares["float32"].bytes == 4 * (65 * 4096 + 32 * 8 * 4096)
    assert shares["fp8"].bytes == 32_000 * 4096 + 4


def test_dtypes_of_paths_in_the_words_of_checkpoints() -> None:
    """Layer 3 alone, and the down-projections of all 32 layers."""
    one = memory("llama3-8b", dtype_of=(("model.layers.3.self_attn", "fp32"),)).weights.by_format
    all_layers = memory("llama3-8b", dtype_of=(("mlp.down_proj", "fp32"), ("k_proj", "fp16"))).weights.by_format

    assert one["float32"].parameters == 2 * 4096 * 4096 + 2 * 1024 * 4096
    assert all_layers["float32"].parameters == 32 * 4096 * 14336
    assert all_layers["float16"].parameters == 32 * 1024 * 4096


def test_a_part_that_the_model_has_not() -> None:
    with pytest.raises(paramcalc.ParamcalcError, match="routre"):
        memory("mixtral-8x7b", dtype_of=(("routre", "fp32"),))
    with pytest.raises(paramcalc.ParamcalcError, match="float7"):
        memory("mixtral-8x7b", dtype_of=(("norm", "float7"),))

    assert "no such tensor" in memory("llama3-8b", dtype_of=(("router", "fp32"),)).warnings[0]
    assert "tied" in memory("llama3.2-1b", dtype_of=(("lm_head", "fp32"),)).warnings[0]


def test_corrections_of_routers_are_stored_in_float32() -> None:
    """DeepSeek-V3: 58 of 256, buffers and so no parameters."""
    share = memory("deepseek-v3").weights.by_format["float32"]

    assert share.model_dump() == dict(tensors=58, parameters=0, bytes=58 * 256 * 4)


# -- GGUF files ------------------------------------------------------------------------------------------------------


def test_gguf_of_llama31_8b() -> None:
    """llama.cpp's README has 4.8944 bits for each of 8,030,261,312 elements, of which 64 are rotary factors."""
    weights = memory("llama3.1-8b", dtype="q4_k_m").weights

    assert weights.bytes == 4_912_898_304
    assert sum(share.parameters for share in weights.by_format.values()) == 8_030_261_248
    assert list(weights.by_format) == ["F32", "Q6_K", "Q4_K"]
    assert memory("llama3.1-8b", dtype="GGUF-Q4_K_M").weights == weights


def test_matrices_of_gguf_files_are_not_divided() -> None:
    with pytest.raises(
        paramcalc.ParamcalcError, match="tensor and expert parallelism are not available for GGUF files"
    ):
        memory("llama3.1-8b", dtype="q4_k_m", tensor_parallel=2)
    with pytest.raises(paramcalc.ParamcalcError, match="--dtype-of"):
        memory("llama3.1-8b", dtype="q4_k_m", dtype_of=(("norm", "fp32"),))


# -- the command -----------------------------------------------------------------------------------------------------


def test_formats_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dtypes", "--json"]) == 0
    found = {info["name"]: info for info in json.loads(capsys.readouterr().out)}
    assert main(["dtypes", "GPTQ-int4-g32", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)

    assert found["nf4-dq"]["bits"] == "4.127"
    assert found["q8_0"]["use"] == "cache"
    assert (found["gguf-f16"]["bits"], found["gguf-f16"]["layout"]) == ("16", "F16 for matrices")
    assert {f"gguf-{kind.lower()}" for kind in FTYPE_BASES} <= set(found)
    assert found["gguf-q8_0"]["bits"] == "8.5"
    assert found["gguf-q4_k_m"]["bits"] == "4.8944"  # not Q4_K's 4.5: attention's values and half of the rest have more
    assert found["mxfp4"]["leaves"] == "all except experts (if any)"
    assert not found["exl2-4.65bpw"]["exact"]
    assert (shown["name"], shown["bits"]) == ("gptq-int4-g32", "4.6328")  # 4 + 20 / 32, and 32 / 4096 for the index


@pytest.mark.parametrize(("kind", "bits"), [item for item in PUBLISHED_BITS.items() if item[0] != "IQ3_XXS"])
def test_published_bits_are_those_of_the_files(kind: str, bits: str) -> None:
    """llama.cpp's README rounds to four decimals, and counts the 64 frequencies of rotary positions too."""
    weights = memory("llama3.1-8b", dtype=kind).weights

    assert abs(Decimal(8 * weights.bytes) / 8_030_261_312 - Decimal(bits)) < Decimal("0.0001")


def test_a_terminal_of_100_columns_has_room_for_the_layouts() -> None:
    rows = [dtype_row(info) for info in dtype_infos()]
    lines = render_text(drawn("dtypes", rows, 100), width=100, color=False).splitlines()

    assert lines[-1].startswith("hidden columns: leaves, use, source;")
    assert max(map(len, lines)) <= 100


def test_a_row_for_each_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dtypes", "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert lines[0] == "name,bits,layout,leaves,use,source"
    assert any(line.startswith("exl2-4.65bpw,about 4.65,") for line in lines)
    assert main(["dtypes"]) == 0
    assert "nvfp4" in capsys.readouterr().out


def test_average_bits_and_mtp_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "llama3-8b", "--bpw", "4.65", "--json"]) == 0
    assert "exl2-4.65bpw" in json.loads(capsys.readouterr().out)["weights"]["by_format"]
    assert main(["memory", "deepseek-v3", "--dtype", "fp8-block128", "--include-mtp", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["weights"]["bytes"], found["assumptions"]["include_mtp"]) == (688_574_839_360, True)
    for wrong in (["--bpw", "many"], ["--bpw", "99"], ["--bpw", "4", "--dtype", "nf4"]):
        assert main(["memory", "llama3-8b", *wrong]) == 2
    assert "none are known" in memory("llama3-8b", include_mtp=True).warnings[0]


def test_an_unknown_format_is_refused_with_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dtypes", "zzzzzz"]) == 2
    assert "nf4, nf4-dq" in capsys.readouterr().err
    assert main(["memory", "llama3-8b", "--dtype", "nf5"]) == 2
    assert "did you mean 'nf4'" in capsys.readouterr().err
