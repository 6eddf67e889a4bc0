"""EXAONE 4.5 with images."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.decoder import pre_norm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.projectors import qwen2_5_merger
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import video_patches
from paramcalc.families.builders.vision_language import wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack


@tower("exaone4_5_vision")
def exaone4_5_vision(v: Config) -> Block:
    """Qwen2.5-VL's tower with grouped keys and values (Exaone4_5_VisionModel)."""
    layer = pre_norm(rms(v), gqa(v, qkv_bias=True, out_bias=True), glu(v, bias=True))
    return block(
        "vision", patches=video_patches(v, bias=False), layers=stack("vision", Run(v.num_hidden_layers, layer))
    )


@family("exaone4_5", ties="above")
def exaone4_5(c: Config) -> Component:
    """A tower with windowed attention, a merger, EXAONE 4 (Exaone4_5_ForConditionalGeneration)."""
    return wrap_any_language_model(c, lambda v, _: qwen2_5_merger(v), any_tower=False)
