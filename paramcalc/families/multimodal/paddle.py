"""PaddlePaddle's document models: PaddleOCR-VL and PP-FormulaNet."""

from __future__ import annotations

from paramcalc.components import Conv2d
from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder_decoder import BartLayout, bart_stack
from paramcalc.families.builders.heads import decoder_head
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import patch_count, patches, patches_per_merge, vit_layer
from paramcalc.families.builders.vision_language import vision_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding


@tower("paddleocr_vl_vision")
def paddleocr_vl_vision(v: Config) -> Block:
    """SigLIP with rotary positions besides the learned ones (PaddleOCRVisionModel)."""
    return block(
        "vision",
        patches=patches(v),
        positions=Embedding(rows=patch_count(v), width=v.hidden_size),
        layers=stack("vision", Run(v.num_hidden_layers, vit_layer(v))),
        norm=layer_norm(v),
    )


@family("paddleocr_vl", ties="either")
def paddleocr_vl(c: Config) -> Component:
    """SigLIP, two layers over merged patches, ERNIE (PaddleOCR-VL, 2510.14528; PaddleOCRVL...Generation)."""

    def projector(v: Config, d: int) -> Block:
        joined = v.hidden_size * patches_per_merge(v)
        return block("projector", norm=layer_norm(v), **two_layers(joined, joined, d))

    return vision_language_model(c, projector, flat=True)


@family("pp_formulanet", ties="above")
def pp_formulanet(c: Config) -> Component:
    """Segment Anything's tower, two convolutions and two layers, mBART's decoder (PPFormulaNet...Generation)."""

    def projector(v: Config, _: int) -> Block:
        mid, out = v.post_conv_mid_channels, v.post_conv_out_channels
        return block(
            "projector",
            conv_1=Conv2d(channels=mid, kernel=3, per_group=v.post_conv_in_channels, bias=False),
            conv_2=Conv2d(channels=out, kernel=3, per_group=mid, bias=False),
            **two_layers(out, out, v.decoder_hidden_size),
        )

    return vision_language_model(c, projector)


@family("pp_formulanet_text")
def pp_formulanet_text(c: Config) -> Block:
    """mBART's decoder with cross attention to a tower (PPFormulaNetTextModel)."""
    form = BartLayout(pre_norm=True)
    return block(**bart_stack(c, "decoder", form, owner=None).items, **decoder_head(c, c.hidden_size))
