"""Which matrices the methods convert that go by torch.nn.Linear: as many weights as transformers' own quantisers."""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc
from paramcalc.assumptions import assume
from paramcalc.loading.facts import checkpoint_facts, verified_linears
from paramcalc.storage import weights
from tests.goldens.store import COUNT, LINEAR

INT8 = dict(quant_method="bitsandbytes", load_in_8bit=True)
MIXTRAL = dict(
    model_type="mixtral",
    vocab_size=256,
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    num_local_experts=4,
    torch_dtype="bfloat16",
)
ATTENTION, EXPERTS = 3 * (2 * 64 * 64 + 2 * 32 * 64), 3 * 4 * 3 * 96 * 64


def fields(key: str) -> dict[str, Any]:
    found: dict[str, Any] = COUNT[key]["config"]
    return found


def converted(config: dict[str, Any], quantization: dict[str, Any]) -> tuple[int, bool]:
    """Weights that are quantised, and whether bytes are an estimate."""
    model = paramcalc.load(config | {"quantization_config": quantization})
    plan = weights.storage_plan(model, assume(context=1))
    return sum(one.parameters for one in plan.stored if one.layout is not None and one.layout.extras), plan.estimate


@pytest.mark.parametrize("family", [family for family in LINEAR.families if family in verified_linears()])
def test_as_many_weights_as_transformers_converts(family: str) -> None:
    names = LINEAR.families[family]
    found = {name: converted(fields(name) | {"transformers_version": "5.24.0"}, INT8)[0] for name in names}

    assert found == {name: LINEAR[name]["linear"] + LINEAR[name]["conv1d"] for name in names}


def test_every_family_that_is_named_was_compared() -> None:
    assert set(LINEAR.families) >= verified_linears()
    assert {key.partition("/")[0] for key, found in LINEAR.items() if found["conv1d"]} <= {
        name for name in LINEAR.families if checkpoint_facts(name).conv1d_matrices
    }


@pytest.mark.parametrize("method", ["torchao", "quanto"])
def test_gpts_own_class_is_converted_by_bitsandbytes_alone(method: str) -> None:
    stated = dict(quant_method=method, weights="int8", quant_type="int8_weight_only")

    assert converted(fields("gpt2/odd-1"), stated)[1]
    assert not converted(fields("gpt2/odd-1"), INT8)[1]


@pytest.mark.parametrize(
    ("version", "parameters", "estimate"),
    [("5.24.0", ATTENTION, False), ("4.57.1", ATTENTION + EXPERTS, True), (None, ATTENTION + EXPERTS, True)],
)
def test_experts_are_no_modules_since_transformers_5(version: str | None, parameters: int, estimate: bool) -> None:
    assert converted(MIXTRAL | {"transformers_version": version}, INT8) == (parameters, estimate)


@pytest.mark.parametrize(
    ("skipped", "estimate"),
    [
        (["lm_head", "q_proj", "mlp.down_proj", "model.layers.1", r".*\.self_attn\..*"], False),
        (["self_attn"], True),
        (["layers.1"], True),
    ],
)
def test_a_module_within_a_path_may_be_left_out_or_not(skipped: list[str], estimate: bool) -> None:
    """transformers 5 looks at the beginning and the end of a name (should_convert_module), 4 looked inside."""
    assert converted(fields("llama/odd-1"), INT8 | {"llm_int8_skip_modules": skipped})[1] is estimate


def test_what_was_not_compared_is_an_estimate() -> None:
    """Falcon's matrices are of a class of its own; a classifier's head may be converted or not."""
    assert converted(fields("falcon/odd-1"), INT8)[1]
    assert converted(fields("llama/odd-1") | {"architectures": ["LlamaForSequenceClassification"]}, INT8)[1]
    assert not converted(fields("llama/odd-1"), INT8)[1]
