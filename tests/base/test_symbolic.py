"""Sizes that remember how they were made."""

from __future__ import annotations

import copy
import pickle

import pytest

from paramcalc.base.symbolic import (
    SymbolicInt,
    formula,
    polynomial,
    simplify,
    symbolic,
    symbols_and_numbers,
    symbols_in,
)

D, H, DH, G = symbolic("d", 768, origin="hidden_size"), symbolic("h", 12), symbolic("d_h", 64), symbolic("g", 4)


@pytest.mark.parametrize(
    ("size", "value", "text"),
    [
        (D, 768, "d"),
        (H * DH, 768, "h d_h"),
        (4 * D, 3072, "4 d"),
        (D * 5, 3840, "5 d"),
        (H * (DH + G), 816, "h g + h d_h"),
        (D - G, 764, "d - g"),
        (D * D + 2 * D, 591_360, "d^2 + 2 d"),
        (7 + D, 775, "d + 7"),
    ],
)
def test_arithmetic_keeps_value_and_formula(size: int, value: int, text: str) -> None:
    assert size == value
    assert formula(polynomial(size)) == text


@pytest.mark.parametrize("size", [D // 5, -(-D // 16), max(D, H), D % 7], ids=["floor", "ceiling", "max", "rest"])
def test_other_operations_give_plain_numbers(size: int) -> None:
    assert int(size) == size
    assert formula(polynomial(size)) in (f"{size:,}", "d", "h")


def test_a_dim_is_an_integer() -> None:
    assert [1] * symbolic("n", 3) == [1, 1, 1]
    assert symbolic("n", 3) * [1] == [1, 1, 1]
    assert f"{H * DH:,}" == "768"
    assert hash(D) == hash(768)


def test_copies_keep_the_formula() -> None:
    for twin in (copy.deepcopy(H * DH), pickle.loads(pickle.dumps(H * DH))):
        assert isinstance(twin, SymbolicInt)
        assert formula(polynomial(twin)) == "h d_h"


def test_spelling_puts_sums_in_brackets() -> None:
    assert symbols_and_numbers(H * (DH + G)) == ("h (d_h + g)", "12 x (64 + 4)")


def test_symbols_know_their_origin() -> None:
    assert symbols_in(D * H) == {"d": (768, "hidden_size"), "h": (12, "")}


def test_coinciding_sizes_shorten_a_formula() -> None:
    terms = polynomial(2 * (D * H * DH) + 2 * (D * G * DH))

    short, facts = simplify(terms, {"d": 768, "h": 12, "d_h": 64, "g": 4})

    assert formula(short) == "2 d^2 + 2 d g d_h"
    assert facts == ["h d_h = d"]
