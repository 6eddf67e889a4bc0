"""Parts of vision towers: patch embeddings, patch counts, and ViT's layers."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha
from paramcalc.families.builders.decoder import layer_norm, layer_scaled, pre_norm
from paramcalc.families.builders.ffn import mlp
from paramcalc.tree.containers import Block, Run, Stack, stack


def patches(v: Config, *, bias: bool = True) -> PatchEmbedding:
    """One vector for each square patch."""
    p = v.patch_size
    return PatchEmbedding(width=v.hidden_size, channels=v.num_channels, patch=(p, p), bias=bias)


def video_patches(v: Config, width: int | None = None, *, bias: bool = True) -> PatchEmbedding:
    """One vector for each square patch over a few frames."""
    p, frames, d = v.patch_size, v.temporal_patch_size, width or v.hidden_size
    return PatchEmbedding(width=d, channels=v.in_channels, patch=(p, p), frames=frames, bias=bias)


def patch_count(v: Config) -> int:
    """The number of patches of a square image."""
    side: int = symbolic("side", v.image_size // v.patch_size, origin="image_size / patch_size")
    return side * side


def height_and_width(v: Config, name: str) -> tuple[int, int]:
    """Height and width: a pair, or one number for both."""
    if not isinstance(v.raw(name), list):
        both = getattr(v, name)
        return both, both
    sides = [v.size(name, side) for side in v.list_of(name) or ()]
    v.require(len(sides) == 2, f"{name} has {len(sides)} entries, not height and width")
    return sides[0], sides[1]


def patches_per_merge(v: Config) -> int:
    """The number of vectors that a merger joins."""
    side: int = v.spatial_merge_size
    return side * side


def vit_layer(v: Config) -> Block:
    """ViT's layer: LayerNorms, attention and a plain FFN, with biases."""
    return pre_norm(layer_norm(v), mha(v), mlp(v, v.intermediate_size))


def layer_scaled_vit(v: Config, hidden: int | None = None) -> Stack:
    """ViT's layers with LayerScale; the FFN is mlp_ratio times as wide by default."""
    hidden = hidden or symbolic("d_ff", int(v.hidden_size * v.mlp_ratio), origin="hidden_size x mlp_ratio")
    return stack("vision", Run(v.num_hidden_layers, layer_scaled(layer_norm(v), mha(v), mlp(v, hidden))))
