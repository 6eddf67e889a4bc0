"""Comparisons: figures of other reports beside each other, shapes off the tree, and what each changed field did."""

from __future__ import annotations

import importlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import paramcalc
from paramcalc.base.errors import ParamcalcError
from paramcalc.components import SUBMODULES
from paramcalc.render.compare import compare_table, value_text
from paramcalc.render.table import render_text
from paramcalc.reports.compare import Compared, CompareReport
from paramcalc.scaling import changes
from paramcalc.scaling.dimensions import model_shape
from paramcalc.tree.component import Component
from tests.conftest import Run
from tests.goldens.store import COUNT

OLD = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}
NEW = OLD | {"intermediate_size": 192, "num_hidden_layers": 3, "num_key_value_heads": 4, "rope_theta": 500000.0}


def compared(*sources: Any, **options: Any) -> CompareReport:
    return paramcalc.compare([paramcalc.load(source) for source in sources], **options)


def row(report: CompareReport, name: str) -> Compared:
    return next(one for one in report.rows if f"{one.report}.{one.name}" == name)


def steps(report: CompareReport) -> list[tuple[list[str], int]]:
    assert report.change
    return [([field.name for field in step.fields], step.difference) for step in report.change.steps]


# -- side by side ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("count.parameters.total", 6_738_415_616, 8_030_261_248),  # Touvron et al. 2023; Llama 3's model card
        ("count.components.attention.total", 2_147_483_648, 1_342_177_280),  # 32 x 4 x 4,096^2; 32 x 2.5 x 4,096^2
        ("count.components.head.total", 131_072_000, 525_336_576),
        ("shape.layers", 32, 32),
        ("shape.sequential_steps", 32, 32),
        ("shape.d_model", 4096, 4096),
        ("shape.aspect_ratio", 128.0, 128.0),
        ("shape.heads", 32, 32),
        ("shape.kv_heads", 32, 8),
        ("shape.head_dim", 128, 128),
        ("shape.d_ff", 11008, 14336),
        ("shape.ffn_ratio", 2.6875, 3.5),
        ("memory.working.logits.vocabulary", 32_000, 128_256),
        ("memory.weights.bytes", 13_476_831_232, 16_060_522_496),
        ("memory.kv_cache.bytes_per_token", 524_288, 131_072),  # 32 x 2 x heads x 128 x 2 bytes
        ("memory.kv_cache.per_sequence.bytes", 4_294_967_296, 1_073_741_824),
        ("flops.per_token.attention", 4_294_967_296, 4_294_967_296),  # 4 x 32 x 4,096 x 8,192
        ("flops.per_token.total", 17_509_122_048, 19_304_284_160),  # and 2 x 6,607,077,376; 2 x 7,504,658,432
    ],
)
def test_two_llamas(name: str, old: int, new: int) -> None:
    found = row(compared("llama2-7b", "llama3-8b"), name)

    assert found.values == (old, new)
    assert found.differences == (0, new - old)
    assert found.differs is (old != new)


def test_ratios_are_to_the_first_and_have_six_digits() -> None:
    report = compared("llama3-8b", "llama2-7b", "gpt2")

    assert row(report, "count.parameters.total").ratios == (1.0, 0.839128, 0.0154964)
    assert row(report, "shape.aspect_ratio").values == (128.0, 128.0, 64.0)
    assert row(report, "count.components.head.total").ratios == (1.0, 0.249501, 0.0)  # GPT-2's head is its embedding


def test_a_ratio_to_nothing_is_none() -> None:
    assert row(compared("gpt2", "llama2-7b"), "count.components.head.total").ratios == (None, None)


