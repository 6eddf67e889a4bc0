"""The fold: from the tensors of a GGUF file to its bytes, by type and category."""

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
    Contents,
    Tensor,
    contents,
    language_model_and_rest,
    outside_tensors,
)
from paramcalc.storage.gguf.type_rules import FileContext, TypeContext, TypeRole, choose_type
from paramcalc.storage.gguf.types import FLOATS, GGUF_TYPES, LONGEST_BLOCK, ftype
from paramcalc.storage.gguf.warnings import AS_EXPERTS_ARE, gguf_doubts, gguf_notes, mxfp4_experts, needs_imatrix
from paramcalc.tree.component import Component
from paramcalc.tree.containers import main_stack, num_layers, stacks
from paramcalc.tree.weights import CATEGORIES, Category

ALIGNMENT = 32  # GGUF_DEFAULT_ALIGNMENT: each tensor starts at a multiple


class GgufTensors(NamedTuple):
    """Equal tensors in one format."""

    format: str
    category: Category
    tensors: int
    parameters: int  # logical: what the unquantised tensors hold
    bytes: int


class GgufFile(NamedTuple):
    """The tensors of a GGUF file. Its header, which has the tokenizer in it, comes on top."""

    ftype: str  # as llama-quantize calls it: Q4_K_M
    stored: tuple[GgufTensors, ...]
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


def gguf_file(model: Model, name: str, *, imatrix: bool = False) -> GgufFile:
    """What llama.cpp would write of this model's weights as this kind of file: `q4_k_m`, `gguf-f16`.

    `imatrix`: with an importance matrix, which changes five kinds of file; a kind that needs one is written with it in
    any case. Raises ParamcalcError for an unknown kind of file, and where llama-quantize refuses the model.
    """
    kind = ftype(name)
    (file,) = model.cached(f"gguf {kind} {imatrix}", lambda: [_file(model, kind, imatrix=imatrix)])
    return file


def stage_of(whole: Model, stage: Model, name: str) -> tuple[GgufTensors, ...]:
    """What a pipeline stage of the `whole` holds of its file: the types are those of the whole, as one file has them.

    llama.cpp deals out layers so (--split-mode layer). What stands in no layer is where the stage's tree has it;
    factors of rotary positions are in every stage.
    """
    found, types, _ = _decided(whole, ftype(name), imatrix=False)
    tree, _ = language_model_and_rest(whole.tree)
    part = stage.tree if tree is whole.tree else stage.tree.parts().get("language_model")
    if part is None:  # a stage of towers alone, which are in another file
        return ()
    layers, end = _numbers(tree, part), found.layers - found.predicting
    if end - 1 in layers:
        layers |= {*range(end, found.layers)}  # modules that predict more come after all
    entries = [*zip(found.tensors, found.numbers, types, strict=True)]
    held = [(t, name) for t, number, name in entries if number in layers]
    beside = {t: name for t, number, name in entries if number == OUTSIDE_LAYERS}
    everywhere, here = outside_tensors(tree, gguf_architecture(whole)), outside_tensors(part, gguf_architecture(whole))
    held += [(t, beside[t]) for t in here] + [(t, name) for t, name in beside.items() if t not in everywhere]
    return sum_by_type((name, tensor_measure(tensor)) for tensor, name in held)


def _numbers(whole: Component, stage: Component) -> set[int]:
    """Numbers of the stage's layers among those of the whole: of stacks that are not cut, and of its part of one."""
    everything, own, numbers, start = stacks(whole), stacks(stage), set[int](), 0
    uncut = [stack for stack in own if any(stack is one for one in everything)]
    cuts = [stack for stack in own if not any(stack is one for one in uncut)]
    divided = main_stack(everything)
    for stack in everything:
        same = [one for one in uncut if one is stack]
        for one in same or (cuts if stack is divided else []):
            numbers |= {*range(start + int(one.first), start + int(one.first) + num_layers(one))}
        start += num_layers(stack)
    return numbers


def _decided(model: Model, kind: str, *, imatrix: bool) -> tuple[Contents, list[str], list[str]]:
    """The tensors, their types, and what is to be said."""
    (found,) = model.cached("gguf", lambda: [contents(model, gguf_architecture(model))])
    types = types_of(model, found, kind, imatrix=imatrix)
    said = [*gguf_notes(model, found, kind)]
    if needs_imatrix(found, kind, types):
        said.insert(0, f"llama-quantize needs an importance matrix (--imatrix) for {kind}")
        types = types_of(model, found, kind, imatrix=True)
    return found, types, said


