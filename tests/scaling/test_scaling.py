"""Sweeps and designs: the rules of widening, exact figures at every point, and budgets met by bisection."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import paramcalc
from paramcalc.base.errors import ConfigError
from paramcalc.cli import progress
from paramcalc.config.schema import FieldValue
from paramcalc.scaling.model_series import LADDERS
from paramcalc.scaling.scaling_rules import (
    ABOUT_EXPERTS,
    ImpossibleError,
    ScalingRules,
    changes_for_depth,
    changes_for_shape,
    changes_for_width,
    extend_pattern,
    scaling_rules,
)
from paramcalc.scaling.search import largest_inside
from tests.conftest import Run

TUTORIAL = "tutorial-110m"


def valued(**fields: Any) -> dict[str, FieldValue]:
    return {name: FieldValue(name, value, isinstance(value, list | str)) for name, value in fields.items()}


LLAMA = valued(
    hidden_size=4096,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=None,
    intermediate_size=14336,
)


# -- the rules ----------------------------------------------------------------------------------------------------


def test_heads_and_widths_grow_in_proportion() -> None:
    assert changes_for_width(LLAMA, 6144, ScalingRules()) == {
        "hidden_size": 6144,
        "num_attention_heads": 48,
        "num_key_value_heads": 12,
        "intermediate_size": 21504,  # 3.5 x 6144
    }


def test_a_feed_forward_width_is_rounded_to_a_multiple() -> None:
    # 14336 = 2^11 x 7: the multiple is 256, the largest there is; 3.5 x 4224 = 14784 lies between 14592 and 14848
    assert changes_for_width(LLAMA, 4224, ScalingRules())["intermediate_size"] == 14848
    assert changes_for_width(LLAMA, 4224, ScalingRules(multiple_of=1))["intermediate_size"] == 14784


def test_key_value_heads_divide_the_query_heads() -> None:
    """33 heads: a quarter of them would be 8.25; the divisors of 33 are 1, 3, 11 and 33, of which 11 is nearest."""
    assert changes_for_width(LLAMA, 33 * 128, ScalingRules())["num_key_value_heads"] == 11
    single = LLAMA | valued(num_key_value_heads=1)
    assert changes_for_width(single, 8192, ScalingRules())["num_key_value_heads"] == 1


def test_key_value_heads_of_windows_divide_the_query_heads_of_windows() -> None:
    """As Inkling has them: layers with windows have heads and groups of their own."""
    two = valued(
        hidden_size=96,
        num_attention_heads=6,
        num_key_value_heads=3,
        swa_num_attention_heads=96,
        swa_num_key_value_heads=16,
    )
    changed = changes_for_width(two, 192, ScalingRules())

    assert (changed["num_attention_heads"], changed["num_key_value_heads"]) == (12, 6)
    assert (changed["swa_num_attention_heads"], changed["swa_num_key_value_heads"]) == (192, 32)


def test_key_value_heads_are_never_far_from_their_ratio() -> None:
    """43 is a prime: 1 or 43 where 10.75 are meant would be another design; two heads of one group are as near as 2."""
    with pytest.raises(ImpossibleError, match=r"43 heads, and no number of key/value heads near 10\.75"):
        changes_for_width(LLAMA, 43 * 128, ScalingRules())
    assert changes_for_width(LLAMA, 256, ScalingRules())["num_key_value_heads"] == 1
    assert "num_key_value_heads" not in changes_for_width(LLAMA, 43 * 128, ScalingRules(kv_heads="kept"))


def test_embeddings_as_wide_as_the_model_stay_so() -> None:
    """OPT's and ELECTRA's have projections only where they are of another width."""
    opt = LLAMA | valued(word_embed_proj_dim=4096, embedding_size=128)

    assert changes_for_width(opt, 8192, ScalingRules())["word_embed_proj_dim"] == 8192
    assert "embedding_size" not in changes_for_width(opt, 8192, ScalingRules())


def test_distilbert_widens_its_feed_forward_too() -> None:
    (row,) = paramcalc.scale("distilbert-base-uncased", {"width": [1536]}).rows

    assert row.fields == {"hidden_size": 1536, "num_attention_heads": 24, "hidden_dim": 6144}


def test_a_pattern_of_letters_is_the_depth_where_there_is_no_other() -> None:
    assert changes_for_depth(valued(hybrid_override_pattern="M-M*" * 3), 4) == {"hybrid_override_pattern": "M-M*"}


def test_first_dense_layers_stay_as_many() -> None:
    """As transformers writes DeepSeek's files: one dense layer, then experts; a deeper model has one too."""
    dense, sparse = ["dense"], ["sparse"]

    assert extend_pattern(dense + 2 * sparse, 5, "mlp_layer_types") == dense + 4 * sparse
    assert extend_pattern([0, 1, 1, 1], 6, "moe_layer_freq") == [0, 1, 1, 1, 1, 1]
    with pytest.raises(ImpossibleError, match="without a period"):
        extend_pattern(2 * sparse + dense, 5, "mlp_layer_types")
    with pytest.raises(ImpossibleError, match="without a period"):
        extend_pattern(["full_attention", "sliding_attention", "sliding_attention"], 6, "layer_types")


