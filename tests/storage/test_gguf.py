"""GGUF files against what llama.cpp's converter and llama-quantize make of the same configs: goldens/gguf/README.md."""

from __future__ import annotations

from collections import defaultdict

import pytest

import paramcalc
from paramcalc.storage.gguf import GgufFile, gguf_file, is_gguf
from paramcalc.storage.gguf.architectures import ARCHITECTURES
from paramcalc.storage.gguf.type_rules import more_bits
from paramcalc.storage.gguf.types import FTYPE_BASES, GGUF_TYPES, ftype
from tests.goldens.store import GGUF

GUIDED = ("IQ3_XXS", "IQ4_NL", "IQ4_XS", "Q4_0", "Q5_0")  # the kinds of file that an importance matrix changes
# Compared without the multi-token-prediction layers that their checkpoints have and their configs do not describe.
WITHOUT_MTP = {"qwen3_5_text", "qwen3_5_moe_text", "qwen3_next"}
LLAMA3 = {"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336}
LLAMA3 |= {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}
ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA31 = LLAMA3 | {"rope_scaling": ROPE | {"original_max_position_embeddings": 8192}}


def histogram(file: GgufFile) -> dict[str, list[int]]:
    """{type: [tensors, bytes]}."""
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for one in file.stored:
        found[one.format][0] += one.tensors
        found[one.format][1] += one.bytes
    return dict(sorted(found.items()))


@pytest.mark.parametrize("family", GGUF.families)
def test_every_type_is_as_the_tool_writes_it(family: str) -> None:
    for name in GGUF.families[family]:
        assert_same_types(name)


def assert_same_types(name: str) -> None:
    """Types, bytes and refusals of one golden, with an importance matrix and without."""
    golden = GGUF[name]
    model = paramcalc.load(golden["config"])
    written = [kind for kind, found in golden["types"].items() if found]
    files = {kind: gguf_file(model, f"gguf-{kind}") for kind in written}
    asked = {kind: golden["with_imatrix"].get(kind) for kind in golden["imatrix"]}  # no other file is ever written
    assert {kind: histogram(file) for kind, file in files.items()} == {
        kind: asked.get(kind) or golden["types"][kind] for kind in written
    }
    assert [kind for kind, file in files.items() if "importance matrix" in str(file.notes)] == golden["imatrix"]
    assert all("multi-token-prediction" in doubt for doubt in files["Q4_K_M"].estimate_reasons)
    assert files["Q4_K_M"].exact or name.partition("/")[0] in WITHOUT_MTP
    guided = {kind: histogram(gguf_file(model, kind, imatrix=True)) for kind in GUIDED}
    assert guided == {kind: golden["with_imatrix"].get(kind, golden["types"][kind]) for kind in GUIDED}
    for kind in set(golden["types"]) - set(written):
        with pytest.raises(paramcalc.ParamcalcError, match="cannot write this model"):
            gguf_file(model, f"gguf-{kind}")


def test_every_architecture_was_compared() -> None:
    assert set(GGUF.families) == set(ARCHITECTURES)


def test_every_type_of_the_tool_is_compared() -> None:
    assert {kind for golden in GGUF.values() for kind in golden["types"]} == set(FTYPE_BASES)


@pytest.mark.parametrize(
    ("name", "elements", "size"),
    [
        # ggml's static assertions on its blocks: sizeof(block_q4_K) == 2 * 2 + 12 + 256 / 2, and so on.
        ("Q4_0", 32, 2 + 16),
        ("Q5_1", 32, 2 * 2 + 4 + 16),
        ("Q8_0", 32, 2 + 32),
        ("MXFP4", 32, 1 + 16),
        ("Q2_K", 256, 2 * 2 + 256 // 16 + 256 // 4),
        ("Q3_K", 256, 2 + 256 // 4 + 256 // 8 + 12),
        ("Q4_K", 256, 2 * 2 + 12 + 256 // 2),
        ("Q5_K", 256, 2 * 2 + 12 + 256 // 2 + 256 // 8),
        ("Q6_K", 256, 2 + 256 // 16 + 3 * 256 // 4),
        ("IQ2_XXS", 256, 2 + 256 // 8 * 2),
        ("IQ4_XS", 256, 2 + 2 + 256 // 64 + 256 // 2),
    ],
)
def test_blocks(name: str, elements: int, size: int) -> None:
    assert GGUF_TYPES[name].block_elements == elements
    assert GGUF_TYPES[name].block_bytes == size


# Sizes of the files in bartowski/Meta-Llama-3.1-8B-Instruct-GGUF at bf5b95e.
PUBLISHED = {
    "Q8_0": 8_540_775_840,
    "Q6_K": 6_596_011_424,
    "Q5_K_M": 5_732_992_416,
    "Q5_K_S": 5_599_298_976,
    "Q4_K_M": 4_920_739_232,
    "Q4_K_S": 4_692_673_952,
    "Q3_K_L": 4_321_961_376,
    "Q3_K_M": 4_018_922_912,
    "Q3_K_S": 3_664_504_224,
    "Q2_K": 3_179_136_416,
    "IQ2_M": 2_948_285_856,
    "IQ3_M": 3_784_828_320,
    "IQ3_XS": 3_518_752_160,
    "IQ4_NL": 4_677_993_888,
    "IQ4_XS": 4_447_667_616,
}
HEADER = 7_840_928


@pytest.mark.parametrize(("name", "size"), PUBLISHED.items())
def test_published_files_differ_by_one_header(name: str, size: int) -> None:
    """They were made with an importance matrix; the tokenizer and the names of the tensors are the same in all."""
    file = gguf_file(paramcalc.load(LLAMA31), name, imatrix=True)
    assert size - file.padded_bytes == HEADER


def test_parameters_are_those_of_the_model() -> None:
    file = gguf_file(paramcalc.load(LLAMA31), "Q4_K_M")
    assert sum(one.parameters for one in file.stored) == 8_030_261_248
    assert {one.category for one in file.stored if one.format == "Q4_K"} == {"embedding", "attention", "ffn"}
    # 64 rope frequencies are a tensor of the file, but no parameters.
    assert [(one.tensors, one.parameters, one.bytes) for one in file.stored if one.category == "other"] == [(1, 0, 256)]


@pytest.mark.parametrize("name", ["q4_k_m", "Q4_K_M", "gguf-q4_k_m", "GGUF-Q4_K_M", "q4_k"])
def test_types_are_found_in_any_case(name: str) -> None:
    assert is_gguf(name)
    assert ftype(name) == "Q4_K_M"


@pytest.mark.parametrize("name", ["f16", "bf16", "float16", "int4", "nf4", "fp8"])
def test_other_formats_are_not_gguf(name: str) -> None:
    assert not is_gguf(name)


def test_floats_of_gguf_say_so() -> None:
    assert is_gguf("gguf-f16")
    assert ftype("gguf-bf16") == "BF16"


def test_an_unknown_type_names_the_nearest() -> None:
    with pytest.raises(paramcalc.ParamcalcError, match="unknown GGUF type 'q4_k_x'") as error:
        gguf_file(paramcalc.load(LLAMA3), "q4_k_x")
    assert "Q4_K" in str(error.value.hint)


def test_what_was_not_compared_is_an_estimate() -> None:
    file = gguf_file(paramcalc.load({"model_type": "bert"}), "q8_0")
    assert not file.exact
    assert "bert was not compared with llama.cpp" in file.estimate_reasons[0]
    assert 0.9 < file.bytes * 8 / 8.5 / paramcalc.count(paramcalc.load({"model_type": "bert"})).parameters.total < 1.1


REFUSED = [
    (
        {"model_type": "qwen3_moe", "mlp_only_layers": [0], "num_hidden_layers": 2},
        "does not support ffn_down, ffn_gate, ffn_up in the architecture",
    ),
    (
        {"model_type": "phi", "qk_layernorm": True, "num_hidden_layers": 2},
        "does not support k_norm, q_norm in the architecture",
    ),
    (
        {"model_type": "cohere", "tie_word_embeddings": False, "num_hidden_layers": 2},
        "does not support output in the architecture",
    ),
    (
        {"model_type": "falcon", "bias": True, "num_hidden_layers": 2},
        "does not support attn_qkv.bias in the architecture",
    ),
    ({"model_type": "falcon", "multi_query": False, "num_hidden_layers": 2}, "does not support multi_query: False"),
    ({"model_type": "gpt2", "add_cross_attention": True, "n_layer": 2}, "a layer has more than one attn_"),
]


@pytest.mark.parametrize(("fields", "doubt"), REFUSED)
def test_a_model_that_the_converter_refuses_is_an_estimate(fields: dict[str, object], doubt: str) -> None:
    file = gguf_file(paramcalc.load(fields), "q8_0")
    assert not file.exact
    assert doubt in " ".join(file.estimate_reasons)


def test_multi_token_prediction_that_is_kept_is_an_estimate() -> None:
    fields = {"model_type": "glm4_moe", "num_hidden_layers": 3}  # one such layer where the config does not say
    with_mtp = gguf_file(paramcalc.load(fields), "q4_k_m")
    without = gguf_file(paramcalc.load({**fields, "num_nextn_predict_layers": 0}), "q4_k_m")
    assert "multi-token-prediction layers are in the file" in with_mtp.estimate_reasons[0]
    assert with_mtp.bytes > without.bytes
    assert without.exact


def test_a_classifier_is_an_estimate() -> None:
    fields = {**LLAMA3, "architectures": ["LlamaForSequenceClassification"], "num_labels": 2}
    assert not gguf_file(paramcalc.load(fields), "q8_0").exact


def test_what_is_left_out_is_said() -> None:
    model = paramcalc.load({"model_type": "deepseek_v3", "num_nextn_predict_layers": 1})
    assert "not in this file: multi-token-prediction layers" in gguf_file(model, "q8_0").notes


def test_a_type_without_fallback_is_refused() -> None:
    fields = {**LLAMA3, "hidden_size": 96, "head_dim": 128}
    with pytest.raises(paramcalc.ParamcalcError, match="cannot write this model as Q1_0"):
        gguf_file(paramcalc.load(fields), "q1_0")


def test_more_bits_for_the_first_and_last_eighth_and_every_third_between() -> None:
    # Of 32 layers: 0-3, 28-31, and 6, 9, ..., 27.
    assert [i for i in range(32) if more_bits(i, 32)] == [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]


def test_scalars_are_tensors_of_one_element() -> None:
    fields = {"model_type": "apertus", "num_hidden_layers": 1}  # four numbers in each layer's activation
    assert gguf_file(paramcalc.load(fields), "q4_k_m").bytes > 0


@pytest.mark.parametrize("name", ["t5-small", "bart-base", "bert-base-uncased", "albert-base-v2"])
def test_an_estimate_has_each_parameter_once(name: str) -> None:
    """Layers of an encoder are no tensors beside those of a decoder."""
    model = paramcalc.load(name)
    file = gguf_file(model, "q8_0")

    assert not file.exact
    assert sum(one.parameters for one in file.stored) == paramcalc.count(model).parameters.total


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt2", "mixtral", "deepseek_v2", "lfm2", "jamba", "qwen3_next"])
def test_no_parameter_is_lost(family: str) -> None:
    """Experts stacked, projections fused, latent attention split: still as many parameters."""
    for name in GGUF.families[family]:
        model = paramcalc.load(GGUF[name]["config"])
        if model.config.get("tie_word_embeddings", True) is False and family == "gemma2":
            continue  # llama.cpp leaves its output matrix out
        stored = sum(one.parameters for one in gguf_file(model, "q4_k_m").stored)
        assert stored == paramcalc.count(model).parameters.total
