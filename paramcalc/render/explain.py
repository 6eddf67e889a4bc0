"""An explanation as plain text: symbols first, then one line per term in columns that a narrow terminal can fold."""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.report import Explanation, Line
from paramcalc.units import exact

INDENT = 2
NAME, FORMULA, NUMBERS, RESULT = 25, 22, 34, 17  # widths of the columns


def explanation_text(explanation: Explanation) -> str:
    """The whole explanation."""
    model = explanation.model
    lines = [f"{model.name}: {model.architecture}, {model.status}", ""]
    width = max((len(s.symbol) for s in explanation.symbols), default=0)
    lines += [f"{s.symbol:>{width}} = {s.value:>9,}  {s.origin}".rstrip() for s in explanation.symbols]
    for line in explanation.lines:
        if line.level == 0:
            lines.append("")
        lines += _line(line)
    return "\n".join(lines) + "\n"


def _line(line: Line) -> Iterator[str]:
    """Name, formula, numbers and result in columns; what is too long for its column follows below."""
    name = " " * (INDENT * line.level) + line.name
    if line.result is None:
        yield f"{name}   {line.remark}".rstrip()
        return
    result = exact(line.result)
    numbers = "" if line.numbers == result else line.numbers
    formula, long_formula = _split(line.formula, FORMULA)
    numbers, long_numbers = _split(numbers, NUMBERS)
    equals = "=" if formula and numbers else " "
    yield f"{name:<{NAME}} {formula:<{FORMULA}} {equals} {numbers:<{NUMBERS}} = {result:>{RESULT}}"
    for text in (long_formula and f"= {long_formula}", line.remark, long_numbers and f"= {long_numbers}"):
        if text:
            yield f"{'':<{NAME}} {text}"


def _split(text: str, width: int) -> tuple[str, str]:
    """The text in its column, or below it."""
    return (text, "") if len(text) <= width else ("", text)
