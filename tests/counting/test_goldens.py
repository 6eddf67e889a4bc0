"""Every golden: what transformers builds, against what we count. See goldens/README.md."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import pytest

import paramcalc
from paramcalc.counting.count import count_figures
from paramcalc.families.registry import class_exists, get_family
from paramcalc.reports.shapes.count import CountReportDict, LayerRunDict
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


@pytest.mark.parametrize("family", COUNT.families)
def test_count_equals_the_reference(family: str) -> None:
    wrong = {name: found for name in COUNT.families[family] if (found := differences(name))}

    assert wrong == {}


def differences(name: str) -> dict[str, tuple[Any, Any]]:
    """The facts of a golden that are not ours: (ours, the reference's)."""
    golden = COUNT[name]
    model = paramcalc.load(golden["config"])
    figures = count_figures(model)
    part = "text_total" in golden and model.status != "exact"  # a part of a multimodal model, marked as such
    doubt = "are not" if part else APPROXIMATE.get(name) or golden.get("approximate")
    ours, theirs = facts(figures), reference(name, golden, part=part)
    wrong = {key: (ours[key], value) for key, value in theirs.items() if ours[key] != value}
    if (model.status == "exact") is not (doubt is None):
        wrong["status"] = (model.status, doubt)
    if doubt and not any(doubt in warning for warning in figures["warnings"][: 1 if part else None]):
        wrong["warnings"] = (figures["warnings"], doubt)
    stacks = layer_runs(figures["layers"])
    if "categories" in theirs and (missing := [runs for runs in golden["layers"].values() if runs not in stacks]):
        wrong["layers"] = (stacks, missing)
    return wrong


def facts(figures: CountReportDict) -> dict[str, Any]:
    """Our figures in the words of the goldens."""
    shares = {category: share["total"] for category, share in figures["components"].items()}
    parameters = figures["parameters"]
    return {
        "total": parameters["total"],
        "active": parameters["active"],
        "buffers": parameters["buffers"],
        "categories": towers_joined(shares),
        "tied": len(figures["tied"]),
    }


def reference(name: str, golden: dict[str, Any], *, part: bool) -> dict[str, Any]:
    """The facts that must be ours: of a part of a model, and where a checkpoint loads otherwise, the total alone."""
    if part:
        return {"total": golden["text_total"]}
    if name == "longt5/odd-5":  # as for T5, the head that the class ties by force is counted: 101 x 64
        return {"total": golden["total"] + 6_464}
    if "loaded_total" in golden:
        return {"total": golden["loaded_total"]}
    found = {
        "total": golden["total"],
        "active": golden["active"],
        "buffers": golden["buffers"],
        "categories": towers_joined(golden["categories"]),
        # A tied bias is one tensor with two names in the reference, and a single part here.
        "tied": sum(not alias.endswith(".bias") for alias, _ in golden["tied"]),
    }
    return {key: value for key, value in found.items() if value is not None}


def test_a_report_has_the_figures() -> None:
    """The goldens are compared with the figures behind the report, which take a tenth of its time."""
    models = [paramcalc.load(COUNT[names[0]]["config"]) for names in COUNT.families.values()]

    assert [m.family for m in models if paramcalc.count(m).model_dump(mode="json") != count_figures(m)] == []


def exact_total(config: dict[str, Any]) -> int | None:
    """Our total for a config; None where it is refused or marked approximate."""
    with contextlib.suppress(paramcalc.ParamcalcError):
        model = paramcalc.load(config)
        return count_figures(model)["parameters"]["total"] if model.status == "exact" else None
    return None


def layer_runs(layers: Iterable[LayerRunDict]) -> list[list[list[int]]]:
    """The layers of each stack as runs of [repeat, total]. Goldens name stacks by path, and leave some towers out."""
    stacks: dict[str, list[tuple[int, int]]] = {}
    for run in layers:
        stacks.setdefault(run["stack"], []).append((run["repeat"], run["total"]))
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
    config = COUNT[f"{family}/odd-1"]["config"]
    ours = {name: exact_total({**config, "architectures": [name]}) for name in EVERY_CLASS[family]}

    assert {name: total for name, total in ours.items() if total not in (None, EVERY_CLASS[family][name])} == {}


UNEVEN = json.loads((store.HERE / "uneven.json").read_text())


def uneven(family: str) -> Iterator[tuple[int, int | None]]:
    """The reference's total and ours for heads that do not divide a width; None where it is not exact."""
    config = COUNT[f"{family}/odd-1"]["config"]
    for section, changes, total in UNEVEN[family]:
        part = {k: v for k, v in (config[section] if section else config).items() if k != "head_dim"} | changes
        yield total, exact_total(config | {section: part} if section else part)


def test_heads_that_do_not_divide_the_width_are_exact_or_refused() -> None:
    totals = {family: list(uneven(family)) for family in UNEVEN}

    assert {
        name: pairs for name, pairs in totals.items() if any(ours not in (None, total) for total, ours in pairs)
    } == {}


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
            ours = exact_total((config | {section: part} if section else part) | {"architectures": [name]})
            if ours not in (None, total):
                wrong[golden, section, name] = ours, total

    assert wrong == {}


@pytest.mark.parametrize(
    "name", ["llama", "qwen2", "mixtral", "deepseek_v3", "gemma2", "gpt2", "bart", "roberta", "olmoe", "internvl"]
)
def test_an_activation_with_parameters_leaves_the_count_exact_where_the_reading_names_its_key(name: str) -> None:
    golden, section, key, _ = ACTIVATIONS[name][0]
    config = COUNT[f"{name}/{golden}"]["config"]
    part = (config[section] if section else config) | {key: "xielu"}

    assert paramcalc.load(config | {section: part} if section else part).status == "exact"


def unknown_classes(family: str) -> Iterator[str]:
    """Names of classes that a family does not have."""
    prefix = get_family(family).class_prefix
    names = ("SomethingElse", f"{prefix}ForMindReading", f"{prefix}VisionModel", f"{prefix}DoubleHeadsModel")
    return (name for name in names if not class_exists(family, name))


def test_a_class_that_nobody_has_is_not_exact() -> None:
    exact = []
    for family, names in COUNT.families.items():
        config = COUNT[names[0]]["config"]
        for name in unknown_classes(family):
            with contextlib.suppress(paramcalc.ParamcalcError):
                if paramcalc.load({**config, "architectures": [name]}).status != "approximate":
                    exact.append((family, name))

    assert exact == []
