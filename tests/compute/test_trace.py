"""A walk through a layer: shapes, parameters, work and bytes, step by step."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

import pytest

import paramcalc
from paramcalc.compute.flops import flops_figures
from paramcalc.compute.trace import trace_figures
from paramcalc.compute.workload import check_workload
from paramcalc.counting.count import count_figures
from paramcalc.reports.shapes.trace import TraceBlockDict
from paramcalc.reports.trace import TraceBlock, TraceReport
from paramcalc.sources.presets import preset_names
from tests.conftest import Run
from tests.goldens.store import COUNT

# The example of the texts: batch 2, 5 tokens, width 32, 4 heads.
EXAMPLE = {
    "model_type": "transformer",
    "d_model": 32,
    "n_layers": 2,
    "n_heads": 4,
    "d_ff": 128,
    "vocab_size": 100,
    "norm": "layer",
    "bias": True,
    "dtype": "float32",
}


def traced(source: Any, **asked: Any) -> TraceReport:
    return paramcalc.trace(paramcalc.load(source), **asked)


def layers(report: TraceReport) -> list[TraceBlock]:
    return [block for block in report.blocks if block.layers]


def test_the_shapes_of_the_worked_example() -> None:
    """(2, 5, 32) -> (2, 4, 5, 8) -> (2, 5, 32), and the two sums give back what came in."""
    (layer,) = layers(traced(EXAMPLE, tokens=5, batch=2))

    assert [(step.name, step.shape) for step in layer.steps] == [
        ("attn_norm", (2, 5, 32)),
        ("attn.q_proj", (2, 5, 32)),
        ("attn.k_proj", (2, 5, 32)),
        ("attn.v_proj", (2, 5, 32)),
        ("attn.split_q", (2, 4, 5, 8)),
        ("attn.split_k", (2, 4, 5, 8)),
        ("attn.split_v", (2, 4, 5, 8)),
        ("attn.scores", (2, 4, 5, 5)),
        ("attn.mixing", (2, 4, 5, 8)),
        ("attn.merge", (2, 5, 32)),
        ("attn.o_proj", (2, 5, 32)),
        ("add", (2, 5, 32)),
        ("ffn_norm", (2, 5, 32)),
        ("ffn.up_proj", (2, 5, 128)),
        ("ffn.activation", (2, 5, 128)),
        ("ffn.down_proj", (2, 5, 32)),
        ("add", (2, 5, 32)),
    ]
    assert layer.shape_in == layer.shape_out == (2, 5, 32)
    assert [step.note for step in layer.steps if step.add] == ["input + attn", "last sum + ffn"]


def test_what_the_steps_of_the_worked_example_take() -> None:
    """A matrix of 32 x 32 and its bias; 2 x 10 tokens x 32 x 32; 2 x 2 x 4 heads x 25 pairs x 8; keys in 4 bytes."""
    (layer,) = layers(traced(EXAMPLE, tokens=5, batch=2))
    steps = {step.name: step for step in layer.steps}

    assert (steps["attn.q_proj"].parameters, steps["attn.q_proj"].flops) == (1056, 20_480)
    assert steps["attn.scores"].flops == steps["attn.mixing"].flops == 3_200
    assert (steps["ffn.up_proj"].parameters, steps["ffn.up_proj"].flops) == (4_224, 81_920)
    assert steps["attn.k_proj"].kept_bytes == steps["attn.v_proj"].kept_bytes == 2 * 5 * 32 * 4
    assert steps["attn.q_proj"].kept_bytes == 0


def test_one_new_token_sees_what_is_cached() -> None:
    (layer,) = layers(traced(EXAMPLE, tokens=1, context=9))
    steps = {step.name: step for step in layer.steps}

    assert steps["attn.split_q"].shape == (1, 4, 1, 8)
    assert steps["attn.split_k"].shape == (1, 4, 9, 8)
    assert steps["attn.scores"].shape == (1, 4, 1, 9)
    assert steps["attn.k_proj"].kept_bytes == 9 * 32 * 4


def test_a_recurrence_makes_its_state_and_a_convolution_keeps_its_inputs() -> None:
    """Mamba 130M: 16 float32 for each of 1,536 channels, and four inputs of each; Qwen3-Next: 32 heads of 128 x 128."""
    mamba = {step.name: step.kept_bytes for step in layers(traced("mamba-130m", tokens=5, batch=2))[0].steps}
    assert {name: kept for name, kept in mamba.items() if kept} == {
        "mixer.scan": 2 * 1536 * 16 * 4,
        "mixer.conv1d": 2 * 1536 * 4 * 4,
    }
    for tokens, context, step in ((5, 5, "attn.delta_rule"), (1, 9, "attn.delta_rule_step")):
        delta = {
            s.name: s.kept_bytes for s in layers(traced("qwen3-next-80b-a3b", tokens=tokens, context=context))[0].steps
        }
        assert delta[step] == 32 * 128 * 128 * 4
        assert delta["attn.o_proj"] == 0


@pytest.mark.parametrize("name", ["llama3-8b", "deepseek-v2-lite", "gemma3-1b", "jamba-v0.1", "mamba-codestral-7b"])
def test_what_all_steps_keep_is_what_memory_says(name: str) -> None:
    report = traced(name, tokens=5, context=600, batch=2)
    kept = paramcalc.memory(paramcalc.load(name), context=600, batch=2)

    told = sum(layer.caches * step.kept_bytes for layer in layers(report) for step in layer.steps)
    assert told == kept.kv_cache.bytes + kept.state.bytes


@pytest.mark.parametrize(
    "family", ["blip", "blt", "cpmant", "diffusion_gemma", "funnel", "git", "hrm_text", "perceiver", "zamba", "zamba2"]
)
def test_layers_keep_as_often_as_they_do_so_apart(family: str) -> None:
    """Weights that run again, passes that overwrite each other, encoders' layers that see one token after the other."""
    config = COUNT[f"{family}/default"]["config"]
    model = paramcalc.load(config)
    report = paramcalc.trace(model, tokens=64, batch=2)
    kept = paramcalc.memory(model, context=64, batch=2)

    told = sum(block.caches * step.kept_bytes for block in report.blocks for step in block.steps)
    assert told == kept.kv_cache.bytes + kept.state.bytes


