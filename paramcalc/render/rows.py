"""Reports as flat rows, one per model: the columns of CSV, Markdown and the table of several models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramcalc.errors import printable
from paramcalc.render.text import Row

if TYPE_CHECKING:
    from paramcalc.report import CountReport, DtypeInfo, Explanation, FamilyInfo, PresetInfo


def count_row(report: CountReport) -> Row:
    """The figures of one model."""
    p, m = report.parameters, report.model
    return {
        "name": m.name,
        "family": m.family,
        "architecture": m.architecture,
        "status": m.status,
        "total": p.total,
        "active": p.active,
        "active_without_input_embedding": p.active_without_input_embedding,
        "non_embedding": p.non_embedding,
        "buffers": p.buffers,
        "mtp": p.mtp,
        "dtype": report.weights.dtype,
        "bytes": report.weights.bytes,
        "warnings": "; ".join(report.warnings),
    }


def explanation_rows(explanation: Explanation) -> list[Row]:
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


def preset_row(info: PresetInfo) -> Row:
    """A preset with what it counts to and where it comes from."""
    return {
        "name": info.name,
        "family": info.family,
        "status": info.status,
        "total": info.total,
        "active": info.active,
        "source": info.source,
    }


def family_row(info: FamilyInfo) -> Row:
    """A family with its reference class and its verification."""
    return {
        "name": info.name,
        "architecture": info.architecture,
        "mixers": info.mixers,
        "goldens": info.goldens,
        "verified_by": info.verified_by,
    }


def dtype_row(info: DtypeInfo) -> Row:
    """A format with its bits, its layout and what it leaves as it is."""
    return {
        "name": info.name,
        "bits": info.bits if info.exact else f"about {info.bits}",
        "layout": info.layout,
        "leaves": info.leaves,
        "use": info.use,
        "source": info.source,
    }
