"""The functions of the package: arguments of another kind, and what their errors say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import paramcalc
from paramcalc.base.errors import ParamcalcError
from paramcalc.reports.count import CountReport

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


def count(fields: Any, **overrides: Any) -> CountReport:
    return paramcalc.count(paramcalc.load(fields, overrides=overrides))


@pytest.mark.parametrize(
    "arguments",
    [
        {"overrides": 5},
        {"overrides": [("a", 1)]},
        {"overrides": {5: 5}},
        {"as_family": 5},
        {"as_family": Path("llama")},
    ],
)
def test_arguments_of_another_kind_are_refused_as_our_errors(arguments: dict[str, Any]) -> None:
    with pytest.raises(ParamcalcError):
        paramcalc.load(LLAMA, **arguments)


def test_a_dtype_that_is_no_name_is_said_to_be_none() -> None:
    report = count({**LLAMA, "dtype": 5})
    assert any("dtype is not the name of a dtype" in warning for warning in report.warnings)


def test_a_family_is_found_in_any_case() -> None:
    assert paramcalc.count(paramcalc.load(LLAMA, as_family="GPT2")).model.family == "gpt2"


def test_a_config_object_says_what_its_fields_are() -> None:
    class Config:
        def to_dict(self) -> dict[str, Any]:
            return LLAMA

    assert paramcalc.load(Config()).tree == paramcalc.load(LLAMA).tree
    with pytest.raises(ParamcalcError, match="a type is not a model"):
        paramcalc.load(Config)  # type: ignore[arg-type]