SIX = {"num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("transformers_version", "4.57.1"),  # of six characters
        ("architectures", ["LlamaForCausalLM"]),
        ("eos_token_id", [2, 3, 5, 7, 11, 13]),
    ],
)
def test_only_lists_of_layers_follow_the_depth(key: str, value: Any) -> None:
    """Twelve layers of 4 x 64 x 64 + 3 x 64 x 128 + 2 x 64, two matrices of 100 rows and a norm."""
    fields = {"model_type": "llama", **SIX, key: value}
    depth = 1 if key == "architectures" else 6
    (row,) = paramcalc.scale(paramcalc.load({**fields, "num_hidden_layers": depth}), {"depth": [12]}).rows

    assert row.problem is None
    assert row.fields == {"num_hidden_layers": 12}
    assert row.parameters is not None
    assert row.parameters.total == 12 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 100 * 64 + 64


# Bases whose FFN, heads or sections have names of their own, and what is as wide as the model at twice the width.
WIDER: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "ctrl": (
        {"model_type": "ctrl", "n_embd": 64, "n_layer": 2, "n_head": 4, "dff": 128, "vocab_size": 100},
        {"dff": 256},
    ),
    "dbrx": (
        {"model_type": "dbrx", "d_model": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 100}
        | {
            "attn_config": {"kv_n_heads": 2},
            "ffn_config": {"ffn_hidden_size": 96, "moe_num_experts": 4},
        },
        {"attn_config.kv_n_heads": 4, "ffn_config.ffn_hidden_size": 192},
    ),
    "qwen2_vl": (
        {"model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"]}
        | {"text_config": {**SIX, "num_key_value_heads": 2}, "vision_config": {"hidden_size": 64, "depth": 2}},
        {"text_config.hidden_size": 128, "text_config.num_key_value_heads": 4, "text_config.intermediate_size": 256},
    ),
    "florence2": (
        {"model_type": "florence2", "architectures": ["Florence2ForConditionalGeneration"]}
        | {"text_config": {"model_type": "bart", "d_model": 64, "encoder_attention_heads": 4, "vocab_size": 100}}
        | {"vision_config": {"projection_dim": 64}},
        {"text_config.d_model": 128},
    ),
}


@pytest.mark.parametrize("name", WIDER)
def test_all_that_belongs_to_a_width_follows_it(name: str) -> None:
    config, expected = WIDER[name]
    (row,) = paramcalc.scale(paramcalc.load(config), {"width": [128]}).rows

    assert expected.items() <= row.fields.items()


def test_layers_that_say_of_themselves_what_they_are_follow_width_and_depth() -> None:
    """By hand: a layer of d = 128 with 4 heads of 32, one with 8; FFNs of 256 and of 192, each of two matrices."""
    layers = [{"repeat": 2, "n_heads": 4}, {"d_ff": 96}] * 2
    fields = {"model_type": "transformer", "d_model": 64, "n_heads": 2, "d_ff": 128, "vocab_size": 100, "norm": "rms"}
    base = paramcalc.load({**fields, "head_dim": 32, "layers": layers})
    (row,) = paramcalc.scale(base, {"depth": [9], "width": [128]}).rows

    assert row.parameters is not None
    more, less = 4 * 128 * 8 * 32 + 2 * 128 * 256, 4 * 128 * 4 * 32 + 2 * 128 * 192
    assert row.parameters.non_embedding == 6 * more + 3 * less + 9 * 2 * 128 + 128


