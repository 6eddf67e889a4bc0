"""What real models have and tools count wrong: each kind once, with numbers from transformers or worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc
from paramcalc.base.errors import ParamcalcError
from paramcalc.reports.count import CountReport
from paramcalc.tree.containers import stacks

D, V, FFN = 64, 100, 96


LLAMA = {
    "model_type": "llama",
    "hidden_size": D,
    "intermediate_size": FFN,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": V,
    "dtype": "bfloat16",
}


FFN_AND_NORMS = 3 * D * FFN + 2 * D


def count(fields: Any, **overrides: Any) -> CountReport:
    return paramcalc.count(paramcalc.load(fields, overrides=overrides))


def llama_total(*, heads: int = 4, kv_heads: int = 2, head_dim: int = 16, layers: int = 2, tied: bool = False) -> int:
    attention = 2 * D * heads * head_dim + 2 * D * kv_heads * head_dim
    return layers * (attention + FFN_AND_NORMS) + D + V * D * (1 if tied else 2)


def test_the_head_is_counted_once_when_tied_and_once_more_when_not() -> None:
    assert count(LLAMA).parameters.total == llama_total()
    assert count(LLAMA, tie_word_embeddings=True).parameters.total == llama_total(tied=True)


def test_quantisation_never_changes_the_count() -> None:
    quantised = LLAMA | {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}

    assert count(quantised).parameters == count(LLAMA).parameters
    assert count(quantised).model.status == "exact"


def test_a_correction_bias_is_a_buffer() -> None:
    parameters = count("deepseek-v3").parameters

    assert parameters.buffers == 58 * 256


def test_shared_layers_count_once_and_run_often() -> None:
    albert = paramcalc.load("albert-base-v2")
    runs = [run for stack in stacks(albert.tree) for run in stack.runs]

    assert [(run.repeat, run.passes) for run in runs] == [(1, 12)]
    assert count("albert-base-v2").parameters.total == 11_221_680


def test_dense_layers_first_then_every_so_many() -> None:
    base = {"model_type": "transformer", "d_model": 8, "n_layers": 7, "n_heads": 2, "d_ff": 16}
    moe = {"experts": 3, "top_k": 1, "every": 2, "first_dense": 1}

    kinds = [(run.repeat, "experts" in run.kind) for run in count(base | {"moe": moe}).layers]

    assert kinds == [(2, False), (1, True), (1, False), (1, True), (1, False), (1, True)]


def test_an_adapter_is_not_a_model() -> None:
    with pytest.raises(ParamcalcError, match="describes an adapter"):
        paramcalc.load({"peft_type": "LORA", "base_model_name_or_path": "x"})
