"""The symbols of an explanation: the value and the origin of each."""

from __future__ import annotations

from paramcalc.base import symbolic
from paramcalc.reports.count import Symbol


class SymbolTable:
    """Symbols in the order of their use. A symbol has one value; the same letter with another value gets a prime."""

    def __init__(self) -> None:
        self.symbols: dict[str, Symbol] = {}

    def distinct(self, size: int) -> int:
        """The size with its symbols renamed so that each has one value in this table."""
        return symbolic.rename_symbols(size, self.add)

    def add(self, symbol: str, value: int, origin: str) -> str:
        """Add a symbol; return its name, with primes if the letter already has another value."""
        while symbol in self.symbols and self.symbols[symbol].value != value:
            symbol += "'"
        self.symbols.setdefault(symbol, Symbol(symbol=symbol, value=value, origin=origin))
        return symbol