def test_an_encoder_and_a_decoder_of_their_own_have_no_one_width() -> None:
    part = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    sections = {name: {"model_type": "bert", **part, "vocab_size": 100} for name in ("encoder", "decoder")}
    sections["decoder"] |= {"is_decoder": True, "add_cross_attention": True}
    base = paramcalc.load({"model_type": "encoder-decoder", **sections})
    report = paramcalc.scale(base, {"depth": [4]})
    (deep,), (wide,) = report.rows, paramcalc.scale(base, {"width": [128]}).rows
    (own,) = paramcalc.scale(base, {"decoder.num_hidden_layers": [2]}).rows

    assert deep.problem == "depth: the model has several: encoder.num_hidden_layers, decoder.num_hidden_layers"
    assert wide.problem == "width: the model has several: encoder.hidden_size, decoder.hidden_size"
    assert own.parameters == report.base.parameters


def test_what_leaves_the_model_as_it_is_is_no_point_of_a_sweep() -> None:
    """HRM-Text builds num_layers_per_stack layers, whatever num_hidden_layers says beside it."""
    base = paramcalc.load({"model_type": "hrm_text", "num_hidden_layers": 56, "num_layers_per_stack": 7})
    (row,) = paramcalc.scale(base, {"depth": [112]}).rows

    assert row.problem == "depth: another num_hidden_layers leaves this model as it is"
    assert not row.valid


def test_rules_can_be_changed() -> None:
    wide = changes_for_width(
        LLAMA | valued(head_dim=128), 8192, scaling_rules({"heads": "kept", "kv_heads": "kept", "ffn": "kept"})
    )

    assert wide == {"hidden_size": 8192, "head_dim": 256}


@pytest.mark.parametrize("given", [{"head": "kept"}, {"heads": "same"}, {"multiple_of": "0"}, {"multiple_of": "x"}])
def test_unknown_rules_are_errors(given: dict[str, str | int]) -> None:
    with pytest.raises(paramcalc.ParamcalcError):
        scaling_rules(given)


def test_a_width_without_whole_heads_is_impossible() -> None:
    with pytest.raises(ImpossibleError, match="width 4100 does not give whole num_attention_heads"):
        changes_for_width(LLAMA, 4100, ScalingRules())


def test_lists_of_layers_go_on_in_their_period() -> None:
    assert extend_pattern(["s", "s", "f"] * 2, 8, "layer_types") == ["s", "s", "f", "s", "s", "f", "s", "s"]
    assert extend_pattern(["s", "s", "f"] * 2, 4, "layer_types") == ["s", "s", "f", "s"]
    with pytest.raises(ImpossibleError, match="without a period"):
        extend_pattern(["d", "s", "s", "s"], 8, "mlp_layer_types")


def test_a_depth_takes_its_lists_along() -> None:
    pattern = valued(num_hidden_layers=4, layer_types=["f", "s"] * 2, rope=[1, 2])

    assert changes_for_depth(pattern, 3) == {"num_hidden_layers": 3, "layer_types": ["f", "s", "f"]}


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


# -- designs ------------------------------------------------------------------------------------------------------


def test_a_design_is_the_closest_width() -> None:
    """Around 389 M at 12 layers: 1,536 is it exactly; its neighbours of 64 channels more or less are further off."""
    report = paramcalc.design(TUTORIAL, 388_929_024, depth=[12, 24])
    first, second = report.rows

    assert first.at == {"depth": 12, "width": 1536}
    assert first.deviation == 0
    assert first.aspect_ratio == 128
    assert report.best == 0
    assert second.deviation is not None
    assert second.parameters is not None
    other = paramcalc.scale(TUTORIAL, {"depth": [24], "width": [second.at["width"] - 64, second.at["width"] + 64]})
    for row in other.rows:
        assert row.parameters is not None
        assert abs(row.parameters.total - 388_929_024) > abs(second.deviation)


