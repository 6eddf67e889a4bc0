"""Kimi-VL and Kimi K2.5: MoonViT, a projector over merged patches, and a language model."""

from __future__ import annotations

from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import ignored_fields, layer_norm
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import height_and_width, vit_layer
from paramcalc.families.builders.vision_language import wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Norm, Param


@tower("moonvit", "kimi_k25_vision")
def moonvit(v: Config) -> Block:
    """A ViT with a learned, interpolated grid of positions (MoonViT; Kimi-VL, 2504.07491, section 2.1)."""
    d = v.hidden_size
    return block(
        "vision",
        patches=PatchEmbedding(width=d, channels=3, patch=height_and_width(v, "patch_size")),
        positions=Param(shape=(v.pos_emb_height, v.pos_emb_width, d)),
        layers=stack("vision", Run(v.num_hidden_layers, vit_layer(v))),
        norm=layer_norm(v),
    )


def kimi_patch_merger(v: Config, d: int, *, norm_width: int) -> Block:
    """A norm over each patch, and two layers over neighbouring patches."""
    height, width = height_and_width(v, "merge_kernel_size")
    joined = v.hidden_size * height * width
    return block("projector", norm=Norm(width=norm_width, bias=True), **two_layers(joined, joined, d))


@family("kimi_vl", ties="above")
def kimi_vl(c: Config) -> Component:
    """MoonViT, two layers, DeepSeek-V3's decoder (Kimi-VL, 2504.07491; KimiVLForConditionalGeneration)."""
    return wrap_any_language_model(c, lambda v, d: kimi_patch_merger(v, d, norm_width=v.hidden_size), any_tower=False)


@family("kimi_k25", ties="above")
def kimi_k25(c: Config) -> Component:
    """MoonViT over images and video, two layers, DeepSeek-V3's decoder (Kimi_K25ForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        # The first files repeat both widths in the tower's section.
        ignored_fields(v, text_hidden_size=d, mm_hidden_size=c.projection_hidden_size)
        return kimi_patch_merger(v, d, norm_width=c.projection_hidden_size)

    return wrap_any_language_model(c, projector, any_tower=False)