def test_a_context_is_for_caches_and_work() -> None:
    report = compared("llama3-8b", "gemma2-9b", context=1024)

    assert report.assumptions.context == 1024
    assert row(report, "memory.kv_cache.per_sequence.bytes").values[0] == 134_217_728
    assert row(report, "flops.per_token.attention").values[0] == 536_870_912
    # no window is as short as that; the published file of Gemma 2 says float32
    assert report.notes == ("llama3-8b: weights in bfloat16", "gemma2-9b: weights in float32")
    assert compared("llama3-8b", "qwen3-8b").notes == ()


def test_notes_and_warnings_are_under_the_name_of_their_model() -> None:
    report = compared("gemma2-9b", OLD | {"surprise": 1}, {"model_type": "llama"})

    assert report.notes[0].startswith("gemma2-9b: windows limit attention to 4,096 tokens")
    assert report.warnings[0].startswith("the given mapping (1): llama: unrecognised key 'surprise' ignored")
    assert report.warnings[-1].startswith("the given mapping (2): ")
    assert report.models[1].status == "approximate"


def test_only_what_differs() -> None:
    report = compared("llama2-7b", "llama3-8b", only_different=True)

    assert {one.name for one in report.rows if one.report == "shape"} == {"kv_heads", "d_ff", "ffn_ratio"}
    assert all(one.differs for one in report.rows)


def test_the_same_model_twice() -> None:
    report = compared("gpt2", "gpt2", only_different=True)

    assert report.rows == ()
    assert report.change
    assert report.change.steps == ()
    assert report.change.difference == 0


@pytest.mark.parametrize("models", [[], ["gpt2"]])
def test_it_takes_two(models: list[str]) -> None:
    with pytest.raises(ParamcalcError, match="it takes two to compare"):
        compared(*models)


@pytest.mark.parametrize("wrong", ["gpt2", ["gpt2", "gpt2"], None, [None, None]])
def test_only_models_are_compared(wrong: Any) -> None:
    with pytest.raises(ParamcalcError, match="compare wants a list of Models, not"):
        paramcalc.compare(wrong)


# -- shapes ------------------------------------------------------------------------------------------------------


def shaped(source: Any) -> dict[str, Any]:
    return {name: value for name, value in model_shape(paramcalc.load(source).tree).items() if value is not None}


def test_the_shape_of_a_mixture_of_experts() -> None:
    """DeepSeek-V3 (2412.19437), section 4.2."""
    found = shaped("deepseek-v3")

    assert found.items() >= dict(layers=61, d_model=7168, heads=128, d_ff=18432, shared_expert_d_ff=2048).items()
    assert found.items() >= dict(experts=256, experts_per_token=8, expert_d_ff=2048, head_dim=192).items()
    assert "kv_heads" not in found


def test_a_model_without_attention_has_no_heads() -> None:
    """Mamba 130M (2312.00752), table 12: 24 layers of width 768."""
    assert shaped("mamba-130m") == {"layers": 24, "sequential_steps": 24, "d_model": 768, "aspect_ratio": 32}


def test_both_stacks_of_an_encoder_decoder() -> None:
    """T5-base (1910.10683), section 3.1.2: 12 blocks each, 768, 3072, 12 heads of 64."""
    found = shaped("t5-base")

    assert found.items() >= dict(layers=24, encoder_layers=12, decoder_layers=12, sequential_steps=24).items()
    assert found.items() >= dict(d_model=768, aspect_ratio=32, heads=12, head_dim=64, d_ff=3072, ffn_ratio=4).items()


def test_a_shared_layer_is_one_and_runs_often() -> None:
    """ALBERT base (1909.11942), table 1: 12 layers of 768 share their parameters; the embedding is 128 wide."""
    found = shaped("albert-base-v2")

    assert (found["layers"], found["sequential_steps"], found["d_model"], found["aspect_ratio"]) == (1, 12, 768, 64)


def test_a_tower_is_not_the_shape_of_its_model() -> None:
    """LLaVA 1.5's default: Llama-7B behind a CLIP tower of 24 layers of 1024."""
    assert shaped({"model_type": "llava"}).items() >= dict(layers=32, d_model=4096, heads=32, d_ff=11008).items()


