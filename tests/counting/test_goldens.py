"""Every golden: what transformers builds, against what we count. See goldens/README.md."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest

import paramcalc
from paramcalc.families.registry import class_exists, get_family
from paramcalc.reports.count import CountReport
from tests.goldens import store
from tests.goldens.store import COUNT

# Goldens whose config says something that its class ignores: the count is the class's, and marked approximate.
APPROXIMATE = {
    "bloom/odd-4": "unrecognised key 'n_inner' ignored",
    "deepseek_v2/default": "num_experts_per_tok is not stated",
    "deepseek_v2/odd-3": "moe_layer_freq is not 1",
    "deepseek_v3/odd-2": "unrecognised key 'mlp_bias' ignored",
    "deepseek_v3/odd-3": "moe_layer_freq is not 1",
    "deepseek_v3/seqcls": "unrecognised key 'mlp_bias' ignored",
    "distilbert/odd-4": "unrecognised key 'intermediate_size' ignored",
    "glm4_moe_lite/odd-6": "asks for what Glm4MoeLiteForCausalLM does not build",
    "granitemoe/odd-3": "unrecognised key 'num_experts' ignored",
    "longt5/odd-5": "tie_word_embeddings is false",
    "mimo_v2_flash/odd-5": "asks for what MiMoV2FlashForCausalLM does not build",
    "mistral/odd-3": "unrecognised key 'attention_bias' ignored",
    "mixtral/odd-3": "unrecognised key 'attention_bias' ignored",
    "mpt/odd-2": "which it ignores",
    "mpt/odd-3": "which it ignores",
    "mpt/seqcls": "which it ignores",
    "phi3/odd-3": "unrecognised key 'attention_bias' ignored",
    "t5/odd-2": "tie_word_embeddings is false",
}


def merged(runs: list[tuple[int, int]]) -> list[list[int]]:
    """[repeat, total] runs, neighbours with equal totals joined."""
    return [[sum(repeat for repeat, _ in group), total] for total, group in groupby(runs, key=lambda run: run[1])]


@pytest.mark.parametrize("name", COUNT)
def test_count_equals_the_reference(name: str) -> None:
    golden = COUNT[name]

    report = paramcalc.count(paramcalc.load(golden["config"]))

    exact = report.model.status == "exact"
    if "text_total" in golden and not exact:  # a part of a model that sees or hears, marked as such
        assert report.parameters.total == golden["text_total"]
        assert "are not" in report.warnings[0]
        return
    if name == "longt5/odd-5":  # as for T5, the head that the class ties by force is counted: 101 x 64
        golden["loaded_total"] = golden["total"] + 6_464
    assert report.parameters.total == golden.get("loaded_total", golden["total"])
    doubt = APPROXIMATE.get(name) or golden.get("approximate")
    assert exact is (doubt is None), report.warnings
    assert doubt is None or any(doubt in warning for warning in report.warnings)
    if "loaded_total" in golden:
        return
    shares = {category: share.total for category, share in report.components.items()}
    assert towers_joined(shares) == towers_joined(golden["categories"])
    assert report.parameters.buffers == golden["buffers"]
    if golden["active"] is not None:
        assert report.parameters.active == golden["active"]
    ours = layer_runs(report)
    assert all(stack in ours for stack in golden["layers"].values())
    # A tied bias is one tensor with two names in the reference, and a single part here.
    assert len(report.tied) == sum(not alias.endswith(".bias") for alias, _ in golden["tied"])


def layer_runs(report: CountReport) -> list[list[list[int]]]:
    """The layers of each stack as runs of [repeat, total]. Goldens name stacks by path, and leave some towers out."""
    stacks: dict[str, list[tuple[int, int]]] = {}
    for run in report.layers:
        stacks.setdefault(run.stack, []).append((run.repeat, run.total))
    return [merged(runs) for runs in stacks.values()]


def towers_joined(categories: dict[str, int]) -> dict[str, int]:
    """Towers and what joins them to the text as one: where the one ends and the other begins is a matter of taste."""
    joined = {name: total for name, total in categories.items() if name not in ("vision", "projector")}
    return joined | {"towers": categories.get("vision", 0) + categories.get("projector", 0)}


def test_every_approximate_golden_exists() -> None:
    assert set(APPROXIMATE) <= set(COUNT)


@pytest.mark.parametrize("block", store.read(store.HERE / "torch_blocks.jsonl").values(), ids=str)
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


# Keys of published files (Qwen3-Coder, MiniMax-M2.7, GLM-5.2, Gemma 4, Nemotron-H, Qwen3.6) that no class looks at.
NOT_LOOKED_AT: dict[str, tuple[str | None, dict[str, Any]]] = {
    "qwen3_moe/odd-1": (None, {"use_qk_norm": True, "shared_expert_intermediate_size": 0}),
    "minimax_m2/odd-1": (None, {"attn_type_list": [1, 1]}),
    "glm_moe_dsa/odd-1": (None, {"index_share_for_mtp_iteration": True, "moe_router_dtype": "float32"}),
    "gemma4/odd-4": ("vision_config", {"default_output_length": 280, "global_head_dim": 72, "video_seq_length": 70}),
    "nemotron_h/odd-1": (None, {"attention_head_dim": 128, "time_step_rank": 512}),
    "qwen3_5/odd-1": ("text_config", {"language_model_only": False, "output_gate_type": "swish"}),
}


@pytest.mark.parametrize("name", sorted(NOT_LOOKED_AT))
def test_keys_that_the_class_does_not_look_at_leave_the_count_exact(name: str) -> None:
    golden = COUNT[name]
    section, keys = NOT_LOOKED_AT[name]
    (golden["config"][section] if section else golden["config"]).update(keys)
    model = paramcalc.load(golden["config"])

    assert model.status == "exact", model.warnings
    assert paramcalc.count(model).parameters.total == golden["total"]


EVERY_CLASS = json.loads((store.HERE / "every_class.json").read_text())


@pytest.mark.parametrize("family", sorted(EVERY_CLASS))
def test_no_class_of_a_family_is_exact_and_wrong(family: str) -> None:
    config, wrong = COUNT[f"{family}/odd-1"]["config"], {}
    for name, total in EVERY_CLASS[family].items():
        with contextlib.suppress(paramcalc.ParamcalcError):  # refused
            report = paramcalc.count(paramcalc.load({**config, "architectures": [name]}))
            if report.model.status == "exact" and report.parameters.total != total:
                wrong[name] = report.parameters.total

    assert not wrong


UNEVEN = json.loads((store.HERE / "uneven.json").read_text())


def uneven(family: str) -> Iterator[tuple[int, int | None]]:
    """The reference's total and ours for heads that do not divide a width; None where it is not exact."""
    config = COUNT[f"{family}/odd-1"]["config"]
    for section, changes, total in UNEVEN[family]:
        part = {k: v for k, v in (config[section] if section else config).items() if k != "head_dim"} | changes
        ours = None
        with contextlib.suppress(paramcalc.ParamcalcError):
            model = paramcalc.load(config | {section: part} if section else part)
            ours = paramcalc.count(model).parameters.total if model.status == "exact" else None
        yield total, ours


