"""Integers that remember how they were computed, so that a count can show its arithmetic.

A recipe multiplies sizes (`c.num_attention_heads * c.head_dim`) and gets an integer; `explain` reads the same value
back as a formula (`h d_h`). An operation that is not recorded gives a plain number, so a formula may contain numbers
instead of symbols, but it is never wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Monomial = tuple[str, ...]  # symbols multiplied with each other, in the order of `ORDER`

# The order in which symbols are written in a product: d before h before d_h, as in the papers.
ORDER = ["L", "V", "E", "k", "d", "h", "g", "d_h", "d_n", "d_r", "d_v", "r_q", "r_kv", "d_ff", "d_e", "d_s"]


WIDTH_SYMBOL = "d"  # hidden_size, whatever a family calls it


class SymbolicInt(int):
    """An integer that also holds its symbol (`d`), or the operation (sum, product, difference) that computed it."""

    expression: tuple[Any, ...]

    def __new__(cls, value: int, made: tuple[Any, ...] = ()) -> SymbolicInt:
        self = int.__new__(cls, value)
        self.expression = made
        return self

    def __mul__(self, other: int) -> SymbolicInt:
        if not isinstance(other, int):
            return NotImplemented
        return SymbolicInt(int(self) * int(other), ("*", self, other))

    def __add__(self, other: int) -> SymbolicInt:
        if not isinstance(other, int):
            return NotImplemented
        return SymbolicInt(int(self) + int(other), ("+", self, other))

    def __sub__(self, other: int) -> SymbolicInt:
        if not isinstance(other, int):
            return NotImplemented
        return SymbolicInt(int(self) - int(other), ("-", self, other))

    def __rmul__(self, other: int) -> SymbolicInt:
        if not isinstance(other, int):
            return NotImplemented  # a list: [layer] * depth
        return SymbolicInt(int(other) * int(self), ("*", other, self))

    def __radd__(self, other: int) -> SymbolicInt:
        if not isinstance(other, int):
            return NotImplemented
        return SymbolicInt(int(other) + int(self), ("+", other, self))


def symbolic(symbol: str, value: int, *, origin: str = "", section: str = "") -> SymbolicInt:
    """An integer with a symbol; `origin` names its source (a config key, or `d / h`), `section` that key's section."""
    return SymbolicInt(value, (symbol, origin, section))


Size = int  # the type of a size in a component: an integer that may carry a formula


# -- reading the formula back ------------------------------------------------------------------------------------


def polynomial(size: int) -> Counter[Monomial]:
    """The size as a sum of products of symbols: `{("d", "h", "d_h"): 2}` is 2 d h d_h; () is the constant."""
    if not isinstance(size, SymbolicInt) or not size.expression:
        return Counter({(): int(size)})
    operation, *operands = size.expression
    if operation not in ("*", "+", "-"):
        return Counter({(operation,): 1})
    left, right = (polynomial(operand) for operand in operands)
    if operation == "*":
        return polynomial_product(left, right)
    result = Counter(left)
    for monomial, factor in right.items():
        result[monomial] += factor if operation == "+" else -factor
    return result


def polynomial_product(left: Counter[Monomial], right: Counter[Monomial]) -> Counter[Monomial]:
    """The product of two polynomials."""
    result: Counter[Monomial] = Counter()
    for a, p in left.items():
        for b, q in right.items():
            result[tuple(sorted(a + b, key=_rank))] += p * q
    return result


def symbols_in(size: int) -> dict[str, tuple[int, str]]:
    """Every symbol in the size, with its value and origin."""
    if not isinstance(size, SymbolicInt) or not size.expression:
        return {}
    operation, *operands = size.expression
    if operation not in ("*", "+", "-"):
        return {operation: (int(size), operands[0])}
    return symbols_in(operands[0]) | symbols_in(operands[1])


def sections_of(size: int, symbol: str) -> set[str]:
    """The sections of the config from which the sizes under this symbol come; "" is the top of the file."""
    if not isinstance(size, SymbolicInt) or not size.expression:
        return set()
    operation, *operands = size.expression
    if operation not in ("*", "+", "-"):
        return {operands[1]} if operation == symbol else set()
    return set().union(*(sections_of(operand, symbol) for operand in operands))


