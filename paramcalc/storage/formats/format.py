"""How a tensor is stored, as data: its values in blocks, and what stands beside them (scales, zero points, indices)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import prod
from typing import Literal, NamedTuple, get_args

from paramcalc.base.dtypes import Dtype
from paramcalc.tree.weights import CATEGORIES, Category, TensorKind, Weight

# What there is one of: a tensor, an output (row), an input (column), `size` inputs of one row, a square of `size` by
# `size`, or `size` values however they lie.
SideTensorUnit = Literal["tensor", "output", "input", "group", "tile", "block"]


class SideTensor(NamedTuple):
    """Something stored beside the values, `bits` for each of what `per` says; `size` 0 is a whole row.

    `word`: the bits of the words into which entries of neighbouring rows are packed (zero points of GPTQ and AWQ).
    """

    name: str  # as checkpoints call it
    per: SideTensorUnit
    bits: int
    size: int = 0
    word: int = 0

    def bytes(self, rows: int, columns: int) -> int:
        """Bytes for a matrix of so many outputs and inputs."""
        groups = _ceil_div(columns, self.size or columns)
        if self.word:
            return groups * _ceil_div(rows * self.bits, self.word) * self.word // 8
        entries = {
            "tensor": 1,
            "output": rows,
            "input": columns,
            "group": rows * groups,
            "tile": groups * _ceil_div(rows, self.size or rows),
            "block": _ceil_div(rows * columns, self.size or rows * columns),
        }[self.per]
        return _ceil_div(entries * self.bits, 8)


def _ceil_div(whole: int, size: int) -> int:
    """How many pieces of `size` hold it, the last one perhaps not full."""
    return -(-whole // size) if size else 0


class AppliesTo(NamedTuple):
    """The tensors that a format is for, where nothing else is said."""

    categories: frozenset[Category]
    kinds: frozenset[TensorKind] = frozenset({"matrix"})
    output_matrix: bool = True  # False: but the matrix that scores a vocabulary, whatever else is in a head

    def covers(self, weight: Weight) -> bool:
        """Whether this tensor is one of them."""
        if weight.kind not in self.kinds or weight.category not in self.categories:
            return False
        scores = weight.category == "head" and weight.split is not None and weight.split.unit_kind == "vocabulary"
        return self.output_matrix or not scores

    def with_categories(self, *categories: Category) -> AppliesTo:
        """The same, and more categories."""
        return self._replace(categories=self.categories | frozenset(categories))


LAYER_MATRICES = AppliesTo(frozenset({"attention", "recurrent", "ffn", "experts", "shared_experts"}))
ONLY_EXPERTS = AppliesTo(frozenset({"experts"}))
LAYERS_AND_HEAD = LAYER_MATRICES.with_categories("head")
LAYERS_AND_TOWERS = LAYER_MATRICES.with_categories("vision", "projector", "other")
# What MLX quantises: all that can be, embeddings, heads and routers included.
MLX_MATRICES = AppliesTo(
    LAYER_MATRICES.categories | {"embedding", "head", "router", "other"}, frozenset({"matrix", "embedding"})
)
ALL_TENSORS = AppliesTo(frozenset(CATEGORIES), frozenset(get_args(TensorKind)))


class Format(NamedTuple):
    """How a tensor is stored.

    `records` are what only files keep: shapes, code tables, texts; they are no part of `bytes`. Rows whose inputs are
    no multiple of `columns`, or matrices whose outputs are no multiple of `rows`, stay as they are.
    """

    name: str
    values: Dtype
    extras: tuple[SideTensor, ...] = ()
    records: tuple[SideTensor, ...] = ()
    word: int = 0  # bits of the words that a row of values fills; 0: rows are not padded
    applies_to: AppliesTo = LAYER_MATRICES
    rows: int = 1
    columns: int = 1
    exact: bool = True  # False: bytes are an estimate
    summary: str = ""
    source: str = ""

    def bytes(self, shape: Sequence[int]) -> int:
        """Bytes of one tensor: values and what stands beside them."""
        rows, columns = _rows_and_columns(shape)
        return self.value_bytes(shape) + sum(extra.bytes(rows, columns) for extra in self.extras)

    def value_bytes(self, shape: Sequence[int]) -> int:
        """Bytes of the values alone."""
        rows, columns = _rows_and_columns(shape)
        if not self.word:
            return self.values.bytes(rows * columns)
        words = rows * _ceil_div(columns * 8 * self.values.block_bytes, self.values.block_elements * self.word)
        return words * self.word // 8

    def extra_bytes(self, shape: Sequence[int]) -> dict[str, int]:
        """Bytes of what stands beside the values, by name."""
        return {extra.name: extra.bytes(*_rows_and_columns(shape)) for extra in self.extras}

    def record_bytes(self, shape: Sequence[int]) -> int:
        """Bytes of what only a file keeps beside one tensor."""
        return sum(record.bytes(*_rows_and_columns(shape)) for record in self.records)

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether a tensor of this shape can be stored so."""
        rows, columns = _rows_and_columns(shape)
        return columns > 0 and columns % self.columns == 0 and rows % self.rows == 0


def _rows_and_columns(shape: Sequence[int]) -> tuple[int, int]:
    """(outputs, inputs): whatever is not the first side is the second."""
    return (int(shape[0]), prod(map(int, shape[1:]))) if shape else (1, 1)


def plain_format(kind: Dtype) -> Format:
    """A dtype as a format: every tensor, nothing beside the values."""
    return Format(
        kind.name,
        kind,
        applies_to=ALL_TENSORS,
        summary=f"every tensor, {kind.block_bytes * 8 // kind.block_elements} bits each",
        source="torch.dtype" if kind.block_elements == 1 or kind.name == "int4" else "ggml-common.h",
    )


def bits_per_weight(form: Format, shape: Sequence[int] = (4096, 4096)) -> Decimal:
    """Bits of one value with its share of what stands beside it, in a matrix of this shape, to four decimals."""
    bits = Decimal(8 * form.bytes(shape)) / prod(map(int, shape))
    return bits.quantize(Decimal("0.0001")).normalize()
