"""A storage format as data: the dtype of the values, and the side tensors (scales, zero points, indices)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import prod
from typing import Literal, NamedTuple, get_args

from paramcalc.base.dtypes import Dtype
from paramcalc.tree.weights import CATEGORIES, Category, TensorKind, Weight

# The unit that has one entry of a side tensor: the whole tensor, an output (row), an input (column), `size` inputs of
# one row (group), `size` by `size` values (tile), or `size` consecutive values (block).
SideTensorUnit = Literal["tensor", "output", "input", "group", "tile", "block"]


class SideTensor(NamedTuple):
    """A tensor stored next to the values, with one entry of `bits` bits for each unit `per`.

    `size` is the number of inputs in a group, of rows and columns in a tile, or of values in a block; 0 is a whole row.
    `word` is the width in bits of the words into which the entries of neighbouring rows are packed (zero points of GPTQ
    and AWQ); 0 means that entries are not packed.
    """

    name: str  # in checkpoints
    per: SideTensorUnit
    bits: int
    size: int = 0
    word: int = 0

    def bytes(self, rows: int, columns: int) -> int:
        """Bytes for a matrix of `rows` outputs and `columns` inputs."""
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
    """`whole` divided by `size`, rounded up; 0 for a size of 0."""
    return -(-whole // size) if size else 0


class AppliesTo(NamedTuple):
    """The tensors that a format or a scheme applies to by default, by category and kind."""

    categories: frozenset[Category]
    kinds: frozenset[TensorKind] = frozenset({"matrix"})
    output_matrix: bool = True  # False: excludes the matrix that scores the vocabulary; the rest of a head stays

    def covers(self, weight: Weight) -> bool:
        """True if the tensor is one of these."""
        if weight.kind not in self.kinds or weight.category not in self.categories:
            return False
        scores = weight.category == "head" and weight.split is not None and weight.split.unit_kind == "vocabulary"
        return self.output_matrix or not scores

    def with_categories(self, *categories: Category) -> AppliesTo:
        """A copy that covers more categories."""
        return self._replace(categories=self.categories | frozenset(categories))


LAYER_MATRICES = AppliesTo(frozenset({"attention", "recurrent", "ffn", "experts", "shared_experts"}))
ONLY_EXPERTS = AppliesTo(frozenset({"experts"}))
LAYERS_AND_HEAD = LAYER_MATRICES.with_categories("head")
LAYERS_AND_TOWERS = LAYER_MATRICES.with_categories("vision", "projector", "other")
# MLX quantises every matrix that it can, including embeddings, heads and routers.
MLX_MATRICES = AppliesTo(
    LAYER_MATRICES.categories | {"embedding", "head", "router", "other"}, frozenset({"matrix", "embedding"})
)
ALL_TENSORS = AppliesTo(frozenset(CATEGORIES), frozenset(get_args(TensorKind)))


class Format(NamedTuple):
    """The storage format of a matrix: values of one dtype, and side tensors.

    `records` exist in files only (shapes, code tables, texts) and are not included in `bytes`. A matrix stays
    unquantised if its inputs are not a multiple of `columns` or its outputs not a multiple of `rows`.
    """

    name: str
    values: Dtype
    extras: tuple[SideTensor, ...] = ()
    records: tuple[SideTensor, ...] = ()
    word: int = 0  # each row of values is padded to words of so many bits; 0: no padding
    applies_to: AppliesTo = LAYER_MATRICES
    rows: int = 1
    columns: int = 1
    exact: bool = True  # False: bytes are an estimate
    summary: str = ""
    source: str = ""

    def bytes(self, shape: Sequence[int]) -> int:
        """Bytes of one tensor of this shape: values and side tensors."""
        rows, columns = _rows_and_columns(shape)
        return self.value_bytes(shape) + sum(extra.bytes(rows, columns) for extra in self.extras)

    def value_bytes(self, shape: Sequence[int]) -> int:
        """Bytes of the values, without side tensors."""
        rows, columns = _rows_and_columns(shape)
        if not self.word:
            return self.values.bytes(rows * columns)
        words = rows * _ceil_div(columns * 8 * self.values.block_bytes, self.values.block_elements * self.word)
        return words * self.word // 8

    def extra_bytes(self, shape: Sequence[int]) -> dict[str, int]:
        """Bytes of each side tensor, by name."""
        return {extra.name: extra.bytes(*_rows_and_columns(shape)) for extra in self.extras}

    def record_bytes(self, shape: Sequence[int]) -> int:
        """Bytes of the records that a file has for one tensor."""
        return sum(record.bytes(*_rows_and_columns(shape)) for record in self.records)

    def fits(self, shape: Sequence[int]) -> bool:
        """True if a tensor of this shape can be stored in the format."""
        rows, columns = _rows_and_columns(shape)
        return columns > 0 and columns % self.columns == 0 and rows % self.rows == 0


def _rows_and_columns(shape: Sequence[int]) -> tuple[int, int]:
    """(outputs, inputs) of a shape: the first dimension, and the product of all others."""
    return (int(shape[0]), prod(map(int, shape[1:]))) if shape else (1, 1)


def plain_format(kind: Dtype) -> Format:
    """The format of an unquantised dtype: it applies to every tensor and has no side tensors."""
    return Format(
        kind.name,
        kind,
        applies_to=ALL_TENSORS,
        summary=f"every tensor, {kind.block_bytes * 8 // kind.block_elements} bits each",
        source="torch.dtype" if kind.block_elements == 1 or kind.name == "int4" else "ggml-common.h",
    )


def bits_per_weight(form: Format, shape: Sequence[int] = (4096, 4096)) -> Decimal:
    """Bits for each weight of a matrix of this shape, including its share of the side tensors, to four decimals."""
    bits = Decimal(8 * form.bytes(shape)) / prod(map(int, shape))
    return bits.quantize(Decimal("0.0001")).normalize()
