"""The fold over the tensors of a GGUF file: its bytes by type and category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple

from paramcalc.base.errors import ParamcalcError
from paramcalc.model import Model
from paramcalc.storage.gguf.architectures import LLAMA, Architecture, known_architecture
from paramcalc.storage.gguf.names import AS_CONVERTED, F32_CONVERTED
from paramcalc.storage.gguf.tensors import (
    OUTSIDE_LAYERS,
    FileContents,
    Tensor,
    language_model_and_rest,
    list_tensors,
    outside_tensors,
)
from paramcalc.storage.gguf.type_rules import FileContext, TypeContext, TypeRole, choose_type
from paramcalc.storage.gguf.types import FLOATS, GGUF_TYPES, LONGEST_BLOCK, ftype
from paramcalc.storage.gguf.warnings import (
    KEEPS_MXFP4_EXPERTS,
    gguf_estimate_reasons,
    gguf_notes,
    mxfp4_experts,
    needs_imatrix,
)
from paramcalc.tree.component import Component
from paramcalc.tree.containers import main_stack, num_layers, stacks
from paramcalc.tree.weights import CATEGORIES, Category

ALIGNMENT = 32  # GGUF_DEFAULT_ALIGNMENT: each tensor starts at a multiple


class GgufTensors(NamedTuple):
    """Equal tensors in one format."""

    format: str
    category: Category
    tensors: int
    parameters: int  # logical: elements of the unquantised tensors
    bytes: int


class GgufFile(NamedTuple):
    """The tensors of a GGUF file, without its header, which contains the tokenizer."""

    ftype: str  # the name in llama-quantize: Q4_K_M
    stored: tuple[GgufTensors, ...]
    estimate_reasons: tuple[str, ...]  # why the bytes are an estimate; empty if exact
    notes: tuple[str, ...]
    padded_bytes: int  # with each tensor padded to the alignment

    @property
    def exact(self) -> bool:
        """True if the bytes equal those that llama-quantize writes."""
        return not self.estimate_reasons

    @property
    def bytes(self) -> int:
        """Bytes of all tensors, without padding."""
        return sum(one.bytes for one in self.stored)


def gguf_file(model: Model, name: str, *, imatrix: bool = False) -> GgufFile:
    """The file that llama.cpp writes for this model in the file type `name`: `q4_k_m`, `gguf-f16`.

    `imatrix`: with an importance matrix, which changes five file types; a file type that needs one always has one.
    Raises ParamcalcError for an unknown file type, and if llama-quantize refuses the model.
    """
    kind = ftype(name)
    (file,) = model.cached(f"gguf {kind} {imatrix}", lambda: [_file(model, kind, imatrix=imatrix)])
    return file


def gguf_stage(whole: Model, stage: Model, name: str) -> tuple[GgufTensors, ...]:
    """The tensors of a pipeline stage, with the types that they have in the file of the `whole` model.

    llama.cpp distributes layers in this way (--split-mode layer). A tensor outside the layers belongs to the stage
    whose tree has it; RoPE factors are in every stage.
    """
    file, types, _ = _types_and_notes(whole, ftype(name), imatrix=False)
    tree, _ = language_model_and_rest(whole.tree)
    stage_tree = stage.tree if tree is whole.tree else stage.tree.parts().get("language_model")
    if stage_tree is None:  # the stage has only towers, which are in another file
        return ()
    layers, end = _stage_layer_numbers(tree, stage_tree), file.layers - file.mtp_layers
    if end - 1 in layers:
        layers |= {*range(end, file.layers)}  # MTP layers come after all others
    entries = [*zip(file.tensors, file.numbers, types, strict=True)]
    held = [(t, name) for t, number, name in entries if number in layers]
    outside = {t: name for t, number, name in entries if number == OUTSIDE_LAYERS}
    everywhere, of_stage = (
        outside_tensors(tree, gguf_architecture(whole)),
        outside_tensors(stage_tree, gguf_architecture(whole)),
    )
    held += [(t, outside[t]) for t in of_stage] + [(t, name) for t, name in outside.items() if t not in everywhere]
    return sum_by_type((name, tensor_size(tensor)) for tensor, name in held)


def _stage_layer_numbers(whole: Component, stage: Component) -> set[int]:
    """Layer numbers of the stage in the whole model: layers of undivided stacks, and of its part of the divided one."""
    all_stacks, stage_stacks, numbers, start = stacks(whole), stacks(stage), set[int](), 0
    uncut = [stack for stack in stage_stacks if any(stack is one for one in all_stacks)]
    cuts = [stack for stack in stage_stacks if not any(stack is one for one in uncut)]
    divided = main_stack(all_stacks)
    for stack in all_stacks:
        same = [one for one in uncut if one is stack]
        for one in same or (cuts if stack is divided else []):
            numbers |= {*range(start + int(one.first), start + int(one.first) + num_layers(one))}
        start += num_layers(stack)
    return numbers


def _types_and_notes(model: Model, kind: str, *, imatrix: bool) -> tuple[FileContents, list[str], list[str]]:
    """The tensors, the type of each, and the notes."""
    (file,) = model.cached("gguf", lambda: [list_tensors(model, gguf_architecture(model))])
    types = tensor_types(model, file, kind, imatrix=imatrix)
    notes = [*gguf_notes(model, file, kind)]
    if needs_imatrix(file, kind, types):
        notes.insert(0, f"llama-quantize needs an importance matrix (--imatrix) for {kind}")
        types = tensor_types(model, file, kind, imatrix=True)
    return file, types, notes


def _file(model: Model, kind: str, *, imatrix: bool) -> GgufFile:
    file, types, notes = _types_and_notes(model, kind, imatrix=imatrix)
    sizes = {name: tensor_size(tensor) for name, tensor in file.distinct().items()}
    counts = Counter(zip(types, map(sizes.__getitem__, map(id, file.tensors)), strict=True))
    padded = sum(
        count * -(-rows * GGUF_TYPES[name].bytes(row) // ALIGNMENT) * ALIGNMENT
        for (name, (_, _, row, rows)), count in counts.items()
    )
    reasons = model.cached("gguf doubts", lambda: gguf_estimate_reasons(model, file))
    return GgufFile(kind, sum_by_type(counts.elements()), reasons, tuple(notes), padded)


TensorSize = tuple[Category, int, int, int]


def sum_by_type(tensors: Iterable[Sequence[Any]]) -> tuple[GgufTensors, ...]:
    """Equal tensors (type and size) grouped and summed, in the order of types and categories."""
    counts = Counter(map(tuple, tensors))
    order = sorted(counts, key=lambda key: ([*GGUF_TYPES].index(key[0]), CATEGORIES.index(key[1][0])))
    return tuple(
        GgufTensors(
            name, category, counts[key], counts[key] * parameters, counts[key] * rows * GGUF_TYPES[name].bytes(row)
        )
        for key in order
        for name, (category, parameters, row, rows) in [key]
    )


def tensor_size(tensor: Tensor) -> TensorSize:
    """The size of a tensor: (category, parameters, elements of a row, rows)."""
    return tensor.category, tensor.parameters, tensor.ne[0], tensor.rows


def gguf_architecture(model: Model) -> Architecture:
    """The llama.cpp architecture of the model; that of Llama if the family was not compared."""
    return known_architecture(model) or LLAMA


def tensor_types(model: Model, contents: FileContents, kind: str, *, imatrix: bool) -> list[str]:
    """The type of each tensor, in the order of the file."""
    arch = gguf_architecture(model)
    roles = Counter(t.role for t in contents.tensors if t.quantised)
    file = FileContext(
        ftype=kind,
        layers=contents.layers,
        gqa=contents.gqa,
        experts=contents.experts,
        values=roles["value"],
        tied=not roles["output"],
        imatrix=imatrix,
        seventy_billion=seventy_billion(arch, contents),
        falcon=arch.name == "falcon",
    )
    keep_mxfp4_experts = mxfp4_experts(model) and kind in KEEPS_MXFP4_EXPERTS
    queries = {
        name: type_query(t, file, keep_mxfp4_experts=keep_mxfp4_experts) for name, t in contents.distinct().items()
    }
    return decide_types(file, tuple(map(queries.__getitem__, map(id, contents.tensors))), tuple(contents.numbers))


class TypeQuery(NamedTuple):
    """The input of the type rules for one tensor, except its position among the others."""

    fixed_type: str | None  # the type, if llama-quantize does not choose one
    name: str
    role: TypeRole
    row: int
    stacked: bool


def type_query(tensor: Tensor, file: FileContext, *, keep_mxfp4_experts: bool) -> TypeQuery:
    """The rule input of a tensor. A tensor that llama-quantize does not quantise stays as converted."""
    fixed_type = None
    if keep_mxfp4_experts and tensor.quantised and tensor.category == "experts":
        fixed_type = "MXFP4"
    elif not tensor.quantised or (tensor.name in F32_CONVERTED and file.base in FLOATS):
        converted = file.base if file.base in FLOATS else "F16"
        fixed_type = converted if tensor.name in AS_CONVERTED and tensor.rows > 1 else "F32"
    return TypeQuery(fixed_type, tensor.name, tensor.role, gcd(tensor.ne[0], LONGEST_BLOCK), tensor.stacked)


@lru_cache(maxsize=32)
def decide_types(file: FileContext, tensors: tuple[TypeQuery, ...], layers: tuple[int, ...]) -> list[str]:
    """The type of each tensor. Raises ParamcalcError if llama-quantize cannot write the file.

    Results are cached: models that differ only in width mostly have the same types.
    """
    counts: Counter[TypeRole] = Counter()
    types = []
    for (fixed_type, name, role, row, stacked), layer in zip(tensors, layers, strict=True):
        type_name = fixed_type
        if type_name is None:
            try:
                type_name = choose_type(file, TypeContext(role, row, stacked, layer, counts[role]))
            except ValueError as error:
                message = f"llama-quantize cannot write this model as {file.ftype}: {name}: {error}"
                raise ParamcalcError(message, "choose another type, such as Q4_K_M") from error
            counts[role] += 1
        types.append(type_name)
    return types


def seventy_billion(arch: Architecture, contents: FileContents) -> bool:
    """True if llama-quantize classifies the model as 70B."""
    match arch.seventy_billion:
        case "80 layers":
            return contents.layers == 80
        case "80 layers in groups":  # Llama 2 70B, but not Llama 65B, which has no GQA
            return contents.layers == 80 and contents.gqa != 1
        case "68 layers":
            return contents.layers == 68
    return False
