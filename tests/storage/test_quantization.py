"""Quantised checkpoints: their configs as published, and their bytes as published or by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcalc
from paramcalc.loading.checkpoint import quantization_config
from paramcalc.reports.memory import MemoryReport
from paramcalc.storage.quantization.methods.registry import METHODS
from paramcalc.storage.quantization.module_names import module_names, name_pattern, pattern_matches
from paramcalc.tree.weights import Category, Weight

# One layer of the small Llama below: q and o 64 x 64, k and v 32 x 64, gate, up and down 128 x 64.
SMALL = dict(
    model_type="llama",
    architectures=["LlamaForCausalLM"],
    vocab_size=256,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    tie_word_embeddings=False,
    torch_dtype="float16",
)
QKVO, FFN = 2 * 64 * 64 + 2 * 32 * 64, 3 * 128 * 64
LAYER = QKVO + FFN
REST = 2 * 256 * 64 + 9 * 64  # embedding, head and norms


def memory(source: Any, quantization: dict[str, Any] | None = None, **assumptions: Any) -> MemoryReport:
    overrides = None if quantization is None else {"quantization_config": quantization}
    return paramcalc.memory(paramcalc.load(source, overrides=overrides), context=1, **assumptions)


def quantised(source: Any, quantization: dict[str, Any]) -> dict[str, int]:
    """Logical parameters by format."""
    return {name: share.parameters for name, share in memory(source, quantization).weights.by_format.items()}


# -- published checkpoints -------------------------------------------------------------------------------------------

FP8 = dict(activation_scheme="dynamic", fmt="e4m3", quant_method="fp8", weight_block_size=[128, 128])
MXFP4 = dict(
    quant_method="mxfp4",
    modules_to_not_convert=[
        "model.layers.*.self_attn",
        "model.layers.*.mlp.router",
        "model.embed_tokens",
        "lm_head",
    ],
)


def test_gpt_oss() -> None:
    """The model card's 60.8 and 12.8 GiB: experts 17 bytes for 32 values, all else bfloat16."""
    assert memory("gpt-oss-120b", MXFP4).weights.bytes == 65_248_815_744
    assert memory("gpt-oss-20b", MXFP4).weights.bytes == 13_761_264_768
    assert memory("gpt-oss-20b", MXFP4).warnings == ()


def test_gpt_oss_states_no_dtype() -> None:
    """As published: what is not quantised is bfloat16, not transformers' default of float32."""
    fields = paramcalc.load("gpt-oss-20b").config
    published = {key: value for key, value in fields.items() if key != "torch_dtype"} | {"quantization_config": MXFP4}

    assert memory(published).weights.bytes == 13_761_264_768


def test_deepseek_v3() -> None:
    """The hub shows 3,918,786,560 BF16, 680,571,043,840 F8_E4M3 and 41,555,600 F32 elements.

    2 x 3,918,786,560 + 680,571,043,840 + 4 x 41,555,600 = 688,574,839,360, of which the module for multi-token
    prediction takes 15,424,227,552 with its copies of embedding and head.
    """
    assert memory("deepseek-v3", FP8, include_mtp=True).weights.bytes == 688_574_839_360
    assert memory("deepseek-v3", FP8).weights.bytes == 673_150_611_808
    assert memory("deepseek-v3", FP8).weights.by_format["float32"].tensors == 58


QWEN3_1_7B = dict(
    model_type="qwen3", vocab_size=151_936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=28
) | dict(num_attention_heads=16, num_key_value_heads=8, head_dim=128, tie_word_embeddings=True, torch_dtype="bfloat16")
MATRICES = 28 * (2 * 2048 * 2048 + 2 * 1024 * 2048 + 3 * 2048 * 6144)


