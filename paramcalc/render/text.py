"""Formats for other programs: JSON, CSV and Markdown. Plain strings; nothing here passes through rich."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from paramcalc.report import Report
from paramcalc.units import exact

Row = dict[str, str | int]


def to_json(reports: Sequence[Report], *, always_list: bool = False) -> str:
    """One report as one object, several as a list."""
    if len(reports) == 1 and not always_list:
        return reports[0].model_dump_json(indent=2) + "\n"
    return json.dumps([report.model_dump(mode="json") for report in reports], indent=2, ensure_ascii=False) + "\n"


def to_csv(rows: Sequence[Row]) -> str:
    """One line per row under a header; numbers without separators."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def to_markdown(rows: Sequence[Row]) -> str:
    """A table for a model card or an issue; numbers right-aligned, with separators."""
    columns = list(rows[0])
    numeric = {name for name in columns if all(isinstance(row[name], int) for row in rows)}
    lines = ["| " + " | ".join(columns) + " |"]
    lines.append("|" + "|".join(" ---: " if name in numeric else " --- " for name in columns) + "|")
    lines += ["| " + " | ".join(_cell(row[name]) for name in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: str | int) -> str:
    return exact(value) if isinstance(value, int) else value.replace("|", "\\|")
