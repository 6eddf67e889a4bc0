"""The keyword arguments that type checkers and help() show are the fields of `Assumptions`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

import paramcalc
from paramcalc.assumptions import AssumptionOptions, Assumptions


def test_the_options_are_the_assumptions_with_a_default() -> None:
    options, fields = get_type_hints(AssumptionOptions), get_type_hints(Assumptions)

    assert AssumptionOptions.__required_keys__ == frozenset()
    assert options == {name: fields[name] for name in Assumptions.fields if name not in Assumptions.required}
    assert list(options) == list(Assumptions.fields)[1:]


@pytest.mark.parametrize("function", [paramcalc.memory, paramcalc.fit, paramcalc.scale, paramcalc.design])
def test_help_shows_every_option(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters

    assert {name: parameters[name].default for name in get_type_hints(AssumptionOptions)} == {
        name: default for name, default in Assumptions.fields.items() if name not in Assumptions.required
    }
    assert all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in parameters.values())
