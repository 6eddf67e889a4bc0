"""Hunyuan-VL and HY 4 with images."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Conv2d
from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import ignored_fields, rms
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import patches, patches_per_merge, vit_layer
from paramcalc.families.builders.vision_language import vision_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@tower("hunyuan_vl_vision", "hy_v4_vl_vision")
def hunyuan_vision(v: Config) -> Block:
    """A ViT with positions for the largest image (HunYuanVLVisionTransformer)."""
    side = symbolic("side", v.max_image_size // v.patch_size, origin="max_image_size / patch_size")
    return block(
        "vision",
        patches=patches(v),
        positions=Embedding(rows=side * side + 1, width=v.hidden_size),
        layers=stack("vision", Run(v.num_hidden_layers, vit_layer(v))),
    )


@family("hunyuan_vl", ties="either")
def hunyuan_vl(c: Config) -> Component:
    """A ViT, convolutions over neighbouring patches, Hunyuan's dense decoder; older files are flat (HunYuanVL...)."""
    if c.raw("text_config") is None:
        ignored_fields(c, tie_word_embeddings=True)

    def projector(v: Config, d: int) -> Block:
        dv, mark = v.hidden_size, Param(shape=(d,))
        return block(
            "projector",
            norm=rms(v),
            conv_1=Conv2d(channels=2 * dv, kernel=v.spatial_merge_size, per_group=dv),
            conv_2=Conv2d(channels=4 * dv, kernel=1, per_group=2 * dv),
            newline=Param(shape=(4 * dv,)),
            proj=Linear(d_in=4 * dv, d_out=d, bias=True),
            begin=mark,
            end=mark,
            separator=mark,
            out_norm=Norm(width=d),
        )

    return vision_language_model(c, projector, flat=True)


@family("hy_v4_vl", ties="above")
def hy_v4_vl(c: Config) -> Component:
    """Hunyuan's ViT, two convolutions, HY 4 (HYV4VLForConditionalGeneration)."""

    def projector(v: Config, _: int) -> Block:
        wide, out = v.hidden_size * patches_per_merge(v), v.out_hidden_size
        return block(
            "projector",
            norm=rms(v),
            conv_1=Conv2d(channels=wide, kernel=v.spatial_merge_size, per_group=v.hidden_size),
            conv_2=Conv2d(channels=out, kernel=1, per_group=wide),
            newline=Param(shape=(out,)),
        )

    return vision_language_model(c, projector)
