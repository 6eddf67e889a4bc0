"""What the views of a sweep share: a helper's work is done once for all views that it could not tell apart."""

from __future__ import annotations

from typing import Any

import pytest

from paramcalc.base.errors import ConfigError
from paramcalc.config.once import once
from paramcalc.config.schema import Reading
from paramcalc.config.view import Config

READING = Reading({"hidden_size": 8, "num_hidden_layers": 2, "head_dim": 4, "vocab_size": 16, "gated": False})
MADE: list[str] = []


@pytest.fixture(autouse=True)
def _none_made() -> None:
    MADE.clear()


@once
def wide(c: Config, factor: int = 1, **options: Any) -> list[Any]:
    """Looks at the width, and where it is 8 at head_dim."""
    MADE.append("wide")
    return [c.hidden_size * factor, c.head_dim if c.hidden_size == 8 else None, options]


@once
def said(c: Config) -> str:
    MADE.append("said")
    return f"{c.says('head_dim')} {c.raw('head_dim')!r}"


@once
def listed(c: Config) -> list[Any]:
    MADE.append("listed")
    return c.listed("words") or []


@once
def of_root(c: Config) -> Any:
    MADE.append("of_root")
    return c.root.vocab_size


def view(fields: dict[str, Any], **others: Any) -> Config:
    return Config(fields, READING, family="x", origin="x.json", **others)


def test_a_view_of_its_own_shares_nothing() -> None:
    c = view({})
    assert (wide(c), wide(c)) == ([8, 4, {}], [8, 4, {}])
    assert MADE == ["wide", "wide"]


def test_views_that_differ_in_what_a_helper_does_not_read_share_what_it_makes() -> None:
    base = view({"hidden_size": 8})
    shallow, deep = (base.of({"hidden_size": 8, "num_hidden_layers": n}, ["num_hidden_layers"]) for n in (2, 3))
    assert wide(shallow) is wide(deep)
    assert MADE == ["wide"]


def test_arguments_and_heads_tell_calls_apart() -> None:
    base = view({})
    c = base.of({}, ["num_hidden_layers"])
    assert [wide(c), wide(c, 2), wide(c, bias=True), wide(c, gate=True)] == [
        [8, 4, {}],
        [16, 4, {}],
        [8, 4, {"bias": True}],
        [8, 4, {"gate": True}],
    ]
    c.head = "none"
    wide(c)
    assert MADE == ["wide"] * 5


def test_a_field_that_is_read_on_one_way_only_counts_from_then_on() -> None:
    base, keys = view({}), ["hidden_size", "head_dim"]
    made = [
        wide(base.of({"hidden_size": d, "head_dim": h}, keys))[:2]
        for d, h in ((9, 1), (9, 2), (8, 1), (8, 2), (9, 1), (9, 2))
    ]
    assert made == [[9, None], [9, None], [8, 1], [8, 2], [9, None], [9, None]]


def test_a_key_that_varies_later_makes_what_was_made_before_forgotten() -> None:
    base = view({"head_dim": 4})
    assert wide(base.of({"head_dim": 4, "hidden_size": 8}, ["hidden_size"]))[1] == 4
    assert wide(base.of({"head_dim": 2, "hidden_size": 8}, ["hidden_size", "head_dim"]))[1] == 2


@pytest.mark.parametrize("values", [(1, True), (None, "absent"), (1, 1.0)])
def test_values_that_are_equal_but_not_the_same_are_two(values: tuple[Any, Any]) -> None:
    base = view({"head_dim": 4})
    fields = [{} if value == "absent" else {"head_dim": value} for value in values]
    first, second = (said(base.of(one, ["head_dim"])) for one in fields)
    assert first != second


def test_lists_and_other_views_are_looked_at_each_time() -> None:
    base = view({})
    assert [listed(base.of({"words": words}, ["words"])) for words in (["a"], ["b"])] == [["a"], ["b"]]
    for rows in (5, 6):
        root = view({"vocab_size": rows})
        c = base.of({}, ["head_dim"], root=root)
        assert of_root(c) == rows


def test_an_error_is_told_each_time() -> None:
    c = view({}).of({"hidden_size": 0}, ["hidden_size"])
    for _ in range(2):
        with pytest.raises(ConfigError, match="hidden_size must be at least 1, not 0"):
            wide(c)


@once
def named(c: Config) -> dict[str, Any]:
    return {"width": c.hidden_size}


def test_what_is_shared_cannot_be_added_to() -> None:
    shared = named(view({}).of({}, ["head_dim"]))
    assert {**shared, "more": 1} == {"width": 8, "more": 1}
    with pytest.raises(TypeError, match="does not support item assignment"):
        shared["more"] = 1