def test_qwen_writes_narrow_scales() -> None:
    """Qwen3-1.7B-FP8's 196 scale tensors are BF16 by its header: one for each of 128 x 128 values.

    Embedding and norms stay bfloat16: 151,936 x 2048 and 28 (2 x 2048 + 2 x 128) + 2048 values. That is by no word of
    the config, which others write with float32 scales: it is said.
    """
    report = memory(QWEN3_1_7B, FP8)

    rest = 151_936 * 2048 + 28 * (2 * 2048 + 2 * 128) + 2048
    assert report.weights.bytes == MATRICES + MATRICES // 128**2 * 2 + 2 * rest
    assert report.weights.estimate
    assert any("16 bits are assumed, as in the files of Qwen" in warning for warning in report.warnings)


def test_scales_of_unknown_width_are_said() -> None:
    told = memory("deepseek-v3", FP8)
    untold = memory(QWEN3_1_7B | dict(model_type="llama"), FP8)

    assert told.warnings == ()
    assert not told.weights.estimate
    assert untold.weights.estimate
    assert any("float32 is assumed, as transformers writes them" in warning for warning in untold.warnings)


W4A16: dict[str, Any] = dict(
    quant_method="compressed-tensors",
    format="pack-quantized",
    ignore=["lm_head"],
    kv_cache_scheme=None,
    config_groups=dict(
        group_0=dict(
            targets=["Linear"],
            input_activations=None,
            weights=dict(num_bits=4, type="int", strategy="group", group_size=128, symmetric=True, actorder=None),
        )
    ),
)


def test_llama_w4a16() -> None:
    """7 matrices in 16 layers, 973,078,528 values: half a byte each and 2 bytes for each 128; the rest bfloat16.

    A shape of two int64 beside each matrix is the file's own: 112 x 16 bytes.
    """
    weights = memory("llama3.2-1b", W4A16).weights

    assert weights.bytes == 1_027_215_360
    assert weights.file_records == 1792


@pytest.mark.parametrize(
    ("bits", "size", "file", "header"),
    [
        (4, 128, 17_554_104_608, 273_696),
        (4, 32, 19_435_090_976, 274_464),
        (3, 128, 13_509_984_992, 273_120),
        (8, -1, 32_990_628_688, 274_256),
    ],
)
def test_gptq_files_of_llama_33b(bits: int, size: int, file: int, header: int) -> None:
    """Wizard-Vicuna-30B-Uncensored-GPTQ by TheBloke: sizes of its safetensors files, less their headers.

    AutoGPTQ wrote qweight, qzeros, scales, g_idx and a bias for each matrix: 60 x 7 x 5 + 123 = 2,223 tensors, whose
    headers take 123 bytes each.
    """
    config = dict(
        bits=bits,
        group_size=size,
        damp_percent=0.01,
        desc_act=True,
        sym=True,
        true_sequential=True,
        model_name_or_path=None,
        model_file_base_name="model",
        quant_method="gptq",
    )
    fields = dict(paramcalc.load("llama-33b").config) | {"torch_dtype": "float16"}

    assert memory(fields, config).weights.bytes == file - header
    assert header // 2223 in (122, 123)


# Qwen3.5 9B, as converted for MLX.
QWEN35 = dict(
    architectures=["Qwen3_5ForConditionalGeneration"],
    model_type="qwen3_5",
    tie_word_embeddings=False,
    quantization=dict(group_size=64, bits=8, mode="affine"),
    quantization_config=dict(group_size=64, bits=8, mode="affine"),
    text_config=dict(
        model_type="qwen3_5_text",
        dtype="bfloat16",
        hidden_size=4096,
        intermediate_size=12288,
        num_hidden_layers=32,
        layer_types=[*["linear_attention"] * 3, "full_attention"] * 8,
        num_attention_heads=16,
        num_key_value_heads=4,
        head_dim=256,
        linear_conv_kernel_dim=4,
        linear_key_head_dim=128,
        linear_num_key_heads=16,
        linear_num_value_heads=32,
        linear_value_head_dim=128,
        mtp_num_hidden_layers=1,
        vocab_size=248320,
    ),
    vision_config=dict(
        model_type="qwen3_5",
        depth=27,
        hidden_size=1152,
        in_channels=3,
        intermediate_size=4304,
        num_heads=16,
        num_position_embeddings=2304,
        out_hidden_size=4096,
        patch_size=16,
        spatial_merge_size=2,
        temporal_patch_size=2,
    ),
)