@pytest.mark.parametrize("family", sorted(UNEVEN))
def test_heads_that_do_not_divide_the_width_are_exact_or_refused(family: str) -> None:
    assert all(ours in (None, total) for total, ours in uneven(family))


@pytest.mark.parametrize(
    "family", ["qwen2", "qwen2_moe", "mixtral", "granite", "cohere", "phi3", "smollm3", "starcoder2", "internvl", "blt"]
)
def test_heads_that_do_not_divide_the_width_are_rounded_down_where_the_class_does(family: str) -> None:
    assert any(ours == total for total, ours in uneven(family))


def test_the_heads_of_davit_change_no_shape() -> None:
    golden = COUNT["florence2/odd-1"]
    fields = golden["config"] | {"vision_config": {"num_heads": [5] * 4, "num_groups": [7] * 4}}
    model = paramcalc.load(fields)

    assert (paramcalc.count(model).parameters.total, model.status) == (golden["total"], "exact")


def test_a_width_that_is_kept_whatever_the_heads_is_counted_and_said_not_to_run() -> None:
    """Qwen2-VL's towers join queries, keys and values in one matrix of three widths; 68,578,368 by transformers."""
    text = {"vocab_size": 97, "hidden_size": 192, "intermediate_size": 64, "num_hidden_layers": 4}
    heads = {"num_attention_heads": 6, "num_key_value_heads": 1}
    vision = {"depth": 2, "hidden_size": 192, "num_heads": 12}
    fields = {"model_type": "qwen2_vl", "text_config": text | heads, "vision_config": vision}
    model = paramcalc.load(fields | {"tie_word_embeddings": True})

    assert (paramcalc.count(model).parameters.total, model.status) == (68_578_368, "exact")
    assert any("vision_config.num_heads (12) does not divide the width (1280)" in words for words in model.warnings)


ACTIVATIONS = json.loads((store.HERE / "activations.json").read_text())


@pytest.mark.parametrize("family", sorted(ACTIVATIONS))
def test_an_activation_with_parameters_is_counted_in_every_ffn(family: str) -> None:
    wrong = {}
    for golden, section, key, totals in ACTIVATIONS[family]:
        config = COUNT[f"{family}/{golden}"]["config"]
        part = (config[section] if section else config) | {key: "xielu"}
        for name, total in totals.items():
            whole = (config | {section: part} if section else part) | {"architectures": [name]}
            with contextlib.suppress(paramcalc.ParamcalcError):  # refused
                report = paramcalc.count(paramcalc.load(whole))
                if report.model.status == "exact" and report.parameters.total != total:
                    wrong[golden, section, name] = report.parameters.total, total

    assert not wrong


@pytest.mark.parametrize(
    "name", ["llama", "qwen2", "mixtral", "deepseek_v3", "gemma2", "gpt2", "bart", "roberta", "olmoe", "internvl"]
)
def test_an_activation_with_parameters_leaves_the_count_exact_where_the_reading_names_its_key(name: str) -> None:
    golden, section, key, _ = ACTIVATIONS[name][0]
    config = COUNT[f"{name}/{golden}"]["config"]
    part = (config[section] if section else config) | {key: "xielu"}

    assert paramcalc.load(config | {section: part} if section else part).status == "exact"


@pytest.mark.parametrize("family", COUNT.families)
def test_a_class_that_nobody_has_is_not_exact(family: str) -> None:
    config = COUNT[COUNT.families[family][0]]["config"]
    prefix = get_family(family).class_prefix
    for name in ("SomethingElse", f"{prefix}ForMindReading", f"{prefix}VisionModel", f"{prefix}DoubleHeadsModel"):
        if class_exists(family, name):
            continue
        with contextlib.suppress(paramcalc.ParamcalcError):
            assert paramcalc.load({**config, "architectures": [name]}).status == "approximate"
