"""Every golden: what transformers builds, against what we count. See goldens/README.md."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import paramcalc

GOLDENS = Path(__file__).parent / "goldens"
CASES = sorted(GOLDENS.glob("*/*.json"))

# Goldens whose config says something that its class ignores: the count is the class's, and marked approximate.
APPROXIMATE = {
    "bloom/odd-4": "key 'n_inner' was not used",
    "deepseek_v2/default": "num_experts_per_tok is not stated",
    "deepseek_v2/odd-3": "moe_layer_freq is not 1",
    "deepseek_v3/odd-2": "key 'mlp_bias' was not used",
    "deepseek_v3/odd-3": "moe_layer_freq is not 1",
    "deepseek_v3/seqcls": "key 'mlp_bias' was not used",
    "granitemoe/odd-3": "key 'num_experts' was not used",
    "mistral/odd-3": "key 'attention_bias' was not used",
    "mixtral/odd-3": "key 'attention_bias' was not used",
    "mpt/odd-2": "which it ignores",
    "mpt/odd-3": "which it ignores",
    "mpt/seqcls": "which it ignores",
    "phi3/odd-3": "key 'attention_bias' was not used",
    "t5/odd-2": "tie_word_embeddings is false",
}


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(), object_hook=_floats)


def _floats(fields: dict[str, Any]) -> Any:
    return float(fields["__float__"]) if set(fields) == {"__float__"} else fields


def merged(runs: list[tuple[int, int]]) -> list[list[int]]:
    """[repeat, total] runs, neighbours with equal totals joined."""
    return [[sum(repeat for repeat, _ in group), total] for total, group in groupby(runs, key=lambda run: run[1])]


def case_id(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", CASES, ids=case_id)
def test_count_equals_the_reference(path: Path) -> None:
    golden, name = read(path), case_id(path)

    report = paramcalc.count(paramcalc.load(golden["config"]))

    counted = golden.get("loaded_total") or golden.get("text_total") or golden["total"]
    assert report.parameters.total == counted
    doubts = [text for text in report.warnings if "names no dtype" not in text]
    if "text_total" in golden:
        assert report.model.status == "approximate"
        assert "towers and projectors are not" in report.warnings[0]
        return
    expected = APPROXIMATE.get(name) or golden.get("approximate")
    if expected:
        assert any(expected in doubt for doubt in doubts), doubts
        assert report.model.status == "approximate"
    else:
        assert (report.model.status, doubts) == ("exact", [])
    if "loaded_total" in golden:
        return
    assert {category: share.total for category, share in report.components.items()} == golden["categories"]
    assert report.parameters.buffers == golden["buffers"]
    if golden["active"] is not None:
        assert report.parameters.active == golden["active"]
    layers: dict[str, list[tuple[int, int]]] = {}
    for run in report.layers:
        layers.setdefault(run.stack, []).append((run.repeat, run.total))
    assert {stack: merged(runs) for stack, runs in layers.items()} == golden["layers"]
    # A tied bias is one tensor with two names in the reference, and a single part here.
    assert len(report.tied) == sum(not alias.endswith(".bias") for alias, _ in golden["tied"])


def test_every_approximate_golden_exists() -> None:
    assert set(APPROXIMATE) <= {case_id(path) for path in CASES}


def test_goldens_never_come_from_paramcalc() -> None:
    for script in GOLDENS.glob("*.py"):
        assert "import paramcalc" not in script.read_text()
        assert "from paramcalc" not in script.read_text()


@pytest.mark.parametrize("block", read(GOLDENS / "torch_blocks.json")["blocks"], ids=str)
def test_blocks_equal_torch_transformer_encoder_layers(block: dict[str, Any]) -> None:
    config = {
        "model_type": "transformer",
        "d_model": block["d_model"],
        "n_layers": 1,
        "n_heads": block["nhead"],
        "d_ff": block["dim_feedforward"],
        "norm": "layer" if block["bias"] else "rms",  # without bias torch's LayerNorm has a scale alone
        "norm_position": "pre" if block["norm_first"] else "post",
        "bias": block["bias"],
    }

    report = paramcalc.count(paramcalc.load(config))

    assert report.parameters.total == block["total"]
    assert {name: share.total for name, share in report.components.items()} == {
        name: block[name] for name in ("attention", "ffn", "norm")
    }
