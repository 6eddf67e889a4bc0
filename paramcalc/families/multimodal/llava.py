"""LLaVA: any tower, any language model, and a projector between them."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.projectors import feature_layer_count, llava_projector_layers, two_layers
from paramcalc.families.builders.vision_language import with_stack_role, wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Norm, Param


@family("llava", ties="either")
def llava(c: Config) -> Component:
    """A tower, two layers, a language model (LLaVA, 2310.03744; LlavaForConditionalGeneration)."""
    return wrap_any_language_model(c, lambda v, d: block("projector", **llava_projector_layers(c, v, d)))


@family("vipllava", ties="above")
def vipllava(c: Config) -> Component:
    """LLaVA over five layers of the tower, with a norm before its projector (VipLlavaForConditionalGeneration)."""
    stated = c.raw("vision_feature_layer") is not None

    def projector(v: Config, d: int) -> Block:
        d_in = v.hidden_size * (feature_layer_count(c) if stated else 5)
        return block("projector", norm=Norm(width=d_in, bias=True), **two_layers(d_in, d, d))

    return wrap_any_language_model(c, projector)


@family("llava_next", ties="above")
@family("llava_next_video", "llava_onevision", ties="either")
def llava_next(c: Config) -> Component:
    """LLaVA with a learned newline between rows of tiles (LlavaNextForConditionalGeneration)."""
    return wrap_any_language_model(
        c, lambda v, d: block("projector", **llava_projector_layers(c, v, d), newline=Param(shape=(d,)))
    )


@family("video_llava", ties="above")
def video_llava(c: Config) -> Component:
    """LLaVA with a tower for images and another for video (VideoLlavaForConditionalGeneration)."""
    whole = wrap_any_language_model(c, lambda v, d: block("projector", **llava_projector_layers(c, v, d)))
    parts = dict(whole.parts())
    return block(video_tower=with_stack_role(parts["vision_tower"], "video"), **parts)