def test_one_field_can_be_solved_for() -> None:
    """7.99 B = 8.03 B less 32 layers x 3 x 4,096 channels for each of 77 columns of the FFN."""
    report = paramcalc.design("llama3-8b", 8_030_261_248 - 77 * 32 * 3 * 4096, solve="d_ff")
    (row,) = report.rows

    assert row.at == {"width": 4096, "d_ff": 14336 - 77}
    assert row.deviation == 0


def test_widths_are_multiples_of_what_is_asked_and_of_a_head() -> None:
    """Of 64 and of 100: 1,600 and 3,200, of which 1,600 comes closer at 24 layers, 3,200 at 12.

    By hand at 24 x 1,600 with 25 heads in five groups and an FFN of 4,352 (8/3 x 1,600 to a multiple of 256, upwards).
    """
    report = paramcalc.design(budget=1_100_000_000, depth=[12, 24], multiple_of=100)

    assert [row.at["width"] for row in report.rows] == [3200, 1600]
    layer = 2 * 1600 * 1600 + 2 * 1600 * 5 * 64 + 3 * 1600 * 4352 + 2 * 1600
    assert report.rows[1].parameters is not None
    assert report.rows[1].parameters.total == 32_000 * 1600 + 24 * layer + 1600


def test_what_grows_nowhere_is_the_closest_of_what_can_be() -> None:
    """More heads of fewer channels in eight groups: fewer parameters, and most numbers do not divide the width."""
    (row,) = paramcalc.design("llama3-8b", 9_000_000_000, solve="n_heads").rows

    # 8 heads of 512: keys and values of 8 x 512 channels instead of 8 x 128, in 32 layers
    assert row.at["n_heads"] == 8
    assert row.parameters is not None
    assert row.parameters.total == 8_030_261_248 + 32 * 2 * 4096 * 8 * (512 - 128)


