"""From a component tree to the tensors of the GGUF file that llama.cpp's converter writes."""

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

    name: str  # without layer and suffix: attn_v; a path that ends in a dot where the file's name is not known
    suffix: str  # weight or bias
    ne: tuple[int, ...]  # sides in ggml's order: the elements of a row first
    category: Category
    parameters: int  # how many of the model's it holds: none where the converter made it up
    quantised: bool = False  # whether the file's type is asked for at all, or it stays F32
    role: TypeRole = "other"

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return prod(self.ne[1:])

    @property
    def stacked(self) -> bool:
        """Whether it is several matrices, as experts are."""
        return any(n > 1 for n in self.ne[2:])


class FileContents(NamedTuple):
    """What the converter writes, in the order in which the tool goes through it, and what it asks about the model."""

    tensors: list[Tensor]  # those of equal layers the same objects
    numbers: list[int]  # the layer of each
    layers: int
    gqa: int  # query heads for each key/value head, as the tool finds them; 0 without the latter
    experts: int
    left_out: list[str]  # parts of the model that are not in this file
    predicting: int  # of the layers, those for multi-token prediction
    full_first: bool  # whether the first layer's attention looks at all tokens

    def distinct(self) -> dict[int, Tensor]:
        """Each tensor object once, by its identity: few, however deep the model is."""
        return dict(zip(map(id, self.tensors), self.tensors, strict=True))


def list_tensors(model: Model, arch: Architecture) -> FileContents:
    """The tensors of the model's file: those outside the layers first, then layer by layer, each by name."""
    tree, left_out = language_model_and_rest(model.tree)
    layers, mtp = list(each_layer(tree)), next(components_of_kind(tree, Mtp), None)
    attns = [attn for layer in distinct_layers(layers) for attn in components_of_kind(layer, Attention)]
    full = [attn for attn in attns if attn.window is None] or attns
    added = rope_tensors(model.facts, int(full[0].head_dim) if full else 0, arch)
    tensors = [Tensor(name, "weight", (length,), "other", 0) for name, length in added.items()] + outside_tensors(
        tree, arch
    )
    numbers = [OUTSIDE_LAYERS] * len(tensors)
    made = {id(layer): gguf_tensors(layer.weights(), layer, arch) for layer in distinct_layers(layers)}
    more = mtp_layers(model, layers, mtp, arch) if arch.mtp == "kept" else []
    for i, these in enumerate([*(made[id(layer)] for layer in layers), *more]):
        tensors += these
        numbers += [i] * len(these)
    if mtp is not None and not more:
        left_out.append("multi-token-prediction layers")
    full_first = any(attn.window is None for layer in layers[:1] for attn in components_of_kind(layer, Attention))
    return FileContents(
        tensors,
        numbers,
        len(layers) + len(more),
        gqa_ratio(model, layers, arch),
        expert_count(model, layers),
        left_out,
        len(more),
        full_first,
    )


# -- parts of the tree ---------------------------------------------------------------------------------------------


def language_model_and_rest(tree: Component) -> tuple[Component, list[str]]:
    """The language model, and the names of what stands beside it."""
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
    """The components of one kind at or below this one, stacks apart."""
    if isinstance(component, kind):
        yield component
    for part in component.parts().values():
        yield from components_of_kind(part, kind)


def gqa_ratio(model: Model, layers: list[Component], arch: Architecture) -> int:
    """Query heads for each key/value head. Latent attention that is split is stored with a single one of the latter."""
    for layer in layers[:1] if arch.kv_heads == "first layer" else distinct_layers(layers):
        for latent in components_of_kind(layer, LatentAttention):
            stated = model.facts.kv_heads or latent.heads
            return int(latent.heads) // (1 if arch.splits_latent else int(stated))
        for attn in components_of_kind(layer, Attention):
            kv_heads = {"one": 1, "all": attn.heads}.get(arch.kv_heads, attn.kv_heads)
            return int(attn.heads) // int(kv_heads)
    return 0


def expert_count(model: Model, layers: list[Component]) -> int:
    """Experts of a layer that has some; what the config says where none has: the tool looks no further."""
    built = [int(moe.experts) for layer in distinct_layers(layers) for moe in components_of_kind(layer, Moe)]
    return max(built, default=model.facts.experts)


# -- tensors --------------------------------------------------------------------------------------------------------


