"""Counts and bytes as people read and write them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from paramcalc.base.dtypes import dtype
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.units import human_bytes, human_count, number_of, parse_amount, parse_bytes, parse_tokens, percent


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1000, "1.00 K"), (8_030_261_248, "8.03 B"), (124_439_808, "124.4 M"), (10**12, "1.00 T")],
)
def test_counts_are_decimal(number: int, text: str) -> None:
    assert human_count(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(1023, "1,023 B"), (1024, "1.00 KiB"), (16_060_522_496, "14.96 GiB"), (2**40, "1.00 TiB")]
)
def test_bytes_are_binary_and_say_so(number: int, text: str) -> None:
    assert human_bytes(number) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(1, 3, "33.3 %"), (1536, 7_079_424, "0.02 %"), (1, 10**7, "<0.001 %"), (0, 5, "0.0 %"), (5, 5, "100.0 %")],
)
def test_shares_never_round_to_nothing(part: int, whole: int, text: str) -> None:
    assert percent(part, whole) == text


@pytest.mark.parametrize(
    ("text", "number", "is_bytes"),
    [
        ("1.1B", 1_100_000_000, False),
        ("350M", 350_000_000, False),
        ("2G", 2_000_000_000, False),
        ("4e9", 4_000_000_000, False),
        ("1.5E+12", 1_500_000_000_000, False),
        ("8,030,261,248", 8_030_261_248, False),
        ("8GiB", 8_589_934_592, True),
        ("8GB", 8_000_000_000, True),
    ],
)
def test_budgets(text: str, number: int, is_bytes: bool) -> None:
    assert parse_amount(text) == (number, is_bytes)


@pytest.mark.parametrize("text", ["", "B", "-3", "1.5.2B", "4e", "4e-9", "4e999", "e9", "4e9B", "4e9GiB"])
def test_other_texts_are_no_budgets(text: str) -> None:
    with pytest.raises(ParamcalcError, match="is not a budget"):
        parse_amount(text)


@pytest.mark.parametrize(
    ("name", "elements", "size"),
    [("bfloat16", 3, 6), ("torch.float32", 3, 12), ("BF16", 1, 2), ("int8", 5, 5), ("int4", 5, 3), ("float64", 1, 8)],
)
def test_dtypes_count_bytes(name: str, elements: int, size: int) -> None:
    assert dtype(name).bytes(elements) == size


def test_an_unknown_dtype_names_the_nearest() -> None:
    with pytest.raises(ParamcalcError, match="unknown dtype 'bfloat61'") as error:
        dtype("bfloat61")

    assert "bfloat16" in (error.value.hint or "")


@pytest.mark.parametrize(
    ("text", "size"), [("24GiB", 25_769_803_776), ("80GB", 80_000_000_000), ("512 MiB", 536_870_912), ("1.5kB", 1500)]
)
def test_sizes_say_which_kind_they_are(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(("text", "tokens"), [("8192", 8192), ("8k", 8192), ("2.5K", 2560), ("1m", 1_048_576)])
def test_tokens_in_thousands_are_binary(text: str, tokens: int) -> None:
    assert parse_tokens(text) == tokens


@pytest.mark.parametrize("text", ["0", "0.5", "2.5", "1.0001k", "8kb", "-1", "1e3", ""])
def test_parts_of_a_token_are_refused(text: str) -> None:
    with pytest.raises(ParamcalcError, match="is not a number of tokens"):
        parse_tokens(text)


def test_one_is_not_several() -> None:
    assert [number_of(1, "new token"), number_of(2048, "new token")] == ["1 new token", "2,048 new tokens"]


@pytest.mark.parametrize("text", ["24G", "many", "-1GiB", "1 Gib it", ""])
def test_a_size_without_its_kind_is_refused(text: str) -> None:
    with pytest.raises(ParamcalcError):
        parse_bytes(text)


@pytest.mark.parametrize("parse", [parse_amount, parse_tokens, parse_bytes])
def test_digits_without_end_are_no_number(parse: Callable[[str], object]) -> None:
    with pytest.raises(ParamcalcError, match="is not a"):
        parse("9" * 5000)
