"""MiniMax-M3 with images."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import patches_per_merge, video_patches, vit_layer
from paramcalc.families.builders.vision_language import vision_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack


@tower("minimax_m3_vl_vision")
def minimax_m3_vision(v: Config) -> Block:
    """A ViT over patches of two frames, with a norm before its layers (MiniMaxM3VLVisionModel)."""
    layers = stack("vision", Run(v.num_hidden_layers, vit_layer(v)))
    return block("vision", patches=video_patches(v, bias=False), pre_norm=layer_norm(v), layers=layers)


@family("minimax_m3_vl", ties="either")
def minimax_m3_vl(c: Config) -> Component:
    """A ViT, two layers, two more over neighbouring patches, MiniMax M3 (MiniMaxM3Sparse...Generation)."""

    def projector(v: Config, d: int) -> Block:
        hidden = c.projector_hidden_size
        one, merged = two_layers(v.hidden_size, hidden, d), two_layers(d * patches_per_merge(v), hidden, d)
        return block("projector", **one, merger=block(**merged))

    return vision_language_model(c, projector)