def test_layers_that_differ_are_told_apart() -> None:
    layers = [{"repeat": 2, "n_heads": 4, "head_dim": 8}, {"n_heads": 8, "head_dim": 8, "d_ff": 96}]
    found = shaped({"model_type": "transformer", "d_model": 64, "n_heads": 4, "vocab_size": 10, "layers": layers})

    assert (found["heads"], found["kv_heads"], found["head_dim"]) == ((4, 8), (4, 8), 8)
    assert (found["d_ff"], found["ffn_ratio"]) == ((96, 256), (1.5, 4))


def test_experts_behind_a_latent_say_nothing_of_the_width() -> None:
    config = COUNT["nemotron_h/odd-5"]["config"]

    assert (config["moe_latent_size"], shaped(config)["d_model"]) == (32, 64)


def test_every_mixer_and_ffn_states_its_sizes() -> None:
    """A component with a name in layer patterns states the width of the model."""
    modules = [importlib.import_module(f"paramcalc.components.{name}") for name in SUBMODULES]
    named = {
        cls
        for module in modules
        for cls in vars(module).values()
        if isinstance(cls, type)
        and issubclass(cls, Component)
        and "label" in vars(cls)
        and cls.__name__ not in ("Component", "SharedReference")
    }

    assert len(named) > 15
    assert [cls.__name__ for cls in named if cls.dimensions is Component.dimensions and "items" not in cls.fields] == []


# -- the review of a change --------------------------------------------------------------------------------------


def test_what_each_field_did() -> None:
    """By hand: 2 x 3 x 64 x 64 of FFN; a layer of 12,288 + 36,864 + 128; 3 x 2 x 64 x 2 x 16 of keys and values."""
    report = compared(OLD, NEW)

    assert steps(report) == [
        (["intermediate_size"], 24_576),
        (["num_hidden_layers"], 49_280),
        (["num_key_value_heads"], 12_288),
        (["rope_theta"], 0),
    ]
    assert report.change
    assert report.change.steps[1].components == {"attention": 12_288, "ffn": 36_864, "norm": 128}
    assert report.change.components == {"attention": 24_576, "ffn": 61_440, "norm": 128}
    assert row(report, "count.parameters.total").differences == (0, 86_144)


def test_the_changes_from_llama_2_to_llama_3() -> None:
    """2 x 96,256 x 4,096; 32 x 3 x 4,096 x 3,328; -32 x 2 x 4,096 x 24 x 128."""
    assert [step for step in steps(compared("llama2-7b", "llama3-8b")) if step[1]] == [
        (["vocab_size"], 788_529_152),
        (["intermediate_size"], 1_308_622_848),
        (["num_key_value_heads"], -805_306_368),
    ]


def test_the_order_is_the_second_files() -> None:
    reversed_new = dict(reversed(NEW.items()))

    assert steps(compared(OLD, reversed_new)) == [
        (["rope_theta"], 0),
        (["num_key_value_heads"], 8_192),  # in two layers
        (["num_hidden_layers"], 41_088),  # 16,384 + 24,576 + 128
        (["intermediate_size"], 36_864),  # in three
    ]


def test_a_default_that_is_stated_is_no_difference() -> None:
    """LlamaConfig's own."""
    stated = dict(vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, head_dim=None)

    assert steps(compared({"model_type": "llama"}, {"model_type": "llama", "attention_bias": False, **stated})) == []


def test_a_field_that_is_gone_is_its_default_again() -> None:
    report = compared({"model_type": "llama", "num_hidden_layers": 2}, {"model_type": "llama"})
    assert report.change

    assert [field.model_dump() for field in report.change.steps[0].fields] == [
        {"name": "num_hidden_layers", "old": 2, "new": 32}
    ]
    assert report.change.difference == 30 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096)


