"""The only place that writes results: to standard output or a file. Warnings go to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paramcalc.cli.options import Format
from paramcalc.errors import ParamcalcError
from paramcalc.render import text
from paramcalc.report import Report

if TYPE_CHECKING:
    from rich.console import RenderableType


class Output:
    """Where a command's result goes and in which format."""

    def __init__(self, fmt: Format, as_json: bool, path: Path | None) -> None:
        self.format = Format.json if as_json else fmt
        self.path = path

    def emit(
        self,
        reports: Sequence[Report],
        *,
        rows: Callable[[], Sequence[text.Row]],
        table: Callable[[], RenderableType | str],
        always_list: bool = False,
    ) -> None:
        """Write reports: as JSON their dump, as CSV and Markdown their `rows`, else the `table`."""
        match self.format:
            case Format.json:
                self.write(text.to_json(reports, always_list=always_list))
            case Format.csv:
                self.write(text.to_csv(rows()))
            case Format.markdown:
                self.write(text.to_markdown(rows()))
            case Format.table:
                self.write(self._drawn(table()))

    def _drawn(self, table: RenderableType | str) -> str:
        if isinstance(table, str):
            return table
        from paramcalc.render.table import draw

        terminal = self.path is None and sys.stdout.isatty()
        width = os.get_terminal_size(sys.stdout.fileno()).columns if terminal else None
        return draw(table, width=width, color=terminal and "NO_COLOR" not in os.environ)

    def write(self, result: str) -> None:
        """Write finished text; a file is opened only now, when there is something to put into it."""
        if self.path is None:
            sys.stdout.write(result)
            return
        try:
            self.path.write_text(result, encoding="utf-8")
        except OSError as error:
            raise ParamcalcError(f"cannot write {self.path}: {error.strerror}") from error


def warn(warnings: Iterable[str]) -> None:
    """One line each on standard error."""
    for warning in warnings:
        sys.stderr.write(f"warning: {warning}\n")