def test_qwen35_of_mlx() -> None:
    """Qwen3.5-9B-MLX-8bit: total_size of its index. Embedding and head are quantised, the tower is not."""
    weights = memory(QWEN35).weights

    assert weights.bytes == 10_426_433_504
    assert weights.by_category["vision"] + weights.by_category["projector"] == 2 * 456_010_480


def test_nvfp4_of_gemma4_leaves_attention_alone_layer_by_layer() -> None:
    """Of 60 layers 3 matrices of 21504 x 5376: half a byte, a byte for each 16 and two float32; all else bfloat16."""
    fields: dict[str, Any] = dict(
        model_type="gemma4",
        architectures=["Gemma4ForConditionalGeneration"],
        dtype="bfloat16",
        text_config=dict(
            model_type="gemma4_text",
            dtype="bfloat16",
            vocab_size=1024,
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=12,
            num_attention_heads=4,
            num_key_value_heads=2,
            num_global_key_value_heads=2,
            head_dim=32,
            global_head_dim=64,
            hidden_size_per_layer_input=0,
            vocab_size_per_layer_input=1024,
            enable_moe_block=False,
            attention_k_eq_v=False,
            num_kv_shared_layers=0,
            tie_word_embeddings=True,
        ),
        vision_config=None,
        audio_config=None,
    )
    ignore = ["lm_head", "model.embed_vision*", "model.vision_tower*"]
    config = dict(
        quant_method="modelopt",
        quant_algo="NVFP4",
        ignore=[*ignore, *(f"model.language_model.layers.{i}.self_attn*" for i in range(12))],
        kv_cache_scheme=dict(dynamic=False, num_bits=8, type="float"),
        config_groups=dict(group_0=dict(targets=["Linear"])),
    )
    fields["text_config"]["layer_types"] = [*["sliding_attention"] * 5, "full_attention"] * 2
    matrix = 256 * 128

    share = paramcalc.memory(
        paramcalc.load(fields | {"quantization_config": config}, text_only=True), context=1
    ).weights.by_format["nvfp4"]

    assert share.parameters == 12 * 3 * matrix
    assert share.bytes == 12 * 3 * (matrix // 2 + matrix // 16 + 4 + 4)


@pytest.mark.parametrize(("dynamic", "size"), [(False, 4 * 2 * 2), (True, 0)])
def test_scales_of_a_quantised_cache(dynamic: bool, size: int) -> None:
    """llm-compressor: k_scale and v_scale of each of four layers, in 16 bits."""
    scheme = dict(num_bits=8, type="float", strategy="tensor", symmetric=True, dynamic=dynamic)
    with_cache = memory(SMALL, W4A16 | {"kv_cache_scheme": scheme}).weights.bytes

    assert with_cache - memory(SMALL, W4A16).weights.bytes == size


# -- rules -----------------------------------------------------------------------------------------------------------


def nf4(skipped: list[str] | str) -> dict[str, Any]:
    return dict(
        quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_quant_type="nf4", llm_int8_skip_modules=skipped
    )


@pytest.mark.parametrize(
    ("skipped", "left"),
    [
        (["lm_head"], 4 * LAYER),
        ([], 4 * LAYER + 256 * 64),  # a list of one's own replaces the usual exception
        ("lm_head", 4 * LAYER),  # a word where a list is meant
        (["lm_head", "self_attn"], 4 * FFN),
        (["lm_head", "q_proj"], 4 * (LAYER - 64 * 64)),
        (["lm_head", "model.layers.0"], 3 * LAYER),
        (["lm_head", *(f"model.layers.{i}.mlp.down_proj" for i in (0, 2))], 4 * LAYER - 2 * 128 * 64),
        (["lm_head", "model.layers.*.mlp"], 4 * QKVO),
        (["lm_head", r".*mlp\.(up|down)_proj"], 4 * (LAYER - 2 * 128 * 64)),
        (["lm_head", r"model\.layers\.[0-1]\..*"], 2 * LAYER),
        (["lm_head", "qkv_proj"], 4 * (LAYER - 64 * 64 - 2 * 32 * 64)),  # fused: each of its parts
        (["lm_head", "*qkv_proj"], 4 * (LAYER - 64 * 64 - 2 * 32 * 64)),
        (["lm_head", "*v_proj"], 4 * (LAYER - 32 * 64)),  # not for what ends so because it is fused
        (["lm_head", r".*\.[kv]_proj$"], 4 * (LAYER - 2 * 32 * 64)),
        (["lm_head", ".*up_proj"], 4 * (LAYER - 128 * 64)),
        (["lm_head", "*gate_up_proj"], 4 * (LAYER - 2 * 128 * 64)),
    ],
)
def test_modules_that_are_left_out(skipped: list[str] | str, left: int) -> None:
    found = quantised(SMALL, nf4(skipped))

    assert found["nf4"] == left
    assert sum(found.values()) == 4 * LAYER + REST


def test_stages_know_the_numbers_of_their_layers() -> None:
    """Layer 2 is left out: in a pipeline of four it is the third stage's only one."""
    report = memory(SMALL, nf4(["lm_head", "model.layers.2"]), pipeline_parallel=4)
    sizes = [stage.weights_bytes for stage in report.per_device.stages]

    assert sizes[2] - sizes[1] == 2 * LAYER - LAYER * 9 // 16
    assert sum(sizes) == report.weights.bytes


def test_names_of_compressed_tensors_are_whole_names() -> None:
    """The module around others is listed too and means nothing: Qwen3.5's linear_attn."""
    config = W4A16 | {"ignore": ["lm_head", "model.layers.0.self_attn", "model.layers.1.mlp.up_proj"]}
    report = memory(SMALL, config)

    assert report.weights.by_format["w4a16-g128"].parameters == 4 * LAYER - 128 * 64
    assert report.warnings == ()


def test_a_rule_that_matches_nothing_is_said() -> None:
    (warning,) = memory(SMALL, nf4(["lm_head", "mlp.router", "model.layers.9.mlp"])).warnings

    assert "'mlp.router', 'model.layers.9.mlp'" in warning
    found = memory("gpt-oss-20b", nf4(["lm_head", "mlp.router", "vision_tower", "model.norm"])).warnings
    assert not any("match no tensor" in warning for warning in found)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("model.layers.0.mlp.gate", "layers.0-3.ffn.router.gate.weight"),
        ("re:.*mlp.gate$", "layers.0-3.ffn.router.gate.weight"),
        ("model.layers.3.block_sparse_moe.experts.7.w1", "layers.0-3.ffn.experts.expert.gate_proj.weight"),
        ("model.layers.1.mlp.experts.gate_up_proj", "layers.0-3.ffn.experts.expert.up_proj.weight"),
        ("model.layers.1.mlp.shared_expert.down_proj", "layers.0-3.ffn.shared_experts.down_proj.weight"),
        ("model.layers.2.linear_attn.in_proj_qkvz", "layers.0-3.attn.q_proj.weight"),
        ("transformer.h.2.attn.c_attn", "layers.0-3.attn.k_proj.weight"),
        ("gpt_neox.layers.2.attention.dense", "layers.0-3.attn.o_proj.weight"),
        ("model.layers.2.self_attn.kv_a_proj_with_mqa", "layers.0-3.attn.kv_a_proj.weight"),
        ("model.visual.blocks.2.attn.qkv", "vision_tower.layers.0-3.attn.v_proj.weight"),
        ("model.layers.61.mlp.up_proj", "mtp.layer.ffn.up_proj.weight"),
        ("mtp.fc", "mtp.proj.weight"),
    ],
)
def test_names_that_checkpoints_have(text: str, path: str) -> None:
    one, _ = name_pattern(text, exact=True)
    mixer: Category = "recurrent" if "linear_attn" in text else "attention"
    weight = Weight(path, (8, 8), mixer, layers=(range(4),), experts=8, kind="matrix")

    assert pattern_matches(one, module_names(weight, 61))
    assert not pattern_matches(one, module_names(weight._replace(name="layers.0-3.attn.q_norm.weight"), 61))


