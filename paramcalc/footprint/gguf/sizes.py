"""The fold: from the tensors of a GGUF file to its bytes, by type and category."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from paramcalc.errors import ParamcalcError
from paramcalc.footprint.gguf.architectures import ARCHITECTURES, LLAMA, Architecture
from paramcalc.footprint.gguf.doubts import AS_EXPERTS_ARE, doubts, mxfp4_experts, needs_imatrix, notes
from paramcalc.footprint.gguf.mixture import File, Place, Role, chosen
from paramcalc.footprint.gguf.names import AS_CONVERTED, F32_CONVERTED
from paramcalc.footprint.gguf.tensors import Contents, Tensor, contents
from paramcalc.footprint.gguf.types import FLOATS, TYPES, ftype
from paramcalc.model import Model
from paramcalc.spec import CATEGORIES, Category

ALIGNMENT = 32  # GGUF_DEFAULT_ALIGNMENT: each tensor starts at a multiple


class Stored(NamedTuple):
    """Equal tensors in one format."""

    format: str
    category: Category
    tensors: int
    parameters: int  # logical: what the unquantised tensors hold
    bytes: int


class GgufFile(NamedTuple):
    """The tensors of a GGUF file. Its header, which has the tokenizer in it, comes on top."""

    ftype: str  # as llama-quantize calls it: Q4_K_M
    stored: tuple[Stored, ...]
    doubts: tuple[str, ...]  # why the figures are an estimate; none where they are exact
    notes: tuple[str, ...]
    padded_bytes: int  # with what fills each tensor up to the alignment

    @property
    def exact(self) -> bool:
        """Whether the bytes are those that the tool would write, to the last."""
        return not self.doubts

    @property
    def bytes(self) -> int:
        """All tensors, without padding."""
        return sum(one.bytes for one in self.stored)


def gguf(model: Model, name: str, *, imatrix: bool = False) -> GgufFile:
    """What llama.cpp would write of this model's weights as this kind of file: `q4_k_m`, `gguf-f16`.

    `imatrix`: with an importance matrix, which changes five kinds of file; a kind that needs one is written with it in
    any case. Raises ParamcalcError for an unknown kind of file, and where llama-quantize refuses the model.
    """
    kind = ftype(name)
    (file,) = model.remembered(f"gguf {kind} {imatrix}", lambda: [_file(model, kind, imatrix=imatrix)])
    return file


def _file(model: Model, kind: str, *, imatrix: bool) -> GgufFile:
    (found,) = model.remembered("gguf", lambda: [contents(model, architecture(model))])
    types = types_of(model, found, kind, imatrix=imatrix)
    said = [*notes(model, found, kind)]
    if needs_imatrix(found, kind, types):
        said.insert(0, f"llama-quantize needs an importance matrix (--imatrix) for {kind}")
        types = types_of(model, found, kind, imatrix=True)
    sums: dict[tuple[str, Category], list[int]] = defaultdict(lambda: [0, 0, 0])
    padded = 0
    alike = Counter(zip(types, model.remembered("gguf measures", lambda: map(measured, found.tensors)), strict=True))
    for (type_name, (category, parameters, row, rows)), count in alike.items():
        size = rows * TYPES[type_name].bytes(row)
        padded += count * -(-size // ALIGNMENT) * ALIGNMENT
        for i, term in enumerate((1, parameters, size)):
            sums[type_name, category][i] += count * term
    order = sorted(sums, key=lambda key: ([*TYPES].index(key[0]), CATEGORIES.index(key[1])))
    stored = tuple(Stored(*key, *sums[key]) for key in order)
    why = model.remembered("gguf doubts", lambda: doubts(model, found))
    return GgufFile(kind, stored, why, tuple(said), padded)


def measured(tensor: Tensor) -> tuple[Category, int, int, int]:
    """What its share of the file depends on beside its type: (category, parameters, elements of a row, rows)."""
    return tensor.category, tensor.parameters, tensor.ne[0], tensor.rows


def architecture(model: Model) -> Architecture:
    """How llama.cpp stores the model; as Llama's where that was not compared."""
    return ARCHITECTURES.get(model.family, LLAMA)


def types_of(model: Model, found: Contents, kind: str, *, imatrix: bool) -> list[str]:
    """The type of each tensor."""
    arch = architecture(model)
    roles = Counter(t.role for t in found.tensors if t.quantised)
    file = File(
        ftype=kind,
        layers=found.layers,
        gqa=found.gqa,
        experts=found.experts,
        values=roles["value"],
        tied=not roles["output"],
        imatrix=imatrix,
        seventy_billion=seventy_billion(arch, found),
        falcon=arch.name == "falcon",
    )
    seen: Counter[Role] = Counter()
    kept = mxfp4_experts(model) and kind in AS_EXPERTS_ARE
    return [
        "MXFP4" if kept and t.quantised and t.category == "experts" else type_of(t, file, seen) for t in found.tensors
    ]


def type_of(tensor: Tensor, file: File, seen: Counter[Role]) -> str:
    """The type of a tensor, given how many of each role the tool has seen; now it has seen one more."""
    if not tensor.quantised or (tensor.name in F32_CONVERTED and file.base in FLOATS):
        converted = file.base if file.base in FLOATS else "F16"
        return converted if tensor.name in AS_CONVERTED and tensor.rows > 1 else "F32"
    place = Place(tensor.role, tensor.ne[0], tensor.stacked, tensor.layer, seen[tensor.role])
    seen[tensor.role] += 1
    try:
        return chosen(file, place)
    except ValueError as error:
        message = f"llama-quantize cannot write this model as {file.ftype}: {tensor.name}: {error}"
        raise ParamcalcError(message, "choose another type, such as Q4_K_M") from error


def seventy_billion(arch: Architecture, found: Contents) -> bool:
    """Whether the tool takes it for a model of 70B parameters."""
    match arch.seventy_billion:
        case "80 layers":
            return found.layers == 80
        case "80 layers in groups":  # Llama 2 70B, but not Llama 65B, in which each head has keys of its own
            return found.layers == 80 and found.gqa != 1
        case "68 layers":
            return found.layers == 68
    return False
