"""ERNIE 4.5 with images."""

from __future__ import annotations

from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import patches_per_merge, vit_layer
from paramcalc.families.builders.vision_language import vision_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Linear, Norm


@tower("ernie4_5_vl_moe_vision")
def ernie4_5_vl_vision(v: Config) -> Block:
    """A ViT with rotary positions (Ernie4_5_VLMoeVisionTransformerPretrainedModel)."""
    patch = PatchEmbedding(width=v.hidden_size, channels=v.in_channels, patch=(v.patch_size, v.patch_size), bias=False)
    layers = stack("vision", Run(v.num_hidden_layers, vit_layer(v)))
    return block("vision", patches=patch, layers=layers, norm=layer_norm(v))


@family("ernie4_5_vl_moe", ties="above")
def ernie4_5_vl_moe(c: Config) -> Component:
    """A ViT, mergers of neighbouring patches and frames, ERNIE (ERNIE 4.5; Ernie4_5_VLMoe...Generation)."""

    def projector(v: Config, d: int) -> Block:
        wide = v.hidden_size * patches_per_merge(v)
        norm = Norm(width=wide, bias=True)
        return block(
            "projector",
            space=block(**two_layers(wide, wide, wide), norm=norm),
            time=block(**two_layers(wide * v.temporal_merge_size, wide, wide), norm=norm),
            proj=Linear(d_in=wide, d_out=d, bias=True),
            norm=Norm(width=d),
        )

    return vision_language_model(c, projector)
