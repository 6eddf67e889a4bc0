"""The only place that writes results: to standard output or a file. Warnings go to standard error."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paramcalc.base.errors import ParamcalcError, one_line
from paramcalc.cli.options import OutputFormat, chosen_format
from paramcalc.cli.streams import colored, write_diagnostic
from paramcalc.render import text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paramcalc.model import Model
    from paramcalc.render.answer import View
    from paramcalc.reports.base import Report


class Output:
    """The destination and format of a command's result."""

    def __init__(self, fmt: str, as_json: bool, path: str | None) -> None:
        self.format: OutputFormat = chosen_format(fmt, as_json)
        self.path = path

    def show(
        self, answers: Sequence[Mapping[str, object]], view: Callable[[], View], *, always_list: bool = False
    ) -> None:
        """Write the answers as JSON, or through their view. JSON needs no view, so it starts faster."""
        self.emit(
            answers=lambda: answers,
            rows=lambda: view().rows(),
            table=lambda width: view().table(width),
            always_list=always_list,
        )

    def emit(
        self,
        *,
        answers: Callable[[], Sequence[Mapping[str, object]]],
        rows: Callable[[], Sequence[text.RowData]],
        table: Callable[[int | None], RenderableType | str],
        always_list: bool = False,
    ) -> None:
        """Write `answers` as JSON, `rows` as CSV or Markdown, or the `table` for a width; only one of them is built."""
        match self.format:
            case "json":
                self.write(text.to_json(answers(), always_list=always_list))
            case "csv":
                self.write(text.to_csv(rows()))
            case "markdown":
                self.write(text.to_markdown(rows()))
            case "table":
                self.write(self._drawn(table))

    def _drawn(self, table: Callable[[int | None], RenderableType | str]) -> str:
        terminal = self.path is None and sys.stdout.isatty()
        width = os.get_terminal_size(sys.stdout.fileno()).columns if terminal else None
        drawing = table(width)
        if isinstance(drawing, str):
            return drawing
        from paramcalc.render.table import render_text

        return render_text(drawing, width=width, color=terminal and colored())

    def write(self, result: str) -> None:
        """Write finished text; a file is opened only now, when there is something to put into it."""
        if self.path is None:
            sys.stdout.write(result)
        else:
            write_file(self.path, result)


def write_file(path: str, result: str | bytes) -> None:
    """Write a file atomically: an interrupted write leaves the old file."""
    content = result.encode("utf-8", errors="backslashreplace") if isinstance(result, str) else result
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe is written in place
            with open(path, "wb") as file:
                file.write(content)
            return
        real = os.path.realpath(path)
        temporary = f"{real}.{os.getpid()}.part"
        try:
            with open(temporary, "wb") as file:
                file.write(content)
            if os.path.exists(real):
                os.chmod(temporary, os.stat(real).st_mode)
            os.replace(temporary, real)
        except BaseException:
            if os.path.exists(temporary):
                os.remove(temporary)
            raise
    except OSError as error:
        raise ParamcalcError(f"cannot write {path}: {error.strerror}") from error


def warn(warnings: Iterable[str]) -> None:
    """One line each on standard error."""
    for warning in warnings:
        write_diagnostic(sys.stderr, f"warning: {one_line(warning)}\n")


def warnings_of(models: Sequence[Model]) -> Iterator[str]:
    """The warnings of each model; for several models with the name, or the source if names repeat."""
    names = Counter(model.name for model in models)
    for model in models:
        about = model.name if names[model.name] == 1 else model.source
        for warning in model.warnings:
            yield warning if len(models) == 1 else f"{about}: {warning}"


def warning_lines(answers: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Warnings of answers, given as (model name, warnings); several answers have the name in each line."""
    for name, warnings in answers:
        yield from (warning if len(answers) == 1 else f"{name}: {warning}" for warning in warnings)


def report_data(reports: Iterable[Report]) -> list[dict[str, Any]]:
    """Reports as the data that JSON writes."""
    return [report.model_dump(mode="json") for report in reports]
