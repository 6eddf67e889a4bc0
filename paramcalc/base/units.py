"""Human-readable counts and bytes, in both directions. Figures are integers; only this module rounds them."""

from __future__ import annotations

import re
from decimal import Decimal

from paramcalc.base.errors import ParamcalcError

COUNT_UNITS = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K"))
BYTE_UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_TOKENS = {"": 1, "k": 2**10, "m": 2**20}
FLOP_UNITS = (
    (10**18, "EFLOP"),
    (10**15, "PFLOP"),
    (10**12, "TFLOP"),
    (10**9, "GFLOP"),
    (10**6, "MFLOP"),
    (10**3, "kFLOP"),
)
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}


def human_count(number: int) -> str:
    """`8030261248` as `8.03 B`: decimal, about three digits."""
    return _scaled(number, COUNT_UNITS) or f"{number:,}"


def short_count(number: int) -> str:
    """`109529856` as `110 M`, `1408255488` as `1.41 B`: three digits, for plots; `2 B` if that is exact."""
    for factor, unit in COUNT_UNITS:
        if number >= factor:
            value = Decimal(number) / factor
            places = 2 if value < Decimal("9.995") else 1 if value < Decimal("99.95") else 0
            return f"{value:.{0 if value == int(value) else places}f} {unit}"
    return str(number)


def human_bytes(number: int) -> str:
    """`16060522496` as `14.96 GiB`: always in binary units."""
    return _scaled(number, BYTE_UNITS) or f"{number:,} B"


def human_flops(number: int) -> str:
    """`158140695838720` as `158.1 TFLOP`: decimal, like hardware specifications."""
    return _scaled(number, FLOP_UNITS) or f"{number:,} FLOP"


def _scaled(number: int, steps: tuple[tuple[int, str], ...]) -> str | None:
    for factor, unit in steps:
        if abs(number) >= factor:
            value = Decimal(number) / factor
            places = 2 if value < 100 else 1
            return f"{value:,.{places}f} {unit}"
    return None


def exact(number: int) -> str:
    """`8030261248` as `8,030,261,248`."""
    return f"{number:,}"


def number_of(number: int, word: str) -> str:
    """`1 token`, `2,048 tokens`."""
    return f"{exact(number)} {word}{'' if number == 1 else 's'}"


def percent(part: int, whole: int) -> str:
    """A percentage with one decimal; with more decimals if it would read as zero."""
    if not whole or not part:
        return "0.0 %"
    share = Decimal(100 * part) / whole
    for places in (1, 2, 3):
        if round(share, places):
            return f"{share:.{places}f} %"
    return "<0.001 %"


def parse_amount(text: str) -> tuple[int, bool]:
    """Parse a budget such as `1.1B`, `4e9` or `8GiB` into (number, is it bytes). K, M, B (or G), T are decimal.

    Raises ParamcalcError for anything else.
    """
    match = re.fullmatch(
        r"\s*([0-9][0-9,_]{0,30}(?:\.[0-9]+)?)\s*(?:([KMBGT]?)|e\+?([0-9]{1,2}))\s*", text, re.IGNORECASE
    )
    if match:
        number, unit = Decimal(match[1].replace(",", "").replace("_", "")), (match[2] or "").lower().replace("g", "b")
        return int(number * 10 ** int(match[3] or 0) * _FACTORS[unit]), False
    try:
        return parse_bytes(text), True
    except ParamcalcError as error:
        raise ParamcalcError(f"{text!r} is not a budget", "write it like 1.1B, 350M, 4e9 or 8GiB") from error


def parse_tokens(text: str) -> int:
    """Parse a number of tokens: `8192`, `8k` = 8,192, `128k` = 131,072, `1.5k` = 1,536.

    k and m are binary, as in model cards. Raises ParamcalcError if the text is not a positive whole number of tokens.
    """
    match = re.fullmatch(r"\s*([0-9][0-9,_]{0,30}(?:\.[0-9]{1,9})?)\s*([km]?)\s*", text, re.IGNORECASE)
    number = Decimal(match[1].replace(",", "").replace("_", "")) * _TOKENS[match[2].lower()] if match else Decimal(0)
    if number < 1 or number % 1:
        raise ParamcalcError(f"{text!r} is not a number of tokens", "write it like 8192, 8k (8,192) or 128k (131,072)")
    return int(number)


def parse_bytes(text: str) -> int:
    """Parse a size such as `24GiB`, `80GB` (decimal) or a plain number of bytes.

    Raises ParamcalcError for anything else, also for `G` alone, which could be GiB or GB.
    """
    match = re.fullmatch(r"\s*([0-9][0-9,_]{0,30}(?:\.[0-9]+)?)\s*(|B|[KMGT]i?B)\s*", text, re.IGNORECASE)
    if not match:
        raise ParamcalcError(f"{text!r} is not a size", "write it like 24GiB (binary), 80GB (decimal) or 512MiB")
    number, unit = Decimal(match[1].replace(",", "").replace("_", "")), match[2].lower().removesuffix("b")
    base, power = (1024 if unit.endswith("i") else 1000), " kmgt".index(unit[:1] or " ")
    return int(number * base**power)
