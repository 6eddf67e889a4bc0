"""Notes on what is saved next to a config.json: Dense layers of sentence-transformers, and adapters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcalc

EMBEDDINGGEMMA = {
    "architectures": ["Gemma3TextModel"],
    "model_type": "gemma3_text",
    "dtype": "float32",
    "hidden_size": 768,
    "intermediate_size": 1152,
    "num_hidden_layers": 24,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "vocab_size": 262144,
}
LLAMA3_8B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}
ALL_MATRICES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
LORA = {"peft_type": "LORA", "r": 16, "target_modules": ALL_MATRICES, "base_model_name_or_path": "x", "bias": "none"}


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def module(path: str, kind: str) -> dict[str, str]:
    return {"name": path, "path": path, "type": f"sentence_transformers.models.{kind}"}


def with_dense(folder: Path, *dense: Any, transformer: str = "") -> Path:
    """embeddinggemma-300m as sentence-transformers saves it; the path of its config.json."""
    paths = [f"{i}_Dense" for i in range(2, 2 + len(dense))]
    modules = [module(transformer, "Transformer"), module("1_Pooling", "Pooling")]
    write(folder, "modules.json", [*modules, *(module(path, "Dense") for path in paths)])
    for path, content in zip(paths, dense, strict=True):
        write(folder, f"{path}/config.json", content)
    return write(folder, f"{transformer}/config.json".strip("/"), EMBEDDINGGEMMA)


UP = {"in_features": 768, "out_features": 3072, "bias": False, "activation_function": "torch.nn.Identity"}
DOWN = {**UP, "in_features": 3072, "out_features": 768}


@pytest.mark.parametrize("whole_folder", [True, False])
def test_dense_layers_of_sentence_transformers_are_noted(tmp_path: Path, whole_folder: bool) -> None:
    """2 x 768 x 3072; with them the model has 307,581,696 parameters, published as 308M."""
    path = with_dense(tmp_path, UP, DOWN)
    model = paramcalc.load(tmp_path if whole_folder else path)

    assert (paramcalc.count(model).parameters.total, model.status) == (302_863_104, "exact")
    assert model.warnings == (
        "modules.json next to the config lists 2 Dense layers with 4,718,592 parameters, which are not counted",
    )


def test_a_transformer_in_a_folder_of_its_own_has_the_note_too(tmp_path: Path) -> None:
    """A bias by default: 768 x 3072 + 3072."""
    path = with_dense(tmp_path, {"in_features": 768, "out_features": 3072}, transformer="0_Transformer")

    assert "lists 1 Dense layer with 2,362,368 parameters" in paramcalc.load(path).warnings[0]


@pytest.mark.parametrize("dense", ["{", {}, {**UP, "in_features": "768"}, {**UP, "bias": None}, [1]])
def test_a_dense_layer_that_cannot_be_read_is_named(tmp_path: Path, dense: Any) -> None:
    model = paramcalc.load(with_dense(tmp_path, UP, dense))

    assert "lists 2 Dense layers whose sizes cannot be read" in model.warnings[0]


@pytest.mark.parametrize("modules", ["{", {}, [1], [module("", "Transformer"), module("1_Pooling", "Pooling")]])
def test_other_modules_have_no_note(tmp_path: Path, modules: Any) -> None:
    write(tmp_path, "modules.json", modules)

    assert paramcalc.load(write(tmp_path, "config.json", EMBEDDINGGEMMA)).warnings == ()


def test_a_path_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "config.json", UP)
    modules = [module("", "Transformer"), module("../", "Dense")]
    write(tmp_path, "folder/modules.json", modules)

    assert "cannot be read" in paramcalc.load(write(tmp_path, "folder/config.json", EMBEDDINGGEMMA)).warnings[0]


def warnings_with(folder: Path, adapter: Any, config: dict[str, Any] = LLAMA3_8B) -> tuple[str, ...]:
    write(folder, "adapter_config.json", adapter)
    return paramcalc.load(write(folder, "config.json", config)).warnings


@pytest.mark.parametrize(
    ("changes", "parameters"),
    [
        ({}, "of rank 16 with 41,943,040 parameters"),  # "trainable params: 41,943,040" in many logs of Llama 3 8B
        ({"r": 8, "target_modules": ["q_proj", "v_proj"]}, "of rank 8 with 3,407,872 parameters"),
    ],
)
def test_an_adapter_next_to_the_config_is_noted(tmp_path: Path, changes: dict[str, Any], parameters: str) -> None:
    assert warnings_with(tmp_path, {**LORA, **changes}) == (
        f"adapter_config.json next to the config describes an adapter {parameters}; it is not counted",
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"peft_type": "IA3"},
        {"r": None},
        {"target_modules": "all-linear"},
        {"target_modules": ["qkv_proj"]},
        {"target_modules": [["q_proj"]]},
        {"modules_to_save": ["lm_head"]},
        {"rank_pattern": {"q_proj": 4}},
        {"use_dora": True},
    ],
)
def test_an_adapter_of_other_parameters_is_noted_without_them(tmp_path: Path, changes: dict[str, Any]) -> None:
    (warning,) = warnings_with(tmp_path, {**LORA, **changes})

    assert "describes an adapter whose parameters are not known" in warning


def test_an_adapter_that_cannot_be_read_is_noted(tmp_path: Path) -> None:
    assert "whose parameters are not known" in warnings_with(tmp_path, "{")[0]


def test_an_adapter_of_experts_is_noted_without_its_parameters(tmp_path: Path) -> None:
    config = {"model_type": "mixtral", "hidden_size": 64, "num_attention_heads": 8, "torch_dtype": "bfloat16"}

    assert "not known" in warnings_with(tmp_path, LORA, config)[0]
