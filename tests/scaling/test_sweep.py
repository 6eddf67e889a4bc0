"""Sweeps: exact figures at every point, and points that cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

import paramcalc
from paramcalc.base.errors import ConfigError
from paramcalc.scaling.scaling_rules import (
    changes_for_shape,
)
from paramcalc.scaling.search import largest_inside
from tests.conftest import Run

TUTORIAL = "tutorial-110m"


# -- sweeps -------------------------------------------------------------------------------------------------------


def test_groups_of_layers_go_on_layer_by_layer() -> None:
    """GPT-Neo writes its layers as [[["global", "local"], 12]]; its class with twice as many has 2,524,026,880."""
    report = paramcalc.scale("gpt-neo-1.3b", {"depth": [3, 48]})

    assert report.rows[0].fields["attention_types"] == [[["global", "local", "global"], 1]]
    assert report.rows[1].parameters is not None
    assert report.rows[1].parameters.total == 2_524_026_880


def test_depth_is_linear_and_width_quadratic() -> None:
    """The tutorial's own case: 110 M to 194 M by doubling the depth, to 389 M by doubling the width."""
    report = paramcalc.scale(TUTORIAL, {"depth": [12, 24], "width": [768, 1536]}, context=1024)
    totals = [row.parameters.total for row in report.rows if row.parameters]

    assert totals == [109_529_856, 388_929_024, 194_482_944, 728_704_512]
    layers = [row.parameters.non_embedding - row.at["width"] for row in report.rows if row.parameters]  # no final norm
    assert layers[2] == 2 * layers[0]