def test_a_design_for_a_device_fits_it_and_the_next_width_does_not() -> None:
    report = paramcalc.design(TUTORIAL, depth=[24], gpu="8GiB", context=32768)
    (row,) = report.rows
    width = row.at["width"]
    one, next_one = (
        paramcalc.memory(
            paramcalc.load(TUTORIAL, overrides={"n_layers": 24, "d_model": w, "n_heads": w // 64, "d_ff": 4 * w}),
            context=32768,
        )
        for w in (width, width + 64)
    )

    assert one.per_device.total.bytes <= 8 * 2**30 < next_one.per_device.total.bytes


def test_a_design_may_be_of_a_gguf_file() -> None:
    """Where llama.cpp's converter does not know the family, the bits are typical ones, and that is said."""
    report = paramcalc.design(None, 8 * 2**30, match="weight-bytes", dtype="q4_k_m", gpu="12GiB", depth=[32])
    (row,) = report.rows

    assert row.weights is not None
    assert row.weights.bytes <= 8 * 2**30
    assert any("estimate" in warning for warning in report.warnings)


def test_a_design_is_saved_as_a_model(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "design.yaml"
    code, out, _ = run("design", "--budget", "1.1B", "--depth", "22", "--vocab", "32000", "--save", str(path), "--json")
    row = json.loads(out)["rows"][0]

    assert code == 0
    assert paramcalc.count(paramcalc.load(path)).parameters.total == row["parameters"]["total"]


# -- published ladders --------------------------------------------------------------------------------------------


def test_ladders_are_presets_from_the_smallest_on() -> None:
    for names in LADDERS.values():
        totals = [paramcalc.count(paramcalc.load(name)).parameters.total for name in names]
        assert totals == sorted(totals)


def test_published_models_are_set_beside_with_the_figures_of_points() -> None:
    """GPT-3's table 2.1 and MobileLLM's card: layers, d_model, parameters."""
    report = paramcalc.scale(TUTORIAL, {"depth": [12]}, overlay=["GPT3", "mobilellm"])
    found = {one.name: (one.depth, one.width, round(one.parameters.total / 1e9, 2)) for one in report.overlay}

    assert found["gpt3-125m"] == (12, 768, 0.13)
    assert found["gpt3-13b"] == (40, 5140, 12.94)
    assert found["gpt3-175b"] == (96, 12288, 174.6)
    assert found["mobilellm-1.5b"] == (54, 1600, 1.51)
    assert report.overlay[0].aspect_ratio == 64
    assert report.overlay[0].ladder == "gpt3"
    (same,) = paramcalc.scale("mobilellm-125m", {"depth": [30]}).rows
    one = next(one for one in report.overlay if one.name == "mobilellm-125m")
    assert (one.parameters, one.flops, one.kv_cache) == (same.parameters, same.flops, same.kv_cache)


def test_a_reason_is_told_once(run: Run) -> None:
    """A width that cannot be is so at every depth; a table says it once, JSON at each point."""
    _, printed, _ = run("scale", TUTORIAL, "--depth", "12:24:4", "--width", "1000")

    assert printed.count("does not give whole n_heads") == 1
    assert "depth 12, width 1000 and 3 more: width 1000 does not give whole n_heads: 12 x 1000 / 768" in printed


def test_all_is_every_ladder() -> None:
    report = paramcalc.design(TUTORIAL, 10**9, depth=[12], overlay=["all", "opt"])

    assert [one.name for one in report.overlay] == [name for names in LADDERS.values() for name in names]


def test_ladders_are_rows_after_the_models(run: Run) -> None:
    code, out, _ = run("scale", TUTORIAL, "--depth", "12", "--overlay", "mobilellm", "--format", "csv")
    rows = list(csv.DictReader(out.splitlines()))

    assert code == 0
    assert [row["name"] for row in rows] == ["", *LADDERS["mobilellm"]]
    assert (rows[3]["depth"], rows[3]["width"], rows[3]["aspect_ratio"]) == ("40", "1152", "28.800")
    _, table, _ = run("design", "--budget", "1.1B", "--depth", "24", "--overlay", "qwen3")
    assert "qwen3-32b" in table


def test_an_unknown_ladder_is_an_error_with_the_choices(run: Run) -> None:
    code, out, err = run("scale", TUTORIAL, "--depth", "12", "--overlay", "gpt3,gpt5")

    assert (code, out) == (2, "")
    assert (
        err == "error: unknown ladder 'gpt5'\nhint: known: gpt3, pythia, opt, llama, qwen3, mobilellm, gemma; or all\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["design"],
        ["design", "--budget", "many"],
        ["design", "--budget", "1.1B", "--match", "weight-bytes"],
        ["design", "--budget", "8GiB", "--match", "total"],
        ["design", "--budget", "1.1B", "--gpu", "nosuch"],
        ["design", TUTORIAL, "--budget", "1B", "--vocab", "5"],
        ["scale"],
        ["scale", TUTORIAL],
        ["scale", TUTORIAL, "--depth", "x"],
        ["scale", TUTORIAL, "--depth", "12:"],
        ["scale", TUTORIAL, "--depth", "9:3"],
        ["scale", TUTORIAL, "--sweep", "d_ff"],
        ["scale", TUTORIAL, "--sweep", "nosuch=1"],
        ["scale", TUTORIAL, "gpt2", "--depth", "3"],
        ["scale", TUTORIAL, "--depth", "3", "--rule", "heads"],
    ],
)
def test_what_cannot_be_asked_is_an_error(run: Run, arguments: list[str]) -> None:
    code, out, err = run(*arguments)

    assert code == 2
    assert out == ""
    assert err.startswith("error: ")


@pytest.mark.parametrize(
    ("base", "hint"),
    [
        ((), ABOUT_EXPERTS),
        (("llama3-8b",), "`paramcalc families NAME` lists the fields of a family"),
    ],
)
def test_a_base_without_experts_has_no_number_of_them(run: Run, base: tuple[str, ...], hint: str) -> None:
    """No hint at the very word that was given."""
    code, out, err = run("design", *base, "--budget", "1.1B", "--solve", "n_experts")

    assert (code, out) == (2, "")
    assert err.splitlines()[1] == f"hint: {hint}"


@pytest.mark.parametrize("option", [("--set", "vocab_size=100"), ("--text-only",), ("--strict",)])
@pytest.mark.parametrize("command", [("design", "--budget", "1B"), ("scale", "--depth", "12")])
def test_what_is_for_a_base_is_no_option_without_one(
    run: Run, command: tuple[str, ...], option: tuple[str, ...]
) -> None:
    code, out, err = run(*command, *option)

    assert (code, out) == (2, "")
    assert err.splitlines()[0] == f"error: {option[0]} is for a base, and none is given"


def test_a_bar_is_shown_for_a_few_slow_points_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of seven points that take 0.3 seconds each the fourth ends after the first second."""
    now, shown = iter(range(0, 3000, 300)), []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("time.monotonic", lambda: next(now) / 1000)
    monkeypatch.setattr(progress._Bar, "at", lambda _, done, many: shown.append((done, many)))
    with progress.progress("points") as each:
        for done in range(1, 8):
            each(done, 7)

    assert shown == [(4, 7), (5, 7), (6, 7), (7, 7)]


def test_no_design_within_the_limit_is_an_answer(run: Run) -> None:
    """A width of 64 at 4 layers takes 4.5 MB; the table says so, nothing is saved, and the answer is no."""
    code, out, err = run("design", "--budget", "1KiB", "--depth", "4", "--save", "/nowhere/design.yaml")

    assert (code, err) == (1, "")
    assert out.rstrip().endswith("depth 4, width 64: even the smallest model is beyond the budget")


def test_layers_that_a_token_passes_are_told_where_they_are_no_axis(run: Run) -> None:
    """T5's encoder and its decoder have a depth each, of which a token passes both."""
    _, out, _ = run("scale", "t5-small", "--depth", "6,12", "--format", "csv")
    rows = list(csv.DictReader(out.splitlines()))

    assert [(row["depth"], row["layers"]) for row in rows] == [("6", "12"), ("12", "24")]
    _, table, _ = run("scale", "t5-small", "--depth", "6,12")
    assert [line.split()[:2] for line in table.splitlines() if line.startswith(("depth", "    6", "   12"))] == [
        ["depth", "steps"],
        ["6", "12"],
        ["12", "24"],
    ]


def test_json_is_the_report(run: Run) -> None:
    _, out, _ = run("scale", TUTORIAL, "--depth", "12,24", "--width", "768,1000", "--json", "--context", "1k")
    report = paramcalc.scale(TUTORIAL, {"depth": [12, 24], "width": [768, 1000]}, context=1024)

    assert paramcalc.ScaleReport.model_validate_json(out) == report


def test_an_interrupted_file_is_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    path = tmp_path / "table.csv"
    path.write_text("before\n")

    def stop(_from: str, _to: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", stop)
    code, _, _ = run("scale", TUTORIAL, "--depth", "12", "--format", "csv", "--output", str(path))

    assert code == 130
    assert path.read_text() == "before\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_field_is_swept_under_the_name_that_the_file_has() -> None:
    """`--sweep` takes what `--set` takes: Mixtral's own name for what recipes call num_experts (8 -> 46.7 B)."""
    found = [paramcalc.scale("mixtral-8x7b", {name: [8]}).rows[0] for name in ("num_local_experts", "n_experts")]
    assert [row.parameters.total for row in found if row.parameters] == [46_702_792_704] * 2


def test_a_design_is_saved_as_yaml_alone(run: Run, tmp_path: Path) -> None:
    code, _, err = run("design", "--budget", "1.1B", "--save", tmp_path / "design.json")
    assert (code, err.splitlines()[1]) == (2, "hint: name the file like design.yaml")
    assert list(tmp_path.iterdir()) == []


def test_a_budget_in_words_is_for_the_command_line() -> None:
    with pytest.raises(paramcalc.ParamcalcError, match=r"a budget is a whole number of what is matched, not '1\.1B'"):
        paramcalc.design(budget="1.1B")  # type: ignore[arg-type]  # what a hurried user writes


@pytest.mark.parametrize(
    ("grid", "problem"),
    [
        ({"depth": 8}, "depth: no values to sweep"),
        ({"width": "64"}, "width: no values to sweep"),
        ({"depth": [2], "n_layers": [3]}, "n_layers is the same axis as depth"),
        ({"width": [512], "hidden_size": [64]}, "hidden_size is the same axis as width"),
        ({"d_ff": [64], "intermediate_size": [96]}, "intermediate_size is the same axis as d_ff"),
        ({"dtype": ["float32"]}, "dtype is the same at all points"),
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

    assert report.warnings == ("24GiB: its bandwidth is not known, so the time of a step is not estimated",)
    assert report.rows[0].latency is not None
    assert report.rows[0].latency.step_ns is None
    assert paramcalc.scale("llama3-8b", {"depth": [32]}, gpu="h100").warnings == ()
