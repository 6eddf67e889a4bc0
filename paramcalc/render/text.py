"""JSON, CSV and Markdown as plain strings, without rich."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

RowData = dict[str, str | int]


def or_empty(figure: int | None) -> str | int:
    """A figure, or an empty cell for None."""
    return "" if figure is None else figure


def to_json(answers: Sequence[Mapping[str, object]], *, always_list: bool = False) -> str:
    """One answer as one object, several as a list."""
    value = answers[0] if len(answers) == 1 and not always_list else list(answers)
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def to_csv(rows: Sequence[RowData]) -> str:
    """One line per row under a header; numbers without separators."""
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def to_markdown(rows: Sequence[RowData]) -> str:
    """A table for a model card or an issue; numbers right-aligned, with separators."""
    columns = list(rows[0])
    numeric = {name for name in columns if all(isinstance(row[name], int) for row in rows)}
    lines = ["| " + " | ".join(columns) + " |"]
    lines.append("|" + "|".join(" ---: " if name in numeric else " --- " for name in columns) + "|")
    lines += ["| " + " | ".join(_cell(row[name]) for name in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: str | int) -> str:
    return f"{value:,}" if isinstance(value, int) else value.replace("|", "\\|")