def test_other_names_of_a_field_are_that_field() -> None:
    same = {"model_type": "gpt2", "num_hidden_layers": 3, "dtype": "float16"}

    assert steps(compared({"model_type": "gpt2", "n_layer": 3, "torch_dtype": "float16"}, same)) == []
    assert steps(compared({"model_type": "gpt2", "n_layer": 3}, {"model_type": "gpt2", "num_hidden_layers": 4})) == [
        (["num_hidden_layers"], 7_087_872)  # 12 x 768^2 of matrices, 9 x 768 of biases, 4 x 768 of norms
    ]


def test_fields_that_make_no_model_alone_go_together() -> None:
    """A list for each layer and the depth; what stands between them has a step of its own."""
    full = "full_attention"
    base = {"model_type": "qwen3", "hidden_size": 64, "num_attention_heads": 2, "head_dim": 32, "vocab_size": 100}
    base |= {"intermediate_size": 128, "num_key_value_heads": 2, "tie_word_embeddings": True}
    old = base | {"num_hidden_layers": 2, "layer_types": [full] * 2}
    new = {"num_hidden_layers": 3} | base | {"vocab_size": 101, "layer_types": [full] * 3}

    assert steps(compared(old, new)) == [
        (["vocab_size"], 64),
        (["num_hidden_layers", "layer_types"], 4 * 64 * 64 + 3 * 64 * 128 + 2 * 64 + 2 * 32),
    ]


def test_another_class_is_a_change() -> None:
    report = compared(OLD, NEW | {"architectures": ["LlamaModel"]})

    assert steps(report)[0] == (["architectures"], -6_400)  # the head
    assert sum(difference for _, difference in steps(report)) == 86_144 - 6_400


def test_fields_in_sections_have_dots() -> None:
    old = {"model_type": "gemma3", "text_config": {"num_hidden_layers": 2}}
    new = {"model_type": "gemma3", "text_config": {"num_hidden_layers": 2, "vocab_size": 262_208, "hidden_size": 1152}}
    report = compared(old, new)

    assert [names for names, _ in steps(report)] == [["text_config.hidden_size"]]  # the vocabulary is the default
    assert report.change
    assert set(report.change.components) >= {"embedding", "attention", "ffn", "norm"}