def test_experts_have_an_axis_of_their_own() -> None:
    (layer,) = layers(traced("mixtral-8x7b", tokens=5, batch=2))
    steps = {step.name: step for step in layer.steps}

    assert steps["ffn.router.gate"].shape == (2, 5, 8)
    assert steps["ffn.choice"].shape == (2, 5, 2)
    assert steps["ffn.experts.expert.up_proj"].shape == (2, 5, 2, 14336)
    assert steps["ffn.experts.expert.down_proj"].shape == (2, 5, 2, 4096)
    assert steps["ffn.weighted_sum"].shape == (2, 5, 4096)
    assert steps["ffn.experts.expert.up_proj"].parameters == 8 * 4096 * 14336
    assert steps["ffn.experts.expert.up_proj"].flops == 2 * 10 * 2 * 4096 * 14336


@pytest.mark.parametrize(
    ("model", "sums"),
    [
        ("llama3-8b", ["input + attn", "last sum + ffn"]),
        ("gemma2-2b", ["input + post_attn_norm", "last sum + post_ffn_norm"]),  # norms before and after
        ("olmo2-7b", ["input + post_attn_norm", "last sum + post_ffn_norm"]),  # norms after alone
        ("bert-base-uncased", ["input + attn", "last sum + ffn"]),  # and then the norm
        ("gpt-j-6b", ["input + attn + ffn"]),  # one norm for both
        ("pythia-14m", ["input + attn + ffn"]),  # a norm for each
        ("falcon-7b", ["input + attn + ffn"]),
        ("mamba-130m", ["input + mixer"]),
    ],
)
def test_where_residuals_are_added(model: str, sums: list[str]) -> None:
    layer = layers(traced(model, tokens=3))[0]

    assert [step.note for step in layer.steps if step.add] == sums


def test_the_norm_of_bert_follows_the_sum_and_that_of_olmo2_comes_before_it() -> None:
    for model, norm, place in (("bert-base-uncased", "attn_norm", 1), ("olmo2-7b", "post_attn_norm", -1)):
        steps = [step.name for step in layers(traced(model, tokens=3))[0].steps]
        assert steps[steps.index("add") + place] == norm


@pytest.mark.parametrize("model", preset_names())
def test_rows_add_up_to_the_model(model: str) -> None:
    """Layers times their kind: all parameters of the language model, and all work; what comes in goes out."""
    loaded, asked = paramcalc.load(model), check_workload(tokens=7)
    blocks = trace_figures(loaded, asked)["blocks"]

    counted = count_figures(paramcalc.load(model, text_only=True))
    assert sum(block["layers"] for block in blocks) == sum(run["repeat"] for run in counted["layers"])
    parameters = [(block["layers"] or 1) * sum(step["parameters"] for step in block["steps"]) for block in blocks]
    assert sum(parameters) == counted["parameters"]["total"]
    assert flops_of(blocks) == flops_figures(loaded, asked)["forward"]["total"]
    assert [block for block in blocks if block["layers"] and block["shape_in"] != block["shape_out"]] == []


def flops_of(blocks: Iterable[TraceBlockDict]) -> int:
    """The steps of all layers, as often as a token passes through them."""
    return sum((block["passes"] or 1) * sum(step["flops"] for step in block["steps"]) for block in blocks)


def test_the_command_in_every_format(run: Run) -> None:
    code, out, _ = run("trace", "--preset", "llama3-8b", "--batch", "2", "--tokens", "5")
    assert code == 0
    assert "(2, 32, 5, 128)" in out
    assert "+ residual" in out
    assert json.loads(run("trace", "llama3-8b", "--tokens", "5", "--json")[1])["blocks"][1]["layers"] == 32
    rows = list(csv.DictReader(io.StringIO(run("trace", "llama3-8b", "--tokens", "5", "--format", "csv")[1])))
    assert rows[1]["shape"] == "(1, 5, 4096)"
    assert run("trace", "llama3-8b", "--tokens", "5", "--format", "markdown")[1].startswith("| model |")


@pytest.mark.parametrize("name", [name for name in COUNT if name.endswith("/odd-1")])
def test_every_family_can_be_walked_through(name: str) -> None:
    model, asked = paramcalc.load(COUNT[name]["config"]), check_workload(tokens=6, batch=2)

    assert flops_of(trace_figures(model, asked)["blocks"]) == flops_figures(model, asked)["forward"]["total"]


def test_the_norm_of_a_latent_is_not_of_the_rotary_key_beside_it() -> None:
    """DeepSeek-V3: 512 latent channels are normed, 64 rotary ones are not (2412.19437, equations 1 to 3)."""
    report = traced("deepseek-v3", tokens=5, batch=2)
    shapes = {step.name: step.shape or () for block in layers(report) for step in block.steps}
    assert shapes["attn.kv_a_proj"][-1] == 576
    assert shapes["attn.kv_a_norm"][-1] == 512
    assert shapes["attn.q_a_norm"][-1] == 1536


def test_only_models_are_traced() -> None:
    with pytest.raises(paramcalc.ParamcalcError, match="trace wants a Model, not a str"):
        paramcalc.trace("llama3-8b", tokens=5)  # type: ignore[arg-type]
