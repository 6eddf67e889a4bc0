"""The strict view: what it reads, what it refuses, and what it reports."""

from __future__ import annotations

from typing import Any

import pytest

from paramcalc.base.errors import ConfigError
from paramcalc.config.audit import learned_activations, unread_keys
from paramcalc.config.fields import LARGEST_DEPTH, LARGEST_SIZE
from paramcalc.config.known_keys import known_keys
from paramcalc.config.schema import ConfigSchema
from paramcalc.config.view import Config

READING = ConfigSchema(
    defaults={
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "head_dim": None,
        "q_lora_rank": 64,
        "tied": True,
        "activation": "relu",
        "first_k_dense_replace": 1,
        "layer_types": None,
    },
    names={"hidden_size": "n_embd"},
    nullable=["q_lora_rank"],
    fixed={"window": 16},
    unused=["decoration"],
)


def view(**fields: Any) -> Config:
    return Config(fields, READING, family="x", origin="x.json")


def test_a_field_is_read_under_its_own_and_its_canonical_name() -> None:
    assert view(n_embd=5).hidden_size == 5
    assert view(hidden_size=5).hidden_size == 5


def test_two_names_that_disagree_are_an_error() -> None:
    with pytest.raises(ConfigError, match=r"n_embd.* is 5, but 'hidden_size' is 6 in x\.json"):
        _ = view(n_embd=5, hidden_size=6).hidden_size


def test_absent_and_null_mean_the_default() -> None:
    assert view().hidden_size == 768
    assert view(n_embd=None).hidden_size == 768


def test_null_is_a_value_where_it_means_something() -> None:
    assert view(q_lora_rank=None).q_lora_rank is None
    assert view().q_lora_rank == 64


def test_fixed_fields_do_not_listen_to_the_file() -> None:
    c = view(window=32)

    assert c.window == 16
    assert unread_keys(c) == ["window"]


def test_an_undeclared_field_is_a_slip_of_the_recipe() -> None:
    with pytest.raises(AttributeError, match="no declared default"):
        _ = view().hidden_sizes


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (0, "must be at least 1, not 0"),
        (-4, "must be at least 1, not -4"),
        (2.5, "must be an integer, not 2.5"),
        (2.0, "must be an integer, not 2.0"),
        (float("nan"), "must be an integer, not nan"),
        ("auto", "must be an integer, not 'auto'"),
        (True, "must be an integer, not true"),
        ([5], r"must be an integer, not \[5\]"),
        (LARGEST_SIZE + 1, "above the limit of 1,000,000,000"),
        (10**400, "absurdly large"),
    ],
    ids=str,
)
def test_sizes_are_whole_numbers_in_range(value: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"x: n_embd \(hidden_size\) .*{problem}"):
        _ = view(n_embd=value).hidden_size


def test_depth_has_a_limit_of_its_own() -> None:
    assert view(num_hidden_layers=LARGEST_DEPTH).num_hidden_layers == LARGEST_DEPTH
    with pytest.raises(ConfigError, match="above the limit of 100,000"):
        _ = view(num_hidden_layers=LARGEST_DEPTH + 1).num_hidden_layers


def test_zero_is_fine_where_it_means_none() -> None:
    assert view(first_k_dense_replace=0).first_k_dense_replace == 0


def test_digits_in_quotes_are_read_with_a_doubt() -> None:
    c = view(n_embd="32000")

    assert c.hidden_size == 32000
    assert c.doubts == ["x: n_embd is a string ('32000'); read as an integer"]


@pytest.mark.parametrize(("name", "value"), [("tied", 1), ("tied", "true"), ("activation", 5)])
def test_flags_and_words_are_checked(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match="must be"):
        getattr(view(**{name: value}), name)


def test_a_list_per_layer_is_as_long_as_the_depth() -> None:
    c = view(num_hidden_layers=2, layer_types=["a", "b", "a"])

    with pytest.raises(ConfigError, match="layer_types has 3 entries for 2 layers"):
        c.layer_words("layer_types", {"a", "b"})


def test_an_unknown_layer_word_is_an_error() -> None:
    with pytest.raises(ConfigError, match="unknown entry 'c'") as error:
        view(num_hidden_layers=2, layer_types=["a", "c"]).layer_words("layer_types", {"a", "b"})

    assert error.value.hint == "known: a, b"


@pytest.mark.parametrize("value", ["full_attention", 5, {"a": 1}], ids=["text", "number", "mapping"])
def test_a_list_must_be_a_list(value: Any) -> None:
    with pytest.raises(ConfigError, match="must be a list"):
        view(layer_types=value).layer_words("layer_types", {"a"})


def test_foreign_keys_are_reported_and_known_ones_are_not() -> None:
    c = view(
        n_embd=5,
        tied=True,  # its own, though nobody read it
        gate_per_layer=True,
        rope_theta=1e4,  # harmless
        decoration="x",  # declared as unused
        mlp_bias=False,  # harmless when off
        qkv_bias=True,  # and not when on
        other=None,  # null is absent
    )
    _ = c.hidden_size

    assert unread_keys(c) == ["gate_per_layer", "qkv_bias"]


def test_an_activation_with_parameters_is_never_harmless() -> None:
    assert unread_keys(view(hidden_act="silu")) == []
    assert learned_activations(view(hidden_act="silu")) == []
    assert unread_keys(view(hidden_act="xielu")) == []
    assert learned_activations(view(hidden_act="xielu")) == [("hidden_act", "xielu")]


def test_null_for_a_flag_that_is_on_by_default_is_a_doubt() -> None:
    c = view(tied=None)

    assert c.tied is True
    assert c.doubts == ["x: tied is null; its default, true, is assumed"]


def test_sections_report_under_their_path() -> None:
    c = view(text={"hidden_size": 5, "odd": 1})
    section = c.section("text", ConfigSchema({"hidden_size": 7}))

    assert section.hidden_size == 5
    assert unread_keys(c) == ["text.odd"]


def test_a_section_must_be_a_mapping() -> None:
    with pytest.raises(ConfigError, match="text must be a mapping, not 'x'"):
        view(text="x").section("text", READING)


def test_an_error_in_a_section_names_its_path() -> None:
    section = view(text={"hidden_size": -1}).section("text", ConfigSchema({"hidden_size": 7}))

    with pytest.raises(ConfigError, match=r"text\.hidden_size must be at least 1"):
        _ = section.hidden_size


def test_no_key_is_both_harmless_and_harmless_when_off() -> None:
    assert not known_keys().harmless & known_keys().harmless_when_off
