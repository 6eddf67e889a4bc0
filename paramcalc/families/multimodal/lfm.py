"""LFM2-VL and LFM3-VL."""

from __future__ import annotations

from paramcalc.components import Conv2d
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import qk_norm_per_head
from paramcalc.families.builders.decoder import layer_norm, pre_norm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.layer_types import FULL, mixer_types
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import patches_per_merge, video_patches
from paramcalc.families.builders.vision_language import wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block, stack
from paramcalc.tree.leaves import Linear, Norm


@family("lfm2_vl", ties="above")
def lfm2_vl(c: Config) -> Component:
    """SigLIP 2, two layers over neighbouring patches, LFM2 (Lfm2VlForConditionalGeneration)."""
    side = c.downsample_factor

    def projector(v: Config, d: int) -> Block:
        d_in = v.hidden_size * side * side
        norm = Norm(width=d_in, bias=True) if c.projector_use_layernorm else None
        return block("projector", norm=norm, **two_layers(d_in, c.projector_hidden_size, d, bias=c.projector_bias))

    return wrap_any_language_model(c, projector)


@tower("lfm3_vl_vision")
def lfm3_vl_vision(v: Config) -> Block:
    """Short convolutions over the image in most layers, attention in a few (Lfm3VlVisionModel)."""
    d, kernel = v.hidden_size, v.conv_kernel_size
    conv = block(
        in_proj=Linear(d_in=d, d_out=3 * d),
        conv=Conv2d(channels=d, kernel=kernel, bias=False),
        out_proj=Linear(d_in=d, d_out=d),
    )
    parts = {FULL: qk_norm_per_head(v), "conv": conv}
    default = ["conv" if i < 2 or i % 2 else FULL for i in range(v.num_hidden_layers)]
    layers = {word: pre_norm(rms(v), part, glu(v)) for word, part in parts.items()}
    words = mixer_types(v, default, tuple(layers))
    return block(
        "vision",
        patches=video_patches(v, bias=False),
        norm=rms(v),
        layers=stack("vision", [layers[word] for word in words]),
    )


@family("lfm3_vl", ties="above")
def lfm3_vl(c: Config) -> Component:
    """A hybrid tower, two layers over neighbouring patches, LFM3 (Lfm3VlForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        layers = two_layers(v.hidden_size * patches_per_merge(v), c.projector_hidden_size, d, bias=c.projector_bias)
        return block("projector", norm=layer_norm(v), **layers)

    return wrap_any_language_model(c, projector, any_tower=False)
