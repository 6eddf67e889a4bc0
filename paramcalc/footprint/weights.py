"""Weights in bytes: which format each tensor is stored in, and what that takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from paramcalc.dtypes import dtype
from paramcalc.footprint.assumptions import Assumptions
from paramcalc.model import Model
from paramcalc.spec import CATEGORIES, Category, Weight


class Stored(NamedTuple):
    """Equal tensors in one format."""

    format: str
    category: Category
    tensors: int
    parameters: int  # logical: what the unquantised tensors hold
    bytes: int
    weight: Weight  # what is stored, in so many copies


def stored(model: Model, assumed: Assumptions) -> Iterator[Stored]:
    """Every tensor of the model as it is stored."""
    kind = dtype(assumed.dtype or model.dtype)
    for weight in model.tree.weights():
        if weight.role == "parameter":
            copies = int(weight.copies)
            elements = int(weight.elements)
            yield Stored(kind.name, weight.category, copies, copies * elements, copies * kind.bytes(elements), weight)


def figures(found: Iterable[Stored]) -> dict[str, Any]:
    """`weights` of the report."""
    by_format: dict[str, dict[str, int]] = defaultdict(lambda: {"tensors": 0, "parameters": 0, "bytes": 0})
    by_category: dict[str, int] = defaultdict(int)
    for one in found:
        share = by_format[one.format]
        share["tensors"] += one.tensors
        share["parameters"] += one.parameters
        share["bytes"] += one.bytes
        by_category[one.category] += one.bytes
    return {
        "bytes": sum(by_category.values()),
        "by_format": dict(by_format),
        "by_category": {category: by_category[category] for category in CATEGORIES if category in by_category},
    }
