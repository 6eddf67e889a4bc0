"""An explanation as plain text: symbols first, then one line per term in columns that a narrow terminal can fold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from paramcalc.base.errors import printable
from paramcalc.base.units import exact
from paramcalc.render.answer import View, validated
from paramcalc.render.text import RowData
from paramcalc.reports.count import Explanation, Line

INDENT = 2
NAME, FORMULA, NUMBERS, RESULT = 28, 22, 33, 17  # widths of the columns


COLUMNS_WIDTH = NAME + FORMULA + NUMBERS + RESULT + 8


def explain_view(answers: Sequence[Mapping[str, object]]) -> View:
    """The output of `--explain`."""
    explanations = validated(Explanation, answers)
    return View(
        lambda: [row for explanation in explanations for row in explanation_rows(explanation)],
        lambda width: "\n".join(explanation_text(explanation, width) for explanation in explanations),
    )


def explanation_text(explanation: Explanation, width: int | None = None) -> str:
    """The whole explanation: in columns, or as one equation per line if the terminal is too narrow for columns."""
    line_text = _line if width is None or width >= COLUMNS_WIDTH else _equation
    model = explanation.model
    lines = [f"{model.name}: {model.architecture}, {model.status}", ""]
    width = max((len(s.symbol) for s in explanation.symbols), default=0)
    lines += [f"{s.symbol:>{width}} = {s.value:>9,}  {s.origin}".rstrip() for s in explanation.symbols]
    for line in explanation.lines:
        if line.level == 0:
            lines.append("")
        lines += map(printable, line_text(line))  # parts may be named by a config
    return "\n".join(lines) + "\n"


def _line(line: Line) -> Iterator[str]:
    """Name, formula, numbers and result in columns; text too long for its column follows below."""
    name = " " * (INDENT * line.level) + line.name
    if line.result is None:
        yield from wrap(
            f"{name}   {line.remark}".rstrip(), COLUMNS_WIDTH, subsequent_indent=" " * (INDENT * line.level + INDENT)
        )
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


def _equation(line: Line) -> Iterator[str]:
    """`name: formula = numbers = result` in one line of any length."""
    indent = " " * (INDENT * line.level)
    if line.result is None:
        yield f"{indent}{line.name}   {line.remark}".rstrip()
        return
    result = exact(line.result)
    sides = [text for text in (line.formula, line.numbers) if text and text != result]
    yield f"{indent}{line.name}: {' = '.join([*sides, result])}"
    if line.remark:
        yield f"{indent}  {line.remark}"


def _split(text: str, width: int) -> tuple[str, str]:
    """A pair (text in its column, text below it); one of them is empty."""
    return (text, "") if len(text) <= width else ("", text)


def explanation_rows(explanation: Explanation) -> list[RowData]:
    """The lines of an explanation."""
    return [
        {
            "model": explanation.model.name,
            "name": "  " * line.level + printable(line.name),
            "formula": line.formula,
            "numbers": line.numbers,
            "result": "" if line.result is None else line.result,
            "remark": printable(line.remark),
        }
        for line in explanation.lines
    ]
