"""The output of a command: validated reports as rows for CSV and Markdown, and as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from paramcalc.render.text import RowData

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paramcalc.reports.base import Report

AnyReport = TypeVar("AnyReport", bound="Report")


class View(NamedTuple):
    """Rows for CSV and Markdown, and the table for a width; each is made on demand."""

    rows: Callable[[], Sequence[RowData]]
    table: Callable[[int | None], RenderableType | str]


def validated(schema: type[AnyReport], answers: Sequence[Mapping[str, object]]) -> list[AnyReport]:
    """The answers checked against the schema of their report."""
    return [schema.model_validate(answer) for answer in answers]