def _file(model: Model, kind: str, *, imatrix: bool) -> GgufFile:
    found, types, said = _decided(model, kind, imatrix=imatrix)
    measures = {name: tensor_measure(tensor) for name, tensor in found.distinct().items()}
    alike = Counter(zip(types, map(measures.__getitem__, map(id, found.tensors)), strict=True))
    padded = sum(
        count * -(-rows * GGUF_TYPES[name].bytes(row) // ALIGNMENT) * ALIGNMENT
        for (name, (_, _, row, rows)), count in alike.items()
    )
    why = model.cached("gguf doubts", lambda: gguf_doubts(model, found))
    return GgufFile(kind, sum_by_type(alike.elements()), why, tuple(said), padded)


Measure = tuple[Category, int, int, int]


def sum_by_type(tensors: Iterable[Sequence[Any]]) -> tuple[GgufTensors, ...]:
    """Tensors, each a type and a measure; equal ones together, in the order of types and categories."""
    alike = Counter(map(tuple, tensors))
    order = sorted(alike, key=lambda key: ([*GGUF_TYPES].index(key[0]), CATEGORIES.index(key[1][0])))
    return tuple(
        GgufTensors(
            name, category, alike[key], alike[key] * parameters, alike[key] * rows * GGUF_TYPES[name].bytes(row)
        )
        for key in order
        for name, (category, parameters, row, rows) in [key]
    )


def tensor_measure(tensor: Tensor) -> Measure:
    """What its share of the file depends on beside its type: (category, parameters, elements of a row, rows)."""
    return tensor.category, tensor.parameters, tensor.ne[0], tensor.rows


def gguf_architecture(model: Model) -> Architecture:
    """How llama.cpp stores the model; as Llama's where that was not compared."""
    return known_architecture(model) or LLAMA


def types_of(model: Model, found: Contents, kind: str, *, imatrix: bool) -> list[str]:
    """The type of each tensor."""
    arch = gguf_architecture(model)
    roles = Counter(t.role for t in found.tensors if t.quantised)
    file = FileContext(
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
    kept = mxfp4_experts(model) and kind in AS_EXPERTS_ARE
    each = {name: type_query(t, file, kept=kept) for name, t in found.distinct().items()}
    return decide_types(file, tuple(map(each.__getitem__, map(id, found.tensors))), tuple(found.numbers))


class TypeQuery(NamedTuple):
    """What the type of a tensor depends on, beside the tensors before it."""

    known: str | None  # the type, where the tool chooses none
    name: str
    role: TypeRole
    row: int
    stacked: bool


def type_query(tensor: Tensor, file: FileContext, *, kept: bool) -> TypeQuery:
    """What is asked of a tensor. Where the tool chooses no type it stays as converted."""
    known = None
    if kept and tensor.quantised and tensor.category == "experts":
        known = "MXFP4"
    elif not tensor.quantised or (tensor.name in F32_CONVERTED and file.base in FLOATS):
        converted = file.base if file.base in FLOATS else "F16"
        known = converted if tensor.name in AS_CONVERTED and tensor.rows > 1 else "F32"
    return TypeQuery(known, tensor.name, tensor.role, gcd(tensor.ne[0], LONGEST_BLOCK), tensor.stacked)


@lru_cache(maxsize=32)
def decide_types(file: FileContext, tensors: tuple[TypeQuery, ...], layers: tuple[int, ...]) -> list[str]:
    """The type of each tensor. Remembered: models that differ in width alone have the same types in most cases."""
    seen: Counter[TypeRole] = Counter()
    found = []
    for (known, name, role, row, stacked), layer in zip(tensors, layers, strict=True):
        if known is None:
            try:
                known = choose_type(file, TypeContext(role, row, stacked, layer, seen[role]))
            except ValueError as error:
                message = f"llama-quantize cannot write this model as {file.ftype}: {name}: {error}"
                raise ParamcalcError(message, "choose another type, such as Q4_K_M") from error
            seen[role] += 1
        found.append(known)
    return found


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
