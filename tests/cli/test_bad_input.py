"""Whatever is wrong with the input: exit code 2, two lines on stderr, nothing on stdout, never a traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}
SMALL = {"model_type": "transformer", "d_model": 64, "n_layers": 2, "n_heads": 4, "d_ff": 96, "vocab_size": 100}


def refused(run: Run, *argv: str) -> str:
    """Run, check the manners of a refusal, and return the error line."""
    code, out, err = run("count", *argv)
    assert code == 2, err
    assert out == ""
    lines = err.splitlines()
    assert lines[0].startswith("error: ")
    assert len(lines) <= 2
    assert all(line.startswith("hint: ") for line in lines[1:])
    return lines[0]


CONTENTS = [
    ("", "is empty"),
    ("   \n", "is empty"),
    ("{", "not valid JSON"),
    ("[1, 2]", "holds a list"),
    ("NaN", "holds a single value, not the fields"),
    ('"llama"', "holds a string"),
    ("null", "holds nothing"),
    ('{"model_type": "llama", "model_type": "gpt2"}', "has the key 'model_type' twice"),
    ('{"hidden_size": 64}', "no model_type"),
    ('{"model_type": 5}', "model_type must be a string"),
    ('{"architectures": [5]}', "architectures must be a list of class names"),
    ('{"peft_type": "LORA", "r": 16}', "describes an adapter"),
    ('{"tokenizer_class": "LlamaTokenizer", "added_tokens_decoder": {}}', "is a tokenizer's config"),
    ('{"transformers_version": "5.0", "eos_token_id": 2}', "is a generation config"),
    ('{"added_tokens": [], "normalizer": null}', "is a tokenizer, not a model's config"),
    ('{"bos_token": "<s>"}', "is a map of special tokens"),
    ('{"metadata": {}, "weight_map": {}}', "is the index of weight files"),
    ('{"image_processor_type": "CLIPImageProcessor"}', "is a preprocessor's config"),
    ('{"_class_name": "UNet2DConditionModel", "_diffusers_version": "0.31"}', "is part of a diffusers pipeline"),
    ('{"name": "a-package", "version": "1.0.0"}', "no model_type"),
    ("[" * 100_000, "not usable JSON: it is nested too deeply"),
    ('{"model_type": "llama", "hidden_size": ' + "9" * 5000 + "}", "a number with too many digits"),
]


@pytest.mark.parametrize(
    ("text", "problem"),
    CONTENTS,
    ids=range(len(CONTENTS)),
)
def test_files_that_are_no_configs(run: Run, tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)

    assert problem in refused(run, str(path))


YAMLS = {
    "tag": ("model_type: !!python/object/apply:os.system [echo]", "not valid YAML"),
    "duplicate": ("model_type: llama\nmodel_type: gpt2", "duplicate key 'model_type'"),
    "list": ("- llama", "holds a list"),
    "aliases": ("a: &a 1\nb: [" + ", ".join(["*a"] * 200) + "]", "more than 100 YAML aliases"),
    "unclosed": ("a: [1", "not valid YAML"),
    "number key": ("1: 2\nmodel_type: llama", "a key that is not a string"),
    "bomb": (
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [" + ",".join([f"*{chr(97 + i)}"] * 12) + "]\n" for i in range(12)),
        "more than 100 YAML aliases",
    ),
}


@pytest.mark.parametrize("name", YAMLS)
def test_yaml_that_is_no_config(run: Run, tmp_path: Path, name: str) -> None:
    text, problem = YAMLS[name]
    path = tmp_path / "model.yaml"
    path.write_text(text)

    assert problem in refused(run, str(path))


def write(tmp_path: Path, fields: dict[str, Any]) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(fields))
    return str(path)


FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "zero": ({"hidden_size": 0}, "hidden_size must be at least 1, not 0"),
    "negative": ({"num_hidden_layers": -2}, "num_hidden_layers must be at least 1, not -2"),
    "fraction": ({"hidden_size": 64.5}, "hidden_size must be an integer, not 64.5"),
    "absurd": ({"vocab_size": 10**30}, "above the limit of 1,000,000,000"),
    "too deep": ({"num_hidden_layers": 10**7}, "above the limit of 100,000"),
    "nan": ({"hidden_size": float("nan")}, "hidden_size must be an integer, not nan"),
    "infinite": ({"hidden_size": float("inf")}, "hidden_size must be an integer, not inf"),
    "text": ({"hidden_size": "large"}, "hidden_size must be an integer, not 'large'"),
    "auto": ({"vocab_size": "auto"}, "vocab_size must be an integer, not 'auto'"),
    "list": ({"hidden_size": [64]}, "hidden_size must be an integer, not [64]"),
    "flag": ({"attention_bias": "yes"}, "attention_bias must be true or false, not 'yes'"),
    "heads": ({"num_attention_heads": 5}, "num_attention_heads (5) is not divisible by num_key_value_heads (2)"),
    "width": (
        {"num_attention_heads": 6},
        "hidden_size (64) is not divisible by num_attention_heads (6)",
    ),
    "dtype": ({"torch_dtype": "float61"}, "unknown dtype 'float61'"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_that_cannot_be(run: Run, tmp_path: Path, name: str) -> None:
    changes, problem = FIELDS[name]

    assert problem in refused(run, write(tmp_path, LLAMA | changes))


SECTION_OF_EXPERTS = "a section (experts, top_k, d_ff, shared, every, first_dense)"
OWN_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({"d_model": None}, "d_model must be a whole number, not null"),
    "unknown": ({"d_modle": 5}, "d_modle is not a field of it"),
    "zero": ({"n_heads": 0}, "n_heads must be at least 1, not 0"),
    "absurd": ({"n_layers": 100_001}, "n_layers is 100,001, above the limit of 100,000"),
    "text": ({"d_ff": "large"}, "d_ff must be a whole number, not 'large'"),
    "fraction": ({"d_ff": 1.5}, "d_ff must be a whole number, not 1.5"),
    "word": ({"norm": "batch"}, "norm must be rms or layer, not 'batch'"),
    "no word": ({"dtype": 16}, "dtype must be a word, not 16"),
    "flag": ({"tie_embeddings": 1}, "tie_embeddings must be true or false, not 1"),
    "heads": ({"n_heads": 7}, "d_model (64) is not divisible by n_heads (7)"),
    "kv heads": ({"n_kv_heads": 3}, "n_heads (4) is not divisible by n_kv_heads (3)"),
    "depth": ({"layers": [{"repeat": 3}]}, "layers describes 3 layers, n_layers says 2"),
    "experts": ({"moe": 8}, f"moe must be {SECTION_OF_EXPERTS}, not 8"),
    "shared": ({"moe": {"experts": 8, "top_k": 2, "shared": -1}}, "moe.shared must be at least 0, not -1"),
    "top_k": ({"moe": {"experts": 2, "top_k": 3}}, "moe is impossible: top_k (3) is more than experts (2)"),
    "bias": ({"bias": 5}, "bias must be true or false or a section (attention, ffn, head), not 5"),
    "part of bias": ({"bias": {"ffn": 3}}, "bias.ffn must be true or false, not 3"),
    "layers": ({"layers": {"n": 2}}, "layers must be a list of sections, each for one or several layers"),
    "layer": ({"layers": [2]}, "layers[0] must be a section (repeat, n_heads, n_kv_heads, head_dim, d_ff, ffn, moe"),
    "layer's experts": ({"layers": [{"moe": True}]}, f"layers[0].moe must be {SECTION_OF_EXPERTS} or false, not true"),
    "layer's top_k": ({"layers": [{"moe": {"experts": 4}}]}, "layers[0].moe.top_k is required and missing"),
    "positions": ({"positions": "learned"}, "positions: learned goes with max_positions"),
    "gated": ({"ffn": "gated", "d_ff": None}, "d_ff is required for a gated ffn"),
    "no name": ({"": 1}, "transformer: '' is not a field of it"),
    "its dtype": ({"dtype": "float61"}, "unknown dtype 'float61' in "),
}


@pytest.mark.parametrize("name", OWN_FIELDS)
def test_own_fields_that_cannot_be(run: Run, tmp_path: Path, name: str) -> None:
    changes, problem = OWN_FIELDS[name]

    assert problem in refused(run, write(tmp_path, SMALL | changes))


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"hidden_size": 64}, "paramcalc's own family calls it d_model"),
        ({"num_hidden_layers": 64}, "paramcalc's own family calls it n_layers"),
        ({"d_modle": 64}, "did you mean 'd_model'"),
        ({"moe": {"experts": 8, "topk": 2}}, "did you mean 'top_k'?"),
        ({"layers": [{"repeats": 2}]}, "did you mean 'repeat'?"),
        ({"top_k": 2}, "did you mean 'moe.top_k'?"),
        ({"quite_another": 2}, "`paramcalc schema model` lists every field"),
    ],
)
def test_own_fields_that_are_not_known_get_a_hint(run: Run, tmp_path: Path, changes: dict[str, Any], hint: str) -> None:
    code, out, err = run("count", write(tmp_path, SMALL | changes))

    assert (code, out) == (2, "")
    assert "is not a field of it" in err
    assert err.splitlines()[1].startswith(f"hint: {hint}")


def test_a_missing_required_field_is_named(run: Run, tmp_path: Path) -> None:
    without = {key: value for key, value in SMALL.items() if key != "d_model"}

    assert "transformer: d_model is required and missing" in refused(run, write(tmp_path, without))


def test_a_list_of_the_wrong_length_names_the_field(run: Run, tmp_path: Path) -> None:
    fields = {"model_type": "gemma2", "num_hidden_layers": 3, "layer_types": ["full_attention"], "dtype": "bfloat16"}

    assert "gemma2: layer_types has 1 entries for 3 layers" in refused(run, write(tmp_path, fields))


@pytest.mark.parametrize(
    ("word", "hint"), [("llma", "did you mean 'llama'"), ("zzz", "`paramcalc families` lists all")]
)
def test_an_unknown_family_gets_suggestions(run: Run, tmp_path: Path, word: str, hint: str) -> None:
    path = write(tmp_path, LLAMA | {"model_type": word})
    code, out, err = run("count", path)

    assert (code, out) == (2, "")
    assert err.startswith(f"error: unknown model_type '{word}' in {path}\nhint: ")
    assert hint in err


@pytest.mark.parametrize(
    "fields",
    [
        {"model_type": "deberta-v2", "pos_att_type": 5},
        {"model_type": "xmod", "languages": True},
        {"model_type": "reformer", "attn_layers": [[1]]},
        {"model_type": "qwen2_audio", "text_config": {"model_type": {"a": 1}}},
    ],
    ids=str,
)
def test_lists_and_sections_of_the_wrong_kind(run: Run, tmp_path: Path, fields: dict[str, Any]) -> None:
    assert fields["model_type"] in refused(run, write(tmp_path, fields))


def test_a_section_whose_model_type_is_a_number(run: Run, tmp_path: Path) -> None:
    fields = {"model_type": "vision-encoder-decoder", "decoder": {"model_type": 2.5}}

    assert "decoder.model_type must be a string, not 2.5" in refused(run, write(tmp_path, fields))


def test_places_without_a_model(run: Run, tmp_path: Path) -> None:
    assert "no such file" in refused(run, str(tmp_path / "nothing.json"))
    assert "no config.json in directory" in refused(run, str(tmp_path))
    (tmp_path / "adapter_config.json").write_text("{}")
    assert "describes an adapter" in refused(run, str(tmp_path))


def test_a_sentence_transformers_folder_is_explained(run: Run, tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[]")

    assert "sentence-transformers folder" in refused(run, str(tmp_path))


def test_paths_with_spaces_and_unicode_are_fine(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "größe 7 B ✓"
    folder.mkdir()
    (folder / "config.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(LLAMA).encode())  # and a BOM

    code, out, err = run("count", str(folder), "--json")

    assert (code, err) == (0, "")
    assert json.loads(out)["model"]["name"] == "größe 7 B ✓"


def test_a_weight_file_is_not_a_config(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(bytes(range(256)))

    assert "is not UTF-8 text" in refused(run, str(path))


def test_a_file_of_many_megabytes_is_not_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(11 * 2**20)

    assert "is larger than" in refused(run, str(path))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file(run: Run, tmp_path: Path) -> None:
    path = Path(write(tmp_path, LLAMA))
    path.chmod(0)

    assert "not allowed to read" in refused(run, str(path))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs devices")
@pytest.mark.parametrize(("device", "problem"), [("/dev/null", "is empty"), ("/dev/zero", "is larger than")])
def test_a_device_is_read_as_far_as_a_config_can_be_long(run: Run, device: str, problem: str) -> None:
    assert problem in refused(run, device)


@pytest.mark.parametrize(
    "name",
    ["llama3-8", "../README", "..", "/etc/passwd", "a/b", "llama3-8b.yaml", "", "x\0y", "presets/llama3-8b.yaml"],
)
def test_preset_names_never_leave_the_folder(run: Run, name: str) -> None:
    assert "no preset" in refused(run, "--preset", name)


def test_a_preset_that_looks_like_a_path_is_explained(run: Run) -> None:
    assert "that looks like a path" in refused(run, "--preset", "models/config.json")


def test_a_misspelt_preset_gets_suggestions(run: Run) -> None:
    code, _, err = run("count", "lama3-8b")

    assert code == 2
    assert "did you mean 'llama3-8b'" in err


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("hiden_size=5", "no such field"),
        ("hidden_size", "not KEY=VALUE"),
        ("=5", "not KEY=VALUE"),
        ("text_config.hidden_size=5", "text_config is not a section"),
        ("hidden_size=large", "must be an integer"),
        ("hidden_size=5.5", "must be an integer"),
    ],
)
def test_settings_that_cannot_be(run: Run, setting: str, problem: str) -> None:
    assert problem in refused(run, "llama3-8b", "--set", setting)


@pytest.mark.parametrize(
    "argv",
    [["--nonsense"], ["--format", "xml"], ["--depth", "x"], ["--depth", "0"], ["--as-family", "nothing"], []],
    ids=str,
)
def test_usage_errors_have_the_same_manners(run: Run, argv: list[str]) -> None:
    refused(run, *(["llama3-8b", *argv] if argv else []))


def test_errors_are_json_too_where_json_was_asked_for(run: Run) -> None:
    for argv in (["count", "nowhere.json", "--json"], ["count", "--json"], ["count", "gpt2", "--format=json", "--no"]):
        code, out, err = run(*argv)

        assert code == 2
        assert json.loads(out)["error"]["exit_code"] == 2
        assert json.loads(out)["error"]["message"] in err


def test_an_output_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    assert "cannot write" in refused(run, "gpt2", "--output", str(tmp_path / "no" / "such" / "file"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model_type: llama\nhidden_size: 010000\n", "010000 is octal or base 60"),
        ("model_type: llama\nhidden_size: 1:30:00\n", "1:30:00 is octal or base 60"),
        ("model_type: llama\nhidden_size: !!bool abc\n", "not usable YAML"),
        ("model_type: llama\nhidden_size: !!timestamp abc\n", "not usable YAML"),
        ('model_type: llama\nhidden_size: !!int ""\n', "not usable YAML"),
    ],
)
def test_yaml_that_reads_otherwise_than_it_looks(run: Run, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(text)
    assert message in refused(run, str(path))


def test_an_error_never_shows_the_whole_of_a_value(run: Run, tmp_path: Path) -> None:
    aliases = "".join(f"k{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 45))  # 2**44 entries, written out
    path = tmp_path / "bomb.yaml"
    path.write_text(f"a: &a0 [z]\n{aliases}model_type: llama\nhidden_size: *a44\n")
    assert len(refused(run, str(path))) < 300


@pytest.mark.parametrize("layers", [[], [{"repeat": 100_000}, {"repeat": 1}]], ids=["none", "more than can be meant"])
def test_a_depth_that_nobody_means(run: Run, tmp_path: Path, layers: list[Any]) -> None:
    path = tmp_path / "m.json"
    path.write_text(json.dumps({k: v for k, v in SMALL.items() if k != "n_layers"} | {"layers": layers}))
    assert "1 to 100,000 can be meant" in refused(run, str(path))


@pytest.mark.parametrize("name", ["a" * 5000, "a" * 300 + ".json"])
def test_a_name_too_long_for_a_file(run: Run, name: str) -> None:
    refused(run, name)


def test_what_would_steer_a_terminal_is_escaped(run: Run) -> None:
    assert r"esc\x1b[31m\n.json" in refused(run, "esc\x1b[31m\n.json")


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_is_not_the_current_directory(run: Run, name: str) -> None:
    assert "the model name is empty" in refused(run, name)


@pytest.mark.parametrize(
    ("first", "second"), [("1", "true"), ("1", "1.0"), ("[0]", "[false]"), ('{"a": 1}', '{"a": true}')]
)
def test_values_that_only_python_takes_for_equal_contradict_each_other(
    run: Run, tmp_path: Path, first: str, second: str
) -> None:
    path = tmp_path / "config.json"
    path.write_text(f'{{"model_type": "llama", "x": {first}, "x": {second}}}')

    assert f"has the key 'x' twice: {first} and {second}" in refused(run, str(path))


def test_two_names_of_a_field_must_agree_in_kind_too(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, {"model_type": "gpt2", "n_layer": 1, "num_hidden_layers": True})

    assert "n_layer is 1, but 'num_hidden_layers' is true" in refused(run, path)


def test_a_value_said_twice_alike_is_no_contradiction(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "gpt2", "x": {"a": 1, "b": 2}, "x": {"b": 2, "a": 1}, "dtype": "float32"}')

    assert run("count", str(path))[0] == 0


@pytest.mark.parametrize(("layers", "shown"), [(100_001, "100,001"), (10**15, "1,000,000,000,000,000")])
def test_a_size_beyond_belief_is_shown_as_it_stands(run: Run, tmp_path: Path, layers: int, shown: str) -> None:
    message = refused(run, write(tmp_path, LLAMA | {"num_hidden_layers": layers}))

    assert f"num_hidden_layers is {shown}, above the limit of 100,000" in message


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
@pytest.mark.parametrize("name", ["loop", "loop.json"])
def test_a_loop_of_links_is_said_to_be_one(run: Run, tmp_path: Path, name: str, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).symlink_to("other")
    Path("other").symlink_to(name)

    assert "Too many levels of symbolic links" in refused(run, name)


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_a_link_to_nowhere_names_its_target(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.symlink_to("gone.json")

    assert run("count", str(path)) == (
        2,
        "",
        f"error: no such file: {path}\nhint: it is a symbolic link to gone.json, which does not exist\n",
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("config.json", "did you mean 'conf.json'?"),
        ("settings.json", "give the path of a model's config.json, or a preset name; `paramcalc presets` lists them"),
        ("llama3-8b.yml", "did you mean 'llama3-8b'"),
        ("nowhere/x.json", "there is no folder nowhere; paramcalc does not download"),
        ("some-org/some-model", "there is no folder some-org; paramcalc does not download"),
    ],
)
def test_a_file_that_is_not_there_gets_a_hint(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf.json").write_text("{}")
    code, out, err = run("count", name)

    assert (code, out) == (2, "")
    assert err.splitlines()[0] == f"error: no such file: {name}"
    assert err.splitlines()[1].startswith(f"hint: {hint}")


@pytest.mark.parametrize(
    "arguments",
    [
        ["trace", "gpt2", "--batch", "x"],
        ["memory", "gpt2", "--batch", "0"],
        ["memory", "gpt2", "--pp", "13"],
        ["flops", "gpt2", "--batch", "0"],
        ["fit", "gpt2", "--gpu", "0GiB"],
        ["scale", "gpt2", "--depth", "0"],
        ["scale", "gpt2", "--width", "768", "--rule", "multiple_of=0"],
        ["design", "--budget", "0"],
    ],
)
def test_an_impossible_number_has_a_hint(run: Run, arguments: list[str]) -> None:
    code, out, err = run(*arguments)

    assert (code, out) == (2, "")
    assert [line.split(":")[0] for line in err.splitlines()] == ["error", "hint"]