def outside_tensors(tree: Component, arch: Architecture) -> list[Tensor]:
    """The tensors that belong to no layer, by name."""
    parts = {name: part for name, part in tree.parts().items() if not isinstance(part, (Stack, Mtp))}
    weights = (w for name, part in parts.items() for w in part.weights(f"{name}.", tree.category))
    found = gguf_tensors((w for w in weights if not w.layers), None, arch)
    rows = max((t.rows for t in found if t.name == "token_embd"), default=0)
    return [t._replace(ne=(t.ne[0], rows)) if t.name in arch.pads else t for t in found]


def mtp_layers(model: Model, layers: list[Component], mtp: Mtp | None, arch: Architecture) -> list[list[Tensor]]:
    """The tensors of each multi-token-prediction layer; taken to be like the last one where nothing else is known."""
    if mtp is not None:
        return [mtp_layer(mtp, arch)] * int(mtp.count)
    stated = model.facts.mtp_layers
    if not layers or stated is None:
        return []
    return [gguf_tensors(layers[-1].weights(), layers[-1], arch)] * stated


def mtp_layer(mtp: Mtp, arch: Architecture) -> list[Tensor]:
    """A multi-token-prediction layer, with the tables that the checkpoint holds once more."""
    layer = mtp.items["layer"]
    found = gguf_tensors(layer.weights(), layer, arch)
    for name, part in mtp.items.items():
        if name != "layer":
            table = isinstance(part, (Embedding, Linear)) and part.tied_to is not None
            own = part.replace(tied_to=None) if table else part
            these = (gguf_tensor(w)._replace(name=MTP_NAMES.get(name, name)) for w in own.weights(f"{name}."))
            found += map(finalised, these)
    return sorted(found)


def gguf_tensors(weights: Iterable[Weight], layer: Component | None, arch: Architecture) -> list[Tensor]:
    """The tensors that these weights become, by name."""
    found = fuse([gguf_tensor(w) for w in weights], arch)
    if layer is not None and arch.splits_latent:
        found = [part for t in found for part in split_kv_b(t, layer)]
    other = dict(arch.names)
    return sorted(finalised(t._replace(name=other.get(t.name, t.name))) for t in found if t.name not in arch.drops)


def gguf_tensor(weight: Weight) -> Tensor:
    """The tensor of one weight. Experts, and norms of each head, are stacked."""
    path, suffix = weight.name.rsplit(".", 1)
    owner, part = ["", *path.split(".")][-2:]
    name = GGUF_NAMES.get((owner, part)) or GGUF_NAMES.get((weight.category, part), f"{path}.")
    sides = tuple(map(int, reversed(weight.shape))) or (1,)
    ne = sides if weight.copies == 1 else (*sides, int(weight.copies))
    parameters = 0 if weight.role == "buffer" else prod(ne)
    return Tensor(name, "bias" if suffix == "bias" else "weight", ne, weight.category, parameters)


def finalised(t: Tensor) -> Tensor:
    """The tensor under its last name, with its role. Vectors, norms, biases and some matrices stay F32."""
    matrix = any(n > 1 for n in t.ne[1:])
    if matrix and t.suffix == "weight" and t.category != "norm" and t.name not in NEVER_QUANTISED:
        return t._replace(quantised=t.name not in AS_CONVERTED, role=tensor_role(t.name))
    return t._replace(name=t.name.removesuffix(".").rsplit(".", 1)[-1])


def fuse(tensors: list[Tensor], arch: Architecture) -> list[Tensor]:
    """The same tensors, with those joined that the architecture stores as one."""
    for whole, parts in arch.fused:
        for suffix, side in (("weight", 1), ("bias", 0)):
            these = [t for t in tensors if t.name in parts and t.suffix == suffix]
            if len({t.name for t in these}) == len(these) > 1:
                ne = list(these[0].ne)
                ne[side] = sum(t.ne[side] for t in these)
                one = these[0]._replace(name=whole, ne=tuple(ne), parameters=sum(t.parameters for t in these))
                tensors = [t for t in tensors if t not in these] + [one]
    return tensors


def split_kv_b(t: Tensor, layer: Component) -> list[Tensor]:
    """Latent attention's way up, which is stored as two: keys transposed, and values, each with its heads stacked."""
    latent = next(components_of_kind(layer, LatentAttention), None)
    if t.name != "attn_kv_b" or latent is None:
        return [t]
    h, rank = int(latent.heads), int(latent.kv_rank)
    keys, values = (int(latent.nope_dim), rank, h), (rank, int(latent.value_dim), h)
    return [
        t._replace(name="attn_k_b", ne=keys, parameters=prod(keys)),
        t._replace(name="attn_v_b", ne=values, parameters=prod(values)),
    ]
