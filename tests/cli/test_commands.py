"""The commands, as a shell sees them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
import yaml

import paramcalc
from paramcalc.base.version import __version__
from tests.conftest import Run

KEYS = [
    "schema_version",
    "version",
    "model",
    "warnings",
    "parameters",
    "components",
    "layers",
    "tied",
    "weights",
]


def test_json_is_the_report_and_nothing_else(run: Run) -> None:
    code, out, err = run("count", "--preset", "mixtral-8x7b", "--json")
    report = json.loads(out)

    assert (code, err) == (0, "")
    assert list(report) == KEYS
    assert report["version"] == __version__
    assert report["model"] == {
        "name": "mixtral-8x7b",
        "family": "mixtral",
        "architecture": "MixtralForCausalLM",
        "source": "preset mixtral-8x7b",
        "status": "exact",
        "dtype": "bfloat16",
    }
    assert report["parameters"] == {
        "total": 46_702_792_704,
        "active": 12_879_925_248,
        "active_without_input_embedding": 12_748_853_248,
        "non_embedding": 46_440_648_704,
        "buffers": 0,
        "mtp": 0,
    }
    assert list(report["components"]) == ["embedding", "attention", "experts", "router", "norm", "head"]
    assert sum(share["total"] for share in report["components"].values()) == 46_702_792_704
    assert sum(share["active"] for share in report["components"].values()) == 12_879_925_248
    assert report["layers"] == [
        {
            "stack": "decoder",
            "repeat": 32,
            "kind": "attention + 8 experts, 2 active",
            "total": 1_451_270_144,
            "active": 394_305_536,
        }
    ]
    assert report["tied"] == []
    assert report["weights"] == {"dtype": "bfloat16", "bytes": 93_405_585_408}


@pytest.mark.parametrize("preset", ["llama3-8b", "deepseek-v3", "t5-base", "bart-base", "albert-base-v2", "jamba-v0.1"])
def test_json_is_the_dump_of_the_report(run: Run, preset: str) -> None:
    report = paramcalc.count(paramcalc.load(preset))

    assert json.loads(run("count", preset, "--json")[1]) == report.model_dump(mode="json")
    assert list(json.loads(run("count", preset, "--json")[1])["parameters"]) == list(
        type(report.parameters).model_fields
    )


def test_several_models_are_a_list(run: Run) -> None:
    code, out, _ = run("count", "gpt2", "--preset", "llama3-8b", "--json")

    assert code == 0
    assert [report["model"]["name"] for report in json.loads(out)] == ["gpt2", "llama3-8b"]


def test_csv_and_markdown_have_one_row_per_model(run: Run) -> None:
    _, csv, _ = run("count", "gpt2", "llama3-8b", "--format", "csv")
    _, markdown, _ = run("count", "gpt2", "llama3-8b", "--format", "markdown")

    assert csv.splitlines()[0].startswith("name,family,architecture,status,total,active,")
    assert csv.splitlines()[1].startswith("gpt2,gpt2,GPT2LMHeadModel,exact,124439808,124439808,")
    assert len(csv.splitlines()) == 3
    assert markdown.splitlines()[2].startswith("| gpt2 | gpt2 | GPT2LMHeadModel | exact | 124,439,808 |")
    assert len(markdown.splitlines()) == 4


CONFIG = {
    "model_type": "qwen2",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "torch_dtype": "float16",
}
# by hand: embed and head 2 x 6400; per layer q 64x64+64, k and v 64x32+32, o 64x64, FFN 3x64x96, norms 2x64; norm 64
QWEN_TOTAL = 12_800 + 3 * (4160 + 2 * 2080 + 4096 + 18_432 + 128) + 64


@pytest.mark.parametrize("how", ["file", "directory", "yaml", "stdin", "yaml on stdin"])
def test_every_way_to_give_a_model(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "model.yaml").write_text(yaml.safe_dump(CONFIG))
    text = json.dumps(CONFIG) if how == "stdin" else yaml.safe_dump(CONFIG)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    source = {"file": str(tmp_path / "config.json"), "directory": str(tmp_path), "yaml": str(tmp_path / "model.yaml")}

    code, out, err = run("count", source.get(how, "-"), "--json")

    assert (code, err) == (0, "")
    assert json.loads(out)["parameters"]["total"] == QWEN_TOTAL


TEXTS = pytest.mark.parametrize("text", [json.dumps(CONFIG), yaml.safe_dump(CONFIG)], ids=["json", "yaml"])


@pytest.mark.skipif(os.name != "posix", reason="needs pipes with names")
@TEXTS
@pytest.mark.parametrize("how", ["fifo", "<(...)"])
def test_pipes_are_read_like_files(run: Run, tmp_path: Path, text: str, how: str) -> None:
    if how == "fifo":
        source = tmp_path / "fifo"
        os.mkfifo(source)
        Thread(target=source.write_text, args=(text,)).start()  # waits for a reader
    else:
        reader, writer = os.pipe()
        os.write(writer, text.encode())
        os.close(writer)
        source = Path(f"/dev/fd/{reader}")  # what a shell makes of <(...)

    code, out, _ = run("count", str(source), "--json")

    assert (code, json.loads(out)["parameters"]["total"]) == (0, QWEN_TOTAL)


@pytest.mark.skipif(os.name != "posix", reason="needs /dev/stdin")
@TEXTS
def test_standard_input_by_its_name_is_read_like_a_file(text: str) -> None:
    command = [sys.executable, "-m", "paramcalc", "count", "--json", "/dev/stdin"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)

    assert json.loads(done.stdout)["parameters"]["total"] == QWEN_TOTAL


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_a_file_in_the_hub_cache_is_called_after_its_model(run: Run, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--org--Some-7B" / "snapshots" / "0123abcd"
    snapshot.mkdir(parents=True)
    (tmp_path / "blob").write_text(json.dumps(CONFIG))
    (snapshot / "config.json").symlink_to(tmp_path / "blob")

    assert json.loads(run("count", str(snapshot), "--json")[1])["model"]["name"] == "Some-7B"


def test_settings_replace_fields_under_either_name(run: Run) -> None:
    _, ours, _ = run("count", "gpt2", "--set", "num_hidden_layers=1", "--json")
    _, theirs, _ = run("count", "gpt2", "--set", "n_layer=1", "--json")

    assert json.loads(ours)["parameters"] == json.loads(theirs)["parameters"]
    assert json.loads(ours)["parameters"]["total"] == 124_439_808 - 11 * 7_087_872


@pytest.mark.parametrize(
    ("model", "words", "total"),
    [
        # attention 41,943,040, FFN 176,160,768, norms 8,192; two tables of 128,256 x 4,096 and a norm
        ("llama3-8b", ["n_layers=1"], 218_112_000 + 1_050_677_248),
        # 32 times the same with a router of 4,096; two tables of 32,000 x 4,096 and a norm
        ("mixtral-8x7b", ["n_experts=1", "top_k=1"], 32 * 218_116_096 + 262_148_096),
        ("t5-small", ["n_layers=1", "d_ff=512"], 16_449_536 + 1_574_144 + 2_623_232 + 1_024),
    ],
)
def test_a_field_may_be_called_as_people_do(run: Run, model: str, words: list[str], total: int) -> None:
    code, out, _ = run("count", model, *(part for word in words for part in ("--set", word)), "--json")
    assert (code, json.loads(out)["parameters"]["total"]) == (0, total)


@pytest.mark.parametrize(
    ("model", "word", "sides"),
    [
        ("bart-base", "n_layers", "encoder_layers or decoder_layers"),
        ("bart-base", "d_ff", "encoder_ffn_dim or decoder_ffn_dim"),
        ("whisper-tiny", "n_heads", "encoder_attention_heads or decoder_attention_heads"),
    ],
)
@pytest.mark.parametrize(
    "command",
    ["count --set {}=2", "scale --sweep {}=2,4", "design --budget 1B --solve {}"],
    ids=["set", "sweep", "solve"],
)
def test_a_word_that_may_be_of_either_side_is_refused(
    run: Run, command: str, model: str, word: str, sides: str
) -> None:
    code, _, err = run(*command.format(word).split(), model)

    assert (code, f"{word} is ambiguous: {sides}" in err) == (2, True)


def test_a_word_means_a_field_of_the_language_model() -> None:
    config = {"model_type": "gemma3", "text_config": {"hidden_size": 512}}
    named, meant = (paramcalc.load(config, overrides={key: 2}) for key in ("text_config.num_hidden_layers", "n_layers"))
    assert named.tree == meant.tree != paramcalc.load(config).tree


def test_settings_reach_flags_words_and_nulls(run: Run) -> None:
    _, out, _ = run("count", "llama3-8b", "--set", "tie_word_embeddings=true", "--set", "head_dim=null", "--json")

    assert json.loads(out)["parameters"]["total"] == 8_030_261_248 - 128_256 * 4096


def test_a_file_may_be_the_output(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "out.json"

    assert run("count", "gpt2", "--json", "--output", str(target)) == (0, "", "")
    assert json.loads(target.read_text())["parameters"]["total"] == 124_439_808


def test_a_foreign_key_is_a_warning_and_strict_makes_it_an_answer(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | {"use_per_layer_gate": True}))

    code, out, err = run("count", str(path), "--json")
    assert code == 0
    assert err == "warning: qwen2: unrecognised key 'use_per_layer_gate' ignored; the count may be wrong\n"
    assert json.loads(out)["model"]["status"] == "approximate"
    assert json.loads(out)["warnings"] == [err.removeprefix("warning: ").strip()]

    code, out, err = run("count", str(path), "--strict")
    assert (code, out) == (1, "")
    assert "use_per_layer_gate" in err


def test_an_unknown_type_can_be_counted_as_another(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | {"model_type": "brandnew"}))

    code, out, err = run("count", str(path), "--as-family", "qwen2", "--json")

    assert code == 0
    assert json.loads(out)["parameters"]["total"] == QWEN_TOTAL
    assert json.loads(out)["model"]["status"] == "approximate"
    assert "brandnew is counted as if it were qwen2" in err


def test_a_missing_dtype_is_assumed_aloud(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({key: value for key, value in CONFIG.items() if key != "torch_dtype"}))

    _, out, err = run("count", str(path), "--json")

    assert json.loads(out)["weights"] == {"dtype": "float32", "bytes": 4 * QWEN_TOTAL}
    assert json.loads(out)["model"]["status"] == "exact"
    assert err == "warning: qwen2: the config names no dtype; float32 is assumed for the bytes\n"


def test_an_unknown_class_is_approximate(run: Run) -> None:
    _, out, err = run("count", "llama3-8b", "--set", 'architectures=["LlamaForSomethingElse"]', "--json")

    assert json.loads(out)["model"]["status"] == "approximate"
    assert "class 'LlamaForSomethingElse' is not known; counted as LlamaForCausalLM" in err


def test_a_class_that_does_not_exist_is_approximate(run: Run) -> None:
    _, out, err = run("count", "command-r-35b", "--set", 'architectures=["CohereForSequenceClassification"]', "--json")

    assert json.loads(out)["model"]["status"] == "approximate"
    assert "transformers has no class 'CohereForSequenceClassification'" in err


def test_a_known_class_with_an_unknown_type_is_approximate(run: Run) -> None:
    _, out, err = run("count", "deepseek-v3", "--set", "model_type=brand_new", "--json")

    assert json.loads(out)["parameters"]["total"] == 671_026_404_352
    assert json.loads(out)["model"]["status"] == "approximate"
    assert "counted as deepseek_v3, the family of the class in architectures" in err


def test_presets_are_listed_with_total_active_and_source(run: Run) -> None:
    code, out, err = run("presets", "list", "--json")
    listed = {preset["name"]: preset for preset in json.loads(out)}

    assert (code, err) == (0, "")
    assert len(listed) >= 60
    assert listed["mixtral-8x7b"]["active"] == 12_879_925_248
    assert listed["llama3-8b"]["source"].startswith("https://")
    assert run("presets", "--json")[1] == out


def test_a_preset_is_shown_as_its_file(run: Run) -> None:
    code, out, _ = run("presets", "show", "llama3-8b")

    assert code == 0
    assert yaml.safe_load(out)["num_hidden_layers"] == 32


def test_families_are_listed_and_shown(run: Run) -> None:
    code, out, _ = run("families", "--json")
    listed = {family["name"]: family for family in json.loads(out)}

    assert code == 0
    assert listed["llama"]["architecture"] == "LlamaForCausalLM"
    assert listed["llama"]["goldens"] > 20
    assert listed["llama"]["verified_by"].startswith("transformers 5.")
    _, out, _ = run("families", "gpt2", "--json")
    assert {"name": "hidden_size", "key": "n_embd", "default": "768"} in json.loads(out)["fields"]


def test_an_unknown_family_is_refused_with_suggestions(run: Run) -> None:
    code, out, err = run("families", "lama")

    assert (code, out) == (2, "")
    assert "did you mean 'llama'" in err


def test_schemas_describe_reports_and_models(run: Run) -> None:
    code, out, _ = run("schema")
    schemas = json.loads(out)

    assert code == 0
    assert {"count", "memory", "explain", "presets", "families", "model"} <= set(schemas)
    assert schemas["count"]["required"][-1] == "weights"
    own, hugging_face = schemas["model"]["anyOf"]
    assert own["properties"]["d_model"]["description"] == "width of the residual stream"
    assert "llama" in hugging_face["properties"]["model_type"]["enum"]
    assert json.loads(run("schema", "count")[1]) == schemas["count"]
    assert run("schema", "cuont")[0] == 2


def test_version_and_help(run: Run) -> None:
    assert run("--version") == (0, f"paramcalc {__version__}\n", "")
    for argv in (["--help"], ["count", "-h"], ["presets", "--help"], ["families", "--help"], ["schema", "--help"]):
        code, out, err = run(*argv)
        assert (code, err) == (0, "")
        assert "Usage:" in out


def test_without_a_command_there_is_help(run: Run) -> None:
    code, out, err = run()

    assert code == 2
    assert "Usage:" in out + err


GEMMA3 = {
    "model_type": "gemma3",
    "architectures": ["Gemma3ForConditionalGeneration"],
    "text_config": {"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 1000},
    "vision_config": {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 80},
    "dtype": "bfloat16",
}


def test_the_language_model_alone(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GEMMA3))

    whole = json.loads(run("count", str(path), "--json")[1])
    text = json.loads(run("count", str(path), "--text-only", "--json")[1])

    assert {"vision", "projector"} <= set(whole["components"])
    # by hand: attention 2 x 64 x 8 x 256 + 2 x 64 x 4 x 256, FFN 3 x 64 x 96, norms 4 x 64 + 2 x 256
    layer = 2 * 64 * 2048 + 2 * 64 * 1024 + 3 * 64 * 96 + 4 * 64 + 2 * 256
    assert text["parameters"]["total"] == 2 * layer + 64 + 1000 * 64
    assert text["model"]["status"] == whole["model"]["status"] == "exact"
    assert text["parameters"]["total"] < whole["parameters"]["total"]


def write(folder: Path, name: str, fields: dict[str, object]) -> str:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(fields))
    return str(path)


@pytest.mark.parametrize("extra", [[], ["--explain"], ["--json"]], ids=str)
def test_warnings_of_several_models_say_whose_they_are(run: Run, tmp_path: Path, extra: list[str]) -> None:
    first = write(tmp_path, "first.json", CONFIG | {"odd": 1})
    second = write(tmp_path, "second.json", CONFIG | {"odder": 1})
    tail = "ignored; the count may be wrong"

    assert run("count", first, second, *extra)[2].splitlines() == [
        f"warning: first: qwen2: unrecognised key 'odd' {tail}",
        f"warning: second: qwen2: unrecognised key 'odder' {tail}",
    ]
    assert run("count", first, *extra)[2].splitlines() == [f"warning: qwen2: unrecognised key 'odd' {tail}"]


def test_models_that_share_a_name_are_told_apart_by_their_source(run: Run, tmp_path: Path) -> None:
    paths = [write(tmp_path, f"{folder}/model.json", CONFIG | {"odd": 1}) for folder in ("a", "b")]

    assert [line.split(": ")[1] for line in run("count", *paths)[2].splitlines()] == paths


@pytest.mark.parametrize("stated", ["dtype", "torch_dtype"])
@pytest.mark.parametrize("changed", ["dtype", "torch_dtype"])
@pytest.mark.parametrize("model_type", ["qwen2", "transformer"])
def test_an_override_of_the_dtype_holds_under_either_name(
    run: Run, tmp_path: Path, stated: str, changed: str, model_type: str
) -> None:
    own = {"model_type": "transformer", "d_model": 64, "n_heads": 4, "n_layers": 3}
    fields = {key: value for key, value in CONFIG.items() if key != "torch_dtype"} if model_type == "qwen2" else own
    stated = "dtype" if model_type == "transformer" else stated
    path = write(tmp_path, "model.json", fields | {stated: "float16"})

    code, out, err = run("count", path, "--set", f"{changed}=float64", "--json")

    assert (code, err) == (0, "")
    assert json.loads(out)["weights"]["dtype"] == "float64"


@pytest.mark.parametrize("stated", ["n_layer", "num_hidden_layers"])
@pytest.mark.parametrize("changed", ["n_layer", "num_hidden_layers"])
def test_an_override_holds_under_whatever_name_the_file_has(
    run: Run, tmp_path: Path, stated: str, changed: str
) -> None:
    path = write(tmp_path, "model.json", {"model_type": "gpt2", stated: 3, "dtype": "float32"})

    code, out, err = run("count", path, "--set", f"{changed}=1", "--json")

    assert (code, err) == (0, "")
    assert json.loads(out)["parameters"]["total"] == 124_439_808 - 11 * 7_087_872


def test_an_override_takes_hugging_faces_names_of_our_own_fields(run: Run) -> None:
    _, ours, _ = run("count", "tutorial-110m", "--set", "n_layers=1", "--json")
    _, theirs, err = run("count", "tutorial-110m", "--set", "num_hidden_layers=1", "--json")

    assert (theirs, err) == (ours, "")
    # by hand: 110m = embedding 32000 x 768, final norm 768, and 12 x (4 x 768^2 + 2 x 768 x 3072 + 2 x 768)
    assert json.loads(ours)["parameters"]["total"] == 32_000 * 768 + 768 + 7_079_424


def test_an_override_reaches_what_a_section_leaves_open(run: Run) -> None:
    _, out, err = run("count", "tutorial-moe", "--set", "moe.d_ff=64", "--json")

    assert err == ""
    assert json.loads(out)["components"]["experts"]["total"] == 12 * 8 * 2 * 768 * 64
    _, out, _ = run("count", "tutorial-110m", "--set", "moe.experts=4", "--set", "moe.top_k=1", "--json")
    assert json.loads(out)["components"]["experts"]["active"] == 12 * 2 * 768 * 3072


@pytest.mark.parametrize("name", ["gpt2", "GPT2"])
def test_a_model_counted_as_what_it_is_stays_exact(run: Run, name: str) -> None:
    assert run("count", "gpt2", "--as-family", name, "--json") == run("count", "gpt2", "--json")


def test_a_head_is_kept_where_the_family_is_its_own(run: Run) -> None:
    head = ["--set", 'architectures=["GPT2Model"]', "--json"]

    assert run("count", "gpt2", "--as-family", "gpt2", *head) == run("count", "gpt2", *head)


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (["gpt2", "--as-family", ""], "unknown family ''"),
        (["tutorial-110m", "--as-family", "llama"], "model_type: transformer cannot be counted as 'llama'"),
        (["tutorial-110m", "--as-family", ""], "model_type: transformer cannot be counted as ''"),
        (["gpt2", "--as-family", "transformer"], "transformer describes models of its own"),
    ],
)
def test_a_family_that_a_model_cannot_be_counted_as(run: Run, argv: list[str], problem: str) -> None:
    code, out, err = run("count", *argv)

    assert (code, out) == (2, "")
    assert err.startswith(f"error: {problem}")


STEERING = "two\nlines \x1b[31mred\x1b[0m \u202ereversed \r over"
STEERED = r"two\nlines \x1b[31mred\x1b[0m \u202ereversed \r over"


@pytest.mark.parametrize("extra", [[], ["--depth", "2"], ["--explain"], ["--format", "csv"], ["--format", "markdown"]])
def test_a_name_cannot_break_what_is_drawn(run: Run, tmp_path: Path, extra: list[str]) -> None:
    path = write(tmp_path, "model.json", CONFIG | {"name": STEERING, f"key {STEERING}": 1})

    code, out, err = run("count", path, *extra)

    assert code == 0
    assert STEERED in out.replace("\\\\", "\\")
    assert all(character.isprintable() or character == "\n" for character in out + err)
    assert len(run("count", path, path)[1].splitlines()) == 4


def test_parts_that_a_file_names_cannot_break_what_is_drawn(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "model.json", {"model_type": "xmod", "languages": [STEERING], "num_hidden_layers": 1})

    for extra in ([], ["--depth", "9"], ["--explain"], ["--format", "csv"], ["--explain", "--format", "csv"]):
        code, out, err = run("count", path, *extra)
        assert code == 0
        assert all(character.isprintable() or character == "\n" for character in out + err)


def test_counting_what_is_no_model_says_how_to_get_one() -> None:
    for thing in ("gpt2", None, CONFIG, Path("config.json")):
        with pytest.raises(paramcalc.ParamcalcError, match="count needs a Model, not a ") as error:
            paramcalc.count(thing)  # type: ignore[arg-type]
        assert error.value.hint == "make one with paramcalc.load(...)"
