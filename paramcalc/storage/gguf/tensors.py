"""The tensors of the GGUF file that the converter of llama.cpp writes, from a component tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import NamedTuple, TypeVar

from paramcalc.components import Attention, LatentAttention, Moe
from paramcalc.model import Model
from paramcalc.storage.gguf.architectures import Architecture
from paramcalc.storage.gguf.names import AS_CONVERTED, GGUF_NAMES, MTP_NAMES, NEVER_QUANTISED, tensor_role
from paramcalc.storage.gguf.rope import rope_tensors
from paramcalc.storage.gguf.type_rules import TypeRole
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Mtp, Stack, stacks
from paramcalc.tree.leaves import Embedding, Linear
from paramcalc.tree.weights import Category, Weight

C = TypeVar("C", bound=Component)
OUTSIDE_LAYERS = -1


class Tensor(NamedTuple):
    """One tensor of the file."""

    name: str  # without layer and suffix: attn_v; a path ending in a dot if the name in the file is unknown
    suffix: str  # weight or bias
    ne: tuple[int, ...]  # dimensions in the order of ggml: the elements of a row first
    category: Category
    parameters: int  # parameters of the model in it; 0 if the converter adds it
    quantised: bool = False  # False: it stays as converted, whatever the file type
    role: TypeRole = "other"

    @property
    def rows(self) -> int:
        """The number of rows."""
        return prod(self.ne[1:])

    @property
    def stacked(self) -> bool:
        """True if it is several matrices, such as experts."""
        return any(n > 1 for n in self.ne[2:])


class FileContents(NamedTuple):
    """The tensors that the converter writes, in the order of llama-quantize, and the facts that its rules use."""

    tensors: list[Tensor]  # equal layers share their objects
    numbers: list[int]  # the layer of each tensor, or OUTSIDE_LAYERS
    layers: int
    gqa: int  # query heads for each key/value head in llama-quantize; 0 without attention
    experts: int
    excluded_parts: list[str]  # parts of the model that the file does not contain
    mtp_layers: int  # the number of layers that are MTP layers
    full_attention_first: bool  # the first layer has full attention

    def distinct(self) -> dict[int, Tensor]:
        """Each tensor object once, by identity: their number does not depend on the number of layers."""
        return dict(zip(map(id, self.tensors), self.tensors, strict=True))


def list_tensors(model: Model, arch: Architecture) -> FileContents:
    """The tensors of the file: those outside the layers first, then layer by layer, sorted by name."""
    tree, excluded = language_model_and_rest(model.tree)
    layers, mtp = list(each_layer(tree)), next(components_of_kind(tree, Mtp), None)
    attns = [attn for layer in distinct_layers(layers) for attn in components_of_kind(layer, Attention)]
    full = [attn for attn in attns if attn.window is None] or attns
    added = rope_tensors(model.facts, int(full[0].head_dim) if full else 0, arch)
    tensors = [Tensor(name, "weight", (length,), "other", 0) for name, length in added.items()] + outside_tensors(
        tree, arch
    )
    numbers = [OUTSIDE_LAYERS] * len(tensors)
    by_layer = {id(layer): gguf_tensors(layer.weights(), layer, arch) for layer in distinct_layers(layers)}
    of_mtp = mtp_layers(model, layers, mtp, arch) if arch.mtp == "kept" else []
    for i, layer_tensors in enumerate([*(by_layer[id(layer)] for layer in layers), *of_mtp]):
        tensors += layer_tensors
        numbers += [i] * len(layer_tensors)
    if mtp is not None and not of_mtp:
        excluded.append("multi-token-prediction layers")
    full_first = any(attn.window is None for layer in layers[:1] for attn in components_of_kind(layer, Attention))
    return FileContents(
        tensors,
        numbers,
        len(layers) + len(of_mtp),
        gqa_ratio(model, layers, arch),
        expert_count(model, layers),
        excluded,
        len(of_mtp),
        full_first,
    )


# -- parts of the tree ---------------------------------------------------------------------------------------------


def language_model_and_rest(tree: Component) -> tuple[Component, list[str]]:
    """The language model, and the names of the other parts (towers, projectors)."""
    parts = dict(tree.parts())
    language = parts.pop("language_model", None)
    return (tree, []) if language is None else (language, [name.replace("_", " ") for name in parts])


def each_layer(tree: Component) -> Iterator[Component]:
    """Each layer in order."""
    for stack in stacks(tree):
        for run in stack.runs:
            yield from [run.layer] * int(run.repeat)


def distinct_layers(layers: Iterable[Component]) -> list[Component]:
    """Each distinct layer once."""
    return list({id(layer): layer for layer in layers}.values())


def components_of_kind(component: Component, kind: type[C]) -> Iterator[C]:
    """The components of one class at or below this one."""
    if isinstance(component, kind):
        yield component
    for part in component.parts().values():
        yield from components_of_kind(part, kind)


def gqa_ratio(model: Model, layers: list[Component], arch: Architecture) -> int:
    """Query heads for each key/value head, 0 without attention. Split latent attention has one key/value head."""
    for layer in layers[:1] if arch.kv_heads == "first layer" else distinct_layers(layers):
        for latent in components_of_kind(layer, LatentAttention):
            stated = model.facts.kv_heads or latent.heads
            return int(latent.heads) // (1 if arch.splits_latent else int(stated))
        for attn in components_of_kind(layer, Attention):
            kv_heads = {"one": 1, "all": attn.heads}.get(arch.kv_heads, attn.kv_heads)
            return int(attn.heads) // int(kv_heads)
    return 0


def expert_count(model: Model, layers: list[Component]) -> int:
    """The largest number of experts of a layer, or the stated number if no layer has experts (as in llama-quantize)."""
    built = [int(moe.experts) for layer in distinct_layers(layers) for moe in components_of_kind(layer, Moe)]
    return max(built, default=model.facts.experts)


# -- tensors --------------------------------------------------------------------------------------------------------


def outside_tensors(tree: Component, arch: Architecture) -> list[Tensor]:
    """The tensors outside the layers, sorted by name."""
    parts = {name: part for name, part in tree.parts().items() if not isinstance(part, (Stack, Mtp))}
    weights = (w for name, part in parts.items() for w in part.weights(f"{name}.", tree.category))
    tensors = gguf_tensors((w for w in weights if not w.layers), None, arch)
    rows = max((t.rows for t in tensors if t.name == "token_embd"), default=0)
    return [t._replace(ne=(t.ne[0], rows)) if t.name in arch.pads else t for t in tensors]


def mtp_layers(model: Model, layers: list[Component], mtp: Mtp | None, arch: Architecture) -> list[list[Tensor]]:
    """The tensors of each MTP layer; assumed equal to those of the last layer if the tree has no MTP layer."""
    if mtp is not None:
        return [mtp_layer(mtp, arch)] * int(mtp.count)
    stated = model.facts.mtp_layers
    if not layers or stated is None:
        return []
    return [gguf_tensors(layers[-1].weights(), layers[-1], arch)] * stated


def mtp_layer(mtp: Mtp, arch: Architecture) -> list[Tensor]:
    """The tensors of an MTP layer, with the tables that the checkpoint repeats for it."""
    layer = mtp.items["layer"]
    tensors = gguf_tensors(layer.weights(), layer, arch)
    for name, part in mtp.items.items():
        if name != "layer":
            table = isinstance(part, (Embedding, Linear)) and part.tied_to is not None
            own = part.replace(tied_to=None) if table else part
            these = (gguf_tensor(w)._replace(name=MTP_NAMES.get(name, name)) for w in own.weights(f"{name}."))
            tensors += map(classify, these)
    return sorted(tensors)


def gguf_tensors(weights: Iterable[Weight], layer: Component | None, arch: Architecture) -> list[Tensor]:
    """The tensors in the file for these weights, sorted by name."""
    tensors = fuse([gguf_tensor(w) for w in weights], arch)
    if layer is not None and arch.splits_latent:
        tensors = [part for t in tensors for part in split_kv_b(t, layer)]
    renamed = dict(arch.names)
    return sorted(classify(t._replace(name=renamed.get(t.name, t.name))) for t in tensors if t.name not in arch.drops)


def gguf_tensor(weight: Weight) -> Tensor:
    """The tensor of one weight. Copies (experts, norms of each head) are stacked."""
    path, suffix = weight.name.rsplit(".", 1)
    owner, part = ["", *path.split(".")][-2:]
    name = GGUF_NAMES.get((owner, part)) or GGUF_NAMES.get((weight.category, part), f"{path}.")
    sides = tuple(map(int, reversed(weight.shape))) or (1,)
    ne = sides if weight.copies == 1 else (*sides, int(weight.copies))
    parameters = 0 if weight.role == "buffer" else prod(ne)
    return Tensor(name, "bias" if suffix == "bias" else "weight", ne, weight.category, parameters)


def classify(t: Tensor) -> Tensor:
    """The tensor with its final name and role. Vectors, norms, biases and some matrices stay F32."""
    matrix = any(n > 1 for n in t.ne[1:])
    if matrix and t.suffix == "weight" and t.category != "norm" and t.name not in NEVER_QUANTISED:
        return t._replace(quantised=t.name not in AS_CONVERTED, role=tensor_role(t.name))
    return t._replace(name=t.name.removesuffix(".").rsplit(".", 1)[-1])


def fuse(tensors: list[Tensor], arch: Architecture) -> list[Tensor]:
    """The tensors, after those that the architecture stores as one are fused."""
    for fused_name, parts in arch.fused:
        for suffix, side in (("weight", 1), ("bias", 0)):
            matching = [t for t in tensors if t.name in parts and t.suffix == suffix]
            if len({t.name for t in matching}) == len(matching) > 1:
                ne = list(matching[0].ne)
                ne[side] = sum(t.ne[side] for t in matching)
                fused = matching[0]._replace(
                    name=fused_name, ne=tuple(ne), parameters=sum(t.parameters for t in matching)
                )
                tensors = [t for t in tensors if t not in matching] + [fused]
    return tensors


def split_kv_b(t: Tensor, layer: Component) -> list[Tensor]:
    """kv_b_proj of latent attention, stored as two: keys (transposed) and values, each with its heads stacked."""
    latent = next(components_of_kind(layer, LatentAttention), None)
    if t.name != "attn_kv_b" or latent is None:
        return [t]
    h, rank = int(latent.heads), int(latent.kv_rank)
    keys, values = (int(latent.nope_dim), rank, h), (rank, int(latent.value_dim), h)
    return [
        t._replace(name="attn_k_b", ne=keys, parameters=prod(keys)),
        t._replace(name="attn_v_b", ne=values, parameters=prod(values)),
    ]
