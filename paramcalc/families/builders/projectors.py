"""Projectors between a tower and a language model, where several families share them."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import layer_norm, rms
from paramcalc.families.builders.vision import patches_per_merge
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, Stack, block, stack
from paramcalc.tree.leaves import Linear, Norm, Param


def two_layers(d_in: int, hidden: int, d_out: int, *, bias: bool = True) -> dict[str, Component]:
    """Two linear layers with a hidden width between them."""
    up, down = Linear(d_in=d_in, d_out=hidden, bias=bias), Linear(d_in=hidden, d_out=d_out, bias=bias)
    return {"linear_1": up, "linear_2": down}


def patch_merger(norm: Norm, joined: int, d_out: int) -> Block:
    """A norm, and two layers over neighbouring vectors."""
    return block("projector", norm=norm, **two_layers(joined, joined, d_out))


def qwen2_5_merger(v: Config) -> Block:
    """Qwen2.5-VL's merger: neighbouring vectors are joined and projected."""
    return patch_merger(rms(v), v.hidden_size * patches_per_merge(v), v.out_hidden_size)


def qwen3_merger(v: Config, *, deep: bool) -> Block:
    """Qwen3-VL's merger, repeated for each tower layer whose output feeds the decoder (`deep`)."""
    joined = v.hidden_size * patches_per_merge(v)
    last = patch_merger(layer_norm(v), joined, v.out_hidden_size)
    if not deep:
        return last
    tapped = v.list_of("deepstack_visual_indexes")
    each = patch_merger(Norm(width=joined, bias=True), joined, v.out_hidden_size)
    return block(
        "projector", **last.items, **{f"deepstack_{i}": each for i in range(3 if tapped is None else len(tapped))}
    )


def gemma3_projector(v: Config, d_out: int) -> Block:
    """Gemma 3's projector: patches are averaged, normalised and projected (Gemma3MultiModalProjector)."""
    return block("projector", norm=rms(v), weight=Param(shape=(v.hidden_size, d_out)))


def feature_layer_count(c: Config) -> int:
    """The number of tower layers whose outputs are concatenated, from vision_feature_layer."""
    stated = c.raw("vision_feature_layer")
    if isinstance(stated, list):
        return len(c.layer_indices("vision_feature_layer"))
    c.require(stated is None or type(stated) is int, "vision_feature_layer must be a layer number or a list of them")
    return 1


def llava_projector_layers(c: Config, v: Config, d: int) -> dict[str, Component]:
    """Two layers over the outputs of the selected tower layers."""
    d_in = v.hidden_size * feature_layer_count(c) if feature_layer_count(c) != 1 else v.hidden_size
    return two_layers(d_in, d, d, bias=c.multimodal_projector_bias)


def resampler_layers(v: Config, attn: Component, ffn: Component, *, depth: int) -> Stack:
    """Layers of queries that attend to the tower's output and to themselves (Flamingo, 2204.14198, section 2.1)."""
    norm = layer_norm(v)
    layer = block(context_norm=norm, query_norm=norm, attn=attn, ffn_norm=norm, ffn=ffn)
    return stack("projector", Run(depth, layer))