def test_rules_about_single_experts() -> None:
    """Of Mixtral's 8 experts in 32 layers two in one layer are left out."""
    names = [f"model.layers.5.block_sparse_moe.experts.{i}.w2" for i in (0, 7)]
    found = quantised("mixtral-8x7b", W4A16 | {"ignore": ["lm_head", *names]})
    whole = quantised("mixtral-8x7b", W4A16)

    assert whole["w4a16-g128"] - found["w4a16-g128"] == 2 * 4096 * 14336


# -- methods ---------------------------------------------------------------------------------------------------------

# q, k, v, o, gate, up and down: outputs, and inputs.
VALUES, ROWS, COLUMNS = 4 * LAYER, 4 * (64 + 32 + 32 + 64 + 128 + 128 + 64), 4 * (6 * 64 + 128)


@pytest.mark.parametrize(
    ("config", "size"),
    [
        # one group of 64 inputs a row, and one more for each of the down-projections' 4 x 64 rows
        (dict(quant_method="gptq", bits=4, group_size=64), VALUES // 2 + (ROWS + 256) * 5 // 2 + 4 * COLUMNS),
        (dict(quant_method="gptq", bits=8, group_size=-1), VALUES + ROWS * 3 + 4 * COLUMNS),
        (dict(quant_method="awq", bits=4, group_size=64, version="gemm"), VALUES // 2 + (ROWS + 256) * 5 // 2),
        (dict(quant_method="auto-round", bits=4, group_size=64), VALUES // 2 + (ROWS + 256) * 5 // 2),
        (
            dict(quant_method="auto-round", bits=4, group_size=64, packing_format="auto_round:auto_awq"),
            VALUES // 2 + (ROWS + 256) * 5 // 2,
        ),
        (dict(quant_method="bitsandbytes", load_in_8bit=True), VALUES + ROWS * 4),
        (dict(quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_quant_type="nf4"), VALUES * 9 // 16),
        # 128 blocks of 64 and fewer in each matrix: one second-level scale, a float32, for each of the 28
        (
            dict(
                quant_method="bitsandbytes",
                load_in_4bit=True,
                bnb_4bit_quant_type="nf4",
                bnb_4bit_use_double_quant=True,
            ),
            VALUES // 2 + VALUES // 64 + 28 * 4,
        ),
        (dict(quant_method="fp8"), VALUES + 28 * 4),
        (dict(quant_method="fp8", activation_scheme="static"), VALUES + 28 * 8),
        # one square for each of q, k, v and o, two for each of gate, up and down
        (dict(quant_method="fp8", weight_block_size=[64, 64]), VALUES + 4 * (4 + 6) * 4),
        (dict(quant_method="fbgemm_fp8"), VALUES + ROWS * 4),
        (dict(quant_method="eetq"), VALUES + ROWS * 2),
        (dict(quant_method="bitnet"), VALUES // 4 + 28 * 2),
        (
            dict(quant_method="hqq", quant_config=dict(weight_quant_params=dict(nbits=4, group_size=64))),
            VALUES * 9 // 16,
        ),
        (dict(quant_method="quanto", weights="int8"), VALUES + ROWS * 2),
        (dict(quant_method="metal", bits=4, group_size=64), VALUES * 9 // 16),
        (dict(quant_method="mxfp8"), VALUES * 33 // 32),
        (
            dict(
                quant_method="torchao",
                quant_type=dict(default=dict(_type="Int4WeightOnlyConfig", _data=dict(group_size=32))),
            ),
            VALUES * 5 // 8,
        ),
        (  # a float32 scale and an int8 zero for each output: torchao 0.18
            dict(
                quant_method="torchao",
                quant_type=dict(
                    default=dict(
                        _type="Int8WeightOnlyConfig",
                        _data=dict(granularity=dict(_type="PerRow", _data=dict(dim=-1)), group_size=None),
                    )
                ),
            ),
            VALUES + ROWS * 5,
        ),
        (
            dict(quant_method="aqlm", in_group_size=8, num_codebooks=1, nbits_per_codebook=8),
            VALUES // 8 + 28 * 4096 + ROWS * 2,
        ),
        (
            dict(
                quant_method="quark",
                global_quant_config=dict(weight=dict(dtype="fp4", qscheme="per_group", group_size=32)),
            ),
            VALUES * 17 // 32,
        ),
    ],
)
def test_bytes_of_methods(config: dict[str, Any], size: int) -> None:
    report = memory(SMALL, config)

    assert report.weights.bytes - 2 * REST == size
    assert [warning for warning in report.warnings if "does not state the dtype of the scales" not in warning] == []


@pytest.mark.parametrize(
    "method", ["vptq", "spqr", "higgs", "fp_quant", "fouroversix", "sinq", "gemma", "exl2", "nvfp4"]
)
def test_what_is_not_known_to_the_byte_is_an_estimate(method: str) -> None:
    report = memory(SMALL, dict(quant_method=method, bits=4, group_size=64))

    assert any("estimate" in warning for warning in report.warnings)
    assert report.weights.bytes < 2 * (4 * LAYER + REST)


@pytest.mark.parametrize("inside", [True, False], ids=["as V4.1 has it", "as V4 has it"])
def test_experts_of_deepseek_v4_are_in_four_bits_wherever_it_is_said(inside: bool) -> None:
    """Two values a byte and an exponent for 32; the scales of all else are exponents too."""
    fields: dict[str, Any] = dict(model_type="deepseek_v4", num_hidden_layers=2, torch_dtype="bfloat16")
    stated: dict[str, Any] = FP8 | {"scale_fmt": "ue8m0"}
    (stated if inside else fields)["expert_dtype"] = "fp4"
    sizes = dict(hidden_size=256, moe_intermediate_size=128, n_routed_experts=8)

    weights = memory(fields | sizes, stated).weights

    experts = 2 * 8 * 3 * 256 * 128
    assert (weights.by_format["mxfp4"].parameters, weights.by_format["mxfp4"].bytes) == (experts, experts * 17 // 32)
    assert weights.estimate


def test_embeddings_that_fp8_converts_too_are_an_estimate() -> None:
    stated = dict(quant_method="fp8", weight_block_size=[128, 128], modules_to_convert=["embed_tokens"])
    fields = dict(paramcalc.load("deepseek-v3").config)

    assert memory(fields, stated).weights.estimate
    assert not memory(fields, stated | {"modules_to_convert": None}).weights.estimate


def test_an_unknown_method_is_said_and_guessed_from_its_bits() -> None:
    guessed = memory(SMALL, dict(quant_method="brandnew", bits=4, group_size=64))
    unclear = memory(SMALL, dict(quant_method="brandnew"))

    assert "estimate" in guessed.warnings[0]
    assert guessed.weights.bytes == 2 * REST + VALUES // 2 + (ROWS + 256) * 2
    assert "is unknown" in unclear.warnings[0]
    assert "gguf" in memory(SMALL, dict(quant_method="gguf")).warnings[0]


def test_every_method_of_transformers_is_read() -> None:
    """Those of QuantizationMethod in transformers 5.24."""
    methods = [
        "bitsandbytes",
        "gptq",
        "awq",
        "aqlm",
        "vptq",
        "quanto",
        "eetq",
        "higgs",
        "hqq",
        "compressed-tensors",
        "fbgemm-fp8",
        "torchao",
        "gguf",
        "bitnet",
        "spqr",
        "fp8",
        "quark",
        "fp-quant",
        "auto-round",
        "mxfp4",
        "nvfp4",
        "mxfp8",
        "metal",
        "fouroversix",
        "sinq",
        "gemma",
    ]

    assert set(methods) <= set(METHODS)


def test_expressions_of_a_config_make_no_noise(recwarn: pytest.WarningsRecorder) -> None:
    """Python warns of what `[[` may mean one day; a section that is none says nothing about a cache."""
    report = memory(SMALL, dict(quant_method="eetq", modules_to_not_convert=["re:[[a]", "re:(", ".*{99999999999}"]))
    strange = memory(SMALL, dict(quant_method="brandnew", quantization=1.5))

    assert report.weights.by_format["eetq"].parameters == 4 * LAYER
    assert strange.kv_cache.dtype == "float16"
    assert not recwarn.list


@pytest.mark.parametrize(
    "config",
    [
        dict(quant_method="gptq", bits="four"),
        dict(quant_method="gptq", dynamic=[1]),
        dict(quant_method="fp8", weight_block_size=128),
        dict(quant_method="compressed-tensors", config_groups=[1]),
        dict(quant_method="mxfp4", modules_to_not_convert=3),
        dict(quant_method="hqq", quant_config="none"),
        dict(bits=4, group_size=0),
        dict(quant_method="mlx", bits=4, group_size=-64),
        dict(
            quant_method="torchao",
            quant_type=dict(default=dict(_type="Int4WeightOnlyConfig", _data=dict(group_size=0))),
        ),
        dict(quant_method="aqlm", out_group_size=0),
        dict(quant_method="aqlm", nbits_per_codebook=10**30),
    ],
)
def test_what_cannot_be_understood_is_an_error(config: dict[str, Any]) -> None:
    with pytest.raises(paramcalc.ParamcalcError) as raised:
        memory(SMALL, config)

    assert "--dtype" in (raised.value.hint or "")
    assert memory(SMALL, config, dtype="nf4").weights.bytes == 2 * REST + VALUES * 9 // 16


# -- overrides for single modules ------------------------------------------------------------------------------------


def test_gptqmodel_changes_modules_by_regular_expressions() -> None:
    dynamic = {r"-:.*\.k_proj": {}, r"+:model\.layers\.[0-1]\..*down.*": {"bits": 8}}
    found = quantised(SMALL, dict(quant_method="gptq", bits=4, group_size=64, dynamic=dynamic))

    assert found["gptq-int8-g64"] == 2 * 128 * 64
    assert found["gptq-int4-g64"] == 4 * (LAYER - 32 * 64) - 2 * 128 * 64


def test_gptq_with_its_head_and_with_some_modules_only() -> None:
    head = quantised(SMALL, dict(quant_method="gptq", bits=4, group_size=64, lm_head=True))
    inside = [["self_attn.q_proj", "self_attn.k_proj"], ["mlp.down_proj"]]
    some = quantised(SMALL, dict(quant_method="gptq", bits=4, group_size=64, modules_in_block_to_quantize=inside))

    assert head["gptq-int4-g64"] == 4 * LAYER + 256 * 64
    assert some["gptq-int4-g64"] == 4 * (64 * 64 + 32 * 64 + 128 * 64)


def test_autoround_has_other_bits_for_single_modules() -> None:
    extra = {"model.layers.0.mlp.up_proj": {"bits": 8}, "model.layers.3.self_attn.o_proj": {"bits": 16}}
    found = quantised(SMALL, dict(quant_method="auto-round", bits=4, group_size=64, extra_config=extra))

    assert found["autoround-int8-g64"] == 128 * 64
    assert found["autoround-int4-g64"] == 4 * LAYER - 128 * 64 - 64 * 64


def test_mlx_has_other_bits_for_single_modules() -> None:
    own = {"bits": 4, "group_size": 64, "model.layers.0.mlp.up_proj": {"bits": 8}, "lm_head": False}
    found = quantised(SMALL, own)

    assert found["mlx-int8-g64"] == 128 * 64
    assert found["mlx-int4-g64"] == 4 * LAYER - 128 * 64 + 256 * 64  # the embedding


def test_compressed_tensors_has_groups_by_targets() -> None:
    groups = dict(W4A16["config_groups"])
    weights: dict[str, Any] = dict(num_bits=8, type="float", strategy="channel", symmetric=True)
    groups["group_1"] = dict(targets=["re:.*down_proj"], format="float-quantized", weights=weights)
    found = quantised(SMALL, W4A16 | {"config_groups": groups})

    assert found["fp8-channel"] == 4 * 128 * 64
    assert found["w4a16-g128"] == 4 * (LAYER - 128 * 64)


def test_modelopt_with_an_algorithm_for_each_module() -> None:
    layers = {f"model.layers.{i}.mlp.{name}_proj": {"quant_algo": "NVFP4"} for i in range(4) for name in ("up", "down")}
    layers["model.layers.0.self_attn.q_proj"] = {"quant_algo": "FP8"}
    config = dict(quant_method="modelopt", quantization=dict(quant_algo="MIXED_PRECISION", quantized_layers=layers))
    found = quantised(SMALL, config)

    assert found["nvfp4"] == 4 * 2 * 128 * 64
    assert found["fp8"] == 64 * 64


# -- where it is said ------------------------------------------------------------------------------------------------


def test_a_file_beside_the_config(tmp_path: Path) -> None:
    """Llama 3.1 8B by ModelOpt: fp8 with a float32 for each matrix and for its input; the head stays as it is.

    The cache is in fp8, with a float32 for keys and one for values in each layer.
    """
    fields = dict(paramcalc.load("llama3.1-8b").config)
    (tmp_path / "config.json").write_text(json.dumps(fields))
    sidecar = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(sidecar))
    layers = 32 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 4096 * 14336)
    rest = 2 * 128_256 * 4096 + 65 * 4096

    for source in (tmp_path, tmp_path / "config.json"):
        assert memory(source).weights.bytes == layers + 32 * (7 * 8 + 2 * 4) + 2 * rest


def test_autogptqs_file_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    (tmp_path / "quantize_config.json").write_text(json.dumps({"bits": 4, "group_size": 64, "desc_act": False}))

    assert memory(tmp_path).weights.by_format["gptq-int4-g64"].parameters == 4 * LAYER


def test_a_section_of_a_section_speaks_of_its_language_model() -> None:
    """Qwen2.5-Omni's thinker: the model within is what is quantised."""
    text = SMALL | {"quantization_config": {"quant_method": "eetq"}}
    found, in_section = quantization_config({"thinker_config": {"text_config": text}})

    assert found == {"quant_method": "eetq"}
    assert in_section
    assert quantization_config(text) == ({"quant_method": "eetq"}, False)


def test_autoawqs_file_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    sidecar = {"zero_point": True, "q_group_size": 64, "w_bit": 4, "version": "GEMM"}
    (tmp_path / "quant_config.json").write_text(json.dumps(sidecar))

    assert memory(tmp_path).weights.by_format["awq-int4-g64"].parameters == 4 * LAYER


def test_the_config_itself_wins_over_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMALL | {"quantization_config": {"quant_method": "eetq"}}))
    (tmp_path / "quantize_config.json").write_text(json.dumps({"bits": 4, "group_size": 64, "desc_act": False}))

    assert "eetq" in memory(tmp_path).weights.by_format


def test_the_count_says_that_the_checkpoint_takes_other_bytes() -> None:
    model = paramcalc.load(SMALL | {"quantization_config": {"quant_method": "eetq"}})

    assert "eetq" in paramcalc.count(model).warnings[0]
    assert paramcalc.memory(model, context=1).warnings == ()


def test_a_format_that_is_asked_for_replaces_the_checkpoints() -> None:
    report = memory(SMALL, dict(quant_method="eetq"), dtype="bf16")

    assert list(report.weights.by_format) == ["bfloat16"]
    assert report.weights.bytes == 2 * (4 * LAYER + REST)