def _rank(symbol: str) -> tuple[int, str]:
    return (ORDER.index(symbol) if symbol in ORDER else len(ORDER), symbol)


def rename_symbols(size: int, name: Callable[[str, int, str], str]) -> int:
    """The same size with its symbols renamed by `name(symbol, value, origin)`."""
    if not isinstance(size, SymbolicInt) or not size.expression:
        return size
    operation, *operands = size.expression
    if operation in ("*", "+", "-"):
        return SymbolicInt(int(size), (operation, *(rename_symbols(operand, name) for operand in operands)))
    return SymbolicInt(int(size), (name(operation, int(size), operands[0]), *operands))


def monomial_text(monomial: Monomial) -> str:
    """`("d", "d", "d_ff")` as `d^2 d_ff`."""
    return " ".join(symbol if power == 1 else f"{symbol}^{power}" for symbol, power in Counter(monomial).items())


def formula(terms: Counter[Monomial]) -> str:
    """A polynomial as text, highest power of d first: `2 d^2 + 2 d g d_h`."""
    parts = []
    for monomial, factor in sorted(terms.items(), key=lambda term: _place(term[0])):
        if factor:
            number = "" if abs(factor) == 1 and monomial else f"{abs(factor):,}"
            words = [word for word in (number, monomial_text(monomial)) if word]
            parts.append(f"{'-' if factor < 0 else '+'} {' '.join(words)}")
    return (" ".join(parts) or "0").removeprefix("+ ")


def _place(monomial: Monomial) -> tuple[int, int, list[tuple[int, str]]]:
    return -monomial.count("d"), -len(monomial), [_rank(symbol) for symbol in monomial]


def symbols_and_numbers(size: int) -> tuple[str, str]:
    """One dimension as (symbols, numbers): `("h d_h", "32 x 128")`; sums are in brackets."""
    if not isinstance(size, SymbolicInt) or not size.expression:
        return f"{size:,}", f"{size:,}"
    operation, *operands = size.expression
    if operation not in ("*", "+", "-"):
        return operation, f"{size:,}"
    (left, left_number), (right, right_number) = (symbols_and_numbers(operand) for operand in operands)
    if operation == "*":
        return (
            f"{bracketed(left)} {bracketed(right)}",
            f"{bracketed(left_number)} x {bracketed(right_number)}",
        )
    return f"{left} {operation} {right}", f"{left_number} {operation} {right_number}"


def bracketed(text: str) -> str:
    """Put a sum in brackets, so that it can be a factor."""
    return f"({text})" if " + " in text or " - " in text else text


def simplify(terms: Counter[Monomial], values: Mapping[str, int]) -> tuple[Counter[Monomial], list[str]]:
    """The polynomial simplified by equal sizes, and the equations used: `h d_h = d` turns 2 d h d_h into 2 d^2."""
    facts: list[str] = []
    for old, factor, new in _coincidences(values):
        shorter: Counter[Monomial] = Counter()
        for monomial, times in terms.items():
            word, power = _substituted(monomial, old, new)
            shorter[word] += times * factor**power
        if shorter != terms:
            facts.append(f"{monomial_text(old)} = {'' if factor == 1 else f'{factor} '}{new}")
            terms = shorter
    return terms, facts


def _coincidences(values: Mapping[str, int]) -> Iterator[tuple[Monomial, int, str]]:
    """Equations that the values satisfy, as (product of symbols, factor, symbol): h d_h = d, g d_h = d, d_ff = 4 d."""
    d = values.get("d")
    if not d:
        return
    for heads in ("h", "g"):
        if values.get(heads, 0) * values.get("d_h", 0) == d:
            yield (heads, "d_h"), 1, "d"
    if values.get("d_ff") == 4 * d:
        yield ("d_ff",), 4, "d"
    elif values.get("d_ff") == d:
        yield ("d_ff",), 1, "d"


def _substituted(monomial: Monomial, old: Monomial, new: str) -> tuple[Monomial, int]:
    left, power = Counter(monomial), 0
    while all(left[symbol] for symbol in old):
        left.subtract(old)
        left[new] += 1
        power += 1
    return tuple(sorted(left.elements(), key=_rank)), power
