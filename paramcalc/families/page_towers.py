"""More towers that see, of models that read pages: Segment Anything's, Pix2Struct's, BLIP's, and what looks at them."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha
from paramcalc.families.builders.decoder import layer_norm, pre_norm
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import patch_count, patches
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Param


@tower("blip_vision_model", "blip_2_vision_model", "instructblip_vision_model", "instructblipvideo_vision_model")
def blip_vision(v: Config) -> Block:
    """A ViT with a class token (BLIP, 2201.12086; BlipVisionModel)."""
    layer = pre_norm(layer_norm(v), mha(v, qkv_bias=v.qkv_bias), mlp(v, v.intermediate_size))
    return block(
        "vision",
        class_token=Param(shape=(1, 1, v.hidden_size)),
        patches=patches(v),
        positions=Param(shape=(1, patch_count(v) + 1, v.hidden_size)),
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
        norm=layer_norm(v),
    )


# -- Swin --------------------------------------------------------------------------------------------------------