def test_points_have_the_figures_of_count_memory_and_flops() -> None:
    """One engine behind every command: a point's figures are those of the model by itself."""
    report = paramcalc.scale("mixtral-8x7b", {"depth": [32]}, context=4096, gpu="h100")
    model = paramcalc.load("mixtral-8x7b")
    counted, stored = paramcalc.count(model), paramcalc.memory(model, context=4096)
    (row,) = report.rows

    assert row.parameters is not None
    assert row.parameters.model_dump() == {
        "total": counted.parameters.total,
        "active": counted.parameters.active,
        "non_embedding": counted.parameters.non_embedding,
        "embedding": counted.components["embedding"].total,
    }
    assert row.weights is not None
    assert row.weights.bytes == stored.weights.bytes == 93_405_585_408
    assert row.kv_cache is not None
    assert row.kv_cache.bytes_per_token == 131_072
    assert row.flops is not None
    assert row.flops.forward_per_token == paramcalc.flops(model, tokens=1, context=4096).forward.total
    assert row.latency is not None
    assert row.latency.estimate


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        ("llama3-8b", [{"hidden_size": 2048}, {"hidden_size": 512, "num_hidden_layers": 3}, {"vocab_size": 999}]),
        ({"model_type": "gpt2", "n_embd": 96}, [{"n_embd": 768}, {"hidden_size": 192}, {"num_hidden_layers": 2}]),
        ("gpt-oss-20b", [{"num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]}]),
        ("gemma2-9b", [{"sliding_window": None}, {"sliding_window": 64, "num_hidden_layers": 3}]),
        (
            "deepseek-v3",
            [{"n_shared_experts": None}, {"n_shared_experts": 2}, {"hidden_size": 64, "q_lora_rank": None}],
        ),
        (
            {"model_type": "gemma3", "text_config": {"hidden_size": 512}},
            [
                {"text_config.hidden_size": 768},
                {"text_config": {"hidden_size": 256}},
                {"text_config": {"hidden_size": 256}, "text_config.hidden_size": 1024},
            ],
        ),
    ],
)
def test_a_point_is_the_model_that_a_file_with_its_fields_describes(config: Any, changes: list[Any]) -> None:
    """What a sweep reads once of all its points is the same as what `load` reads of one."""
    base = paramcalc.load(config)
    build = base.variants.builder()
    for some in [*changes, *reversed(changes), {}]:
        alone = paramcalc.load(base.variants.changed_fields(some))
        assert build(some) == alone.tree


def test_a_point_without_a_model_leaves_the_next_ones_as_they_are() -> None:
    build = paramcalc.load("llama3-8b").variants.builder()
    good = build({"hidden_size": 1024})
    for _ in range(2):
        with pytest.raises(ConfigError, match="hidden_size must be at least 1"):
            build({"hidden_size": 0})
        assert build({"hidden_size": 1024}) == good


def test_a_list_of_sizes_by_layer_follows_width_and_depth_at_once() -> None:
    assert changes_for_shape({"d": 8, "d_ff": [8, 16] * 2}, {"n": 2, "d_ff": [4, 8]}, 2) == {
        "d": 8,
        "n": 2,
        "d_ff": [8, 16],
    }
    base = {"model_type": "gemma3n_text", "hidden_size": 64, "num_hidden_layers": 4, "num_kv_shared_layers": 0}
    rows = paramcalc.scale(base | {"intermediate_size": [128] * 4}, {"depth": [2, 6], "width": [128]}).rows
    assert [row.fields["intermediate_size"] for row in rows] == [[256] * 2, [256] * 6]
    assert all(row.valid for row in rows)


@pytest.mark.parametrize("near", [0, 1, 5, 99, 100, 101, 4000])
def test_the_turn_is_found_from_wherever_the_search_begins(near: int) -> None:
    assert largest_inside(lambda count: count <= 100, near) == 100
    assert largest_inside(lambda count: count < 0, near) == 0


def test_a_step_reads_the_weights_that_its_tokens_use_and_the_caches() -> None:
    """Llama 3 8B by hand: all but the looked-up embedding in 2 bytes, 1,024 MiB of cache at 8k, 3,350 GB/s."""
    (row,) = paramcalc.scale("llama3-8b", {"depth": [32]}, gpu="h100").rows

    assert row.latency is not None
    assert row.latency.moved_bytes == 2 * (8_030_261_248 - 128_256 * 4096) + 2**30
    assert row.latency.memory_ns == 4_801_071
    assert row.latency.launch_ns == 32 * 8 * 2_500
    assert row.latency.step_ns == 5_441_071


@pytest.mark.parametrize(("batch", "experts"), [(1, 2.0), (2, 3.5), (4, 5.46875), (64, 8.0)])
def test_a_batch_reads_the_experts_that_any_of_its_tokens_picks(batch: int, experts: float) -> None:
    """Mixtral: of eight experts two tokens leave (3/4)^2 idle, four (3/4)^4; 45.1 B parameters are experts'."""
    (row,) = paramcalc.scale("mixtral-8x7b", {"depth": [32]}, gpu="h100", batch=batch, context=1).rows
    routed = 8 * 32 * 3 * 4096 * 14336

    assert row.latency is not None
    weights = 2 * (46_702_792_704 - 32_000 * 4096 - routed + routed * experts / 8)
    assert row.latency.moved_bytes == pytest.approx(weights + batch * 131_072, rel=1e-8)


def test_an_encoder_has_no_decoding_step() -> None:
    (row,) = paramcalc.scale("bert-base-uncased", {"depth": [12]}, gpu="h100").rows

    assert row.latency is None


def test_none_is_a_word_where_a_field_has_it(run: Run) -> None:
    code, out, _ = run("scale", TUTORIAL, "--sweep", "positions=rope,none", "--json")

    assert code == 0
    assert [row["parameters"]["total"] for row in json.loads(out)["rows"]] == [109_529_856, 109_529_856]


def test_a_tied_head_is_read_whole() -> None:
    (row,) = paramcalc.scale(TUTORIAL, {"depth": [12]}, gpu="h100", context=1).rows

    assert row.latency is not None
    assert row.latency.moved_bytes == 2 * 109_529_856 + 36 * 1024


@pytest.mark.parametrize("name", ["deepseek-v3", "gemma3-27b-text", "qwen3-next-80b-a3b", "t5-base", "bert-base-cased"])
def test_every_kind_of_model_can_be_a_base(name: str) -> None:
    model = paramcalc.load(name)
    depth = next(v.value for k, v in model.variants.values().items() if k in ("num_hidden_layers", "encoder_layers"))
    (row,) = paramcalc.scale(model, {"depth": [depth]}).rows

    assert row.problem is None
    assert row.parameters is not None
    assert row.parameters.total == paramcalc.count(model).parameters.total


def test_a_sweep_of_any_field_with_its_impossible_points() -> None:
    report = paramcalc.scale("llama3-8b", {"num_key_value_heads": [8, 5, 32], "d_ff": [14336]})

    assert [row.valid for row in report.rows] == [True, False, True]
    assert "not divisible by num_key_value_heads (5)" in (report.rows[1].problem or "")
    assert report.rows[0].parameters is not None
    assert report.rows[0].parameters.total == 8_030_261_248
    assert report.rows[2].fields == {"num_key_value_heads": 32, "intermediate_size": 14336}


@pytest.mark.parametrize(
    "grid", [{}, {"depth": []}, {"depth": [0]}, {"width": ["x"]}, {"nosuch": [1]}, {"depth": "12"}]
)
def test_grids_that_are_not_understood_are_errors(grid: dict[str, Any]) -> None:
    with pytest.raises(paramcalc.ParamcalcError):
        paramcalc.scale(TUTORIAL, grid)


# -- published ladders --------------------------------------------------------------------------------------------


def test_a_field_is_swept_under_the_name_that_the_file_has() -> None:
    """`--sweep` takes what `--set` takes: Mixtral's own name for what recipes call num_experts (8 -> 46.7 B)."""
    found = [paramcalc.scale("mixtral-8x7b", {name: [8]}).rows[0] for name in ("num_local_experts", "n_experts")]
    assert [row.parameters.total for row in found if row.parameters] == [46_702_792_704] * 2


@pytest.mark.parametrize(
    ("grid", "problem"),
    [
        ({"depth": 8}, "depth: no values to sweep"),
        ({"width": "64"}, "width: no values to sweep"),
        ({"depth": [2], "n_layers": [3]}, "n_layers is the same axis as depth"),
        ({"width": [512], "hidden_size": [64]}, "hidden_size is the same axis as width"),
        ({"d_ff": [64], "intermediate_size": [96]}, "intermediate_size is the same axis as d_ff"),
        ({"dtype": ["float32"]}, "dtype cannot vary between points"),
    ],
)
def test_grids_that_say_nothing_or_two_things_are_refused(grid: Any, problem: str) -> None:
    with pytest.raises(paramcalc.ParamcalcError, match=f"^{problem}"):
        paramcalc.scale("llama3-8b", grid)


def test_a_quantised_base_has_no_dtype_of_its_own() -> None:
    """The fp8 file of DeepSeek-V3, whose bytes are 627 GiB; in bfloat16 they are twice as many."""
    stored, plain = (paramcalc.scale("deepseek-v3", {"depth": [61]}, dtype=dtype) for dtype in (None, "bfloat16"))
    assert (stored.assumptions.dtype, plain.assumptions.dtype) == (None, "bfloat16")
    assert stored.rows[0].weights is not None
    assert stored.rows[0].weights.bytes == 673_150_611_808


def test_a_device_that_is_only_a_size_has_no_time() -> None:
    report = paramcalc.scale("llama3-8b", {"depth": [32]}, gpu="24GiB")

    assert report.warnings == ("24GiB: unknown bandwidth, so no step time is estimated",)
    assert report.rows[0].latency is not None
    assert report.rows[0].latency.step_ns is None
    assert paramcalc.scale("llama3-8b", {"depth": [32]}, gpu="h100").warnings == ()
