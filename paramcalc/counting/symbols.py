"""The letters of an explanation: which number each stands for, and where that comes from."""

from __future__ import annotations

from paramcalc.base import symbolic
from paramcalc.reports.count import Symbol


class SymbolTable:
    """Symbols in the order in which formulas use them. A letter stands for one number; another one gets a prime."""

    def __init__(self) -> None:
        self.symbols: dict[str, Symbol] = {}

    def distinct(self, size: int) -> int:
        """The size with symbols of its own: a letter that stands for another number already gets a prime."""
        return symbolic.rename_symbols(size, self.add)

    def add(self, symbol: str, value: int, origin: str) -> str:
        """The letter under which this number stands."""
        while symbol in self.symbols and self.symbols[symbol].value != value:
            symbol += "'"
        self.symbols.setdefault(symbol, Symbol(symbol=symbol, value=value, origin=origin))
        return symbol
