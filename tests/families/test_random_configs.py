"""New random odd configs for every family, built by transformers and compared: `pytest -m oracle [--seed N]`.

Needs torch and transformers (CPU); not part of the default run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import paramcalc
from paramcalc.counting.count import count_figures
from paramcalc.families.registry import index
from tests.conftest import ROOT
from tests.counting.test_goldens import layer_runs

pytestmark = pytest.mark.oracle
CONFIGS_PER_FAMILY = 3


@pytest.fixture(scope="module")
def odd() -> Any:
    """The module that draws odd configs, which imports transformers."""
    pytest.importorskip("transformers")
    from tests.goldens import odd

    return odd


@pytest.fixture(scope="module")
def oracle(odd: Any) -> Any:
    """The module that builds and measures."""
    return odd.oracle


def test_class_defaults_are_those_of_transformers() -> None:
    pytest.importorskip("transformers")
    command = [sys.executable, "-m", "tests.goldens.defaults", "--check"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", [name for name in index() if name != "transformer"])
def test_random_odd_configs(name: str, odd: Any, oracle: Any, seed: int) -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if name not in CONFIG_MAPPING:
        pytest.skip("not in transformers")
    for config in odd.draw(name, seed, CONFIGS_PER_FAMILY):
        fields = json.loads(json.dumps({"model_type": name, **config}, default=str))
        truth = oracle.measure(fields)
        model = paramcalc.load(fields)
        if model.status == "approximate":
            continue
        figures = count_figures(model)
        total, active = figures["parameters"]["total"], figures["parameters"]["active"]
        assert total == truth["total"], fields
        assert active in (truth["active"], total), fields
        ours = layer_runs(figures["layers"])
        assert all(stack in ours for stack in truth["layers"].values()), fields
        assert len(figures["tied"]) == sum(not alias.endswith(".bias") for alias, _ in truth["tied"]), fields