def test_a_section_of_which_only_one_file_speaks_is_one_change() -> None:
    text = {"model_type": "qwen2", "num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 2}
    text["num_key_value_heads"] = 2
    changed = [
        names for names, _ in steps(compared({"model_type": "llava"}, {"model_type": "llava"} | {"text_config": text}))
    ]

    assert changed == [["text_config"]]


def test_models_of_other_families_are_no_change() -> None:
    assert compared("llama3-8b", "qwen3-8b").change is None
    assert compared("llama3-8b", "llama2-7b", "llama-7b").change is None


def test_the_same_file_read_in_another_way_is_no_change() -> None:
    whole, text = (paramcalc.load({"model_type": "llava"}, text_only=text_only) for text_only in (False, True))

    assert paramcalc.compare([whole, text]).change is None


def test_values_that_json_does_not_know_are_text() -> None:
    report = compared(OLD | {"rope_theta": float("nan")}, NEW | {"rope_theta": float("inf")})
    again = compared(OLD | {"rope_theta": float("nan")}, OLD | {"rope_theta": float("nan")})

    assert report.change
    assert [(field.old, field.new) for step in report.change.steps for field in step.fields][-1] == ("nan", "inf")
    assert steps(again) == []


FAMILIES = ("bert", "bloom", "deepseek_v3", "falcon", "gemma3n_text", "jamba", "mamba2", "mpt", "nemotron_h", "bart")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_steps_sum_to_what_the_reference_has_more(family: str) -> None:
    goldens = [COUNT[name] for name in COUNT.families[family] if "/odd-" in name][:4]

    assert len(goldens) > 1
    for old, new in pairwise(goldens):
        found = changes.change_figures([paramcalc.load(golden["config"]) for golden in (old, new)])
        assert found
        assert found["difference"] == new["total"] - old["total"]
        assert sum(step["difference"] for step in found["steps"]) == found["difference"]
        assert all(sum(step["components"].values()) == step["difference"] for step in found["steps"])


# -- the command -------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "old.json").write_text(json.dumps(OLD))
    (tmp_path / "new.json").write_text(json.dumps(NEW))
    return str(tmp_path / "old.json"), str(tmp_path / "new.json")


@pytest.mark.parametrize(
    "argv",
    [
        ("--preset", "gpt2", "opt-125m", "-pbert-base-uncased"),
        ("-p", "gpt2", "opt-125m", "--preset=bert-base-uncased"),
        ("gpt2", "opt-125m", "bert-base-uncased"),
        ("gpt2", "-p", "opt-125m", "--", "bert-base-uncased"),
        ("gpt2", "-p", "opt-125m", "-p", "bert-base-uncased"),
    ],
)
def test_models_stand_in_the_order_in_which_they_are_given(argv: tuple[str, ...], run: Run) -> None:
    code, out, _ = run("compare", "--json", *argv)

    assert code == 0
    assert [model["name"] for model in json.loads(out)["models"]] == ["gpt2", "opt-125m", "bert-base-uncased"]


def test_a_difference_fails_only_where_that_is_asked_for(run: Run, files: tuple[str, str]) -> None:
    old, new = files

    assert run("compare", old, new)[0] == 0
    assert run("compare", old, new, "--fail-on-difference")[0] == 1
    assert run("compare", old, new, "--exit-code", "--json")[0] == 1
    assert run("compare", old, old, "--exit-code")[0] == 0


def test_one_model_is_a_usage_error(run: Run, files: tuple[str, str]) -> None:
    code, out, err = run("compare", files[0])

    assert (code, out) == (2, "")
    assert err.splitlines()[0] == "error: one model given, and it takes two to compare"
    assert err.splitlines()[1].startswith("hint: paramcalc compare --preset")


def test_a_table_of_a_change(run: Run, files: tuple[str, str]) -> None:
    code, out, _ = run("compare", *files, "--only-different")

    assert code == 0
    assert out.splitlines()[6] == "total                       86,848     172,992      +86,144   1.992 x"
    assert "num_hidden_layers        2     3      +49,280   ffn +36.86 K, attention +12.29 K, norm +128" in out
    assert "difference                            +86,144\n" in out
    assert "without effect on the count: rope_theta unstated -> 500000.0\n" in out


def test_rows_for_other_programs(run: Run, files: tuple[str, str]) -> None:
    lines = run("compare", *files, "--format", "csv")[1].splitlines()

    assert lines[0] == "figure,old,new,new difference,new ratio"
    assert lines[1] == "count.parameters.total,86848,172992,86144,1.99189"
    assert "shape.aspect_ratio,32.0,21.3333,-10.6667,0.666667" in lines
    assert "config.num_hidden_layers,2,3,49280," in lines
    assert (
        "| count.parameters.total | 86,848 | 172,992 | 86,144 | 1.99189 |"
        in run("compare", *files, "--format", "markdown")[1].splitlines()
    )


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("names", [("llama2-7b", "llama3-8b"), ("llama3-8b", "deepseek-v3", "gemma2-9b", "t5-base")])
def test_no_figure_is_cut_however_narrow(width: int, names: tuple[str, ...]) -> None:
    report = compared(*names)
    text = render_text(compare_table(report, width), width=width, color=False)

    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for one in report.rows:
        assert all(value_text(value) in text.split() or value is None for value in one.values)
    assert ("1.192 x" in text) is (width > 60 and len(names) == 2)


def test_layers_that_differ_show_their_range() -> None:
    assert value_text((1024, 2048)) == "1,024 / 2,048"
    assert value_text((2, 3, 5, 8)) == "2-8"
    assert value_text(None) == "-"
