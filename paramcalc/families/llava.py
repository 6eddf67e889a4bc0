"""LLaVA and its kin: whatever tower and language model the file names, and a projector between them."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.projectors import feature_layer_count, llava_projector_layers, two_layers
from paramcalc.families.builders.vision_language import vision_language_model, with_stack_role, wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear, Norm, Param


@family("llava", ties="either")
def llava(c: Config) -> Component:
    """A tower, two layers, a language model (LLaVA, 2310.03744; LlavaForConditionalGeneration)."""
    return wrap_any_language_model(c, lambda v, d: block("projector", **llava_projector_layers(c, v, d)))


@family("vipllava", ties="above")
def vipllava(c: Config) -> Component:
    """LLaVA over five layers of the tower, with a norm before its two layers (VipLlavaForConditionalGeneration)."""
    stated = c.raw("vision_feature_layer") is not None

    def projector(v: Config, d: int) -> Block:
        d_in = v.hidden_size * (feature_layer_count(c) if stated else 5)
        return block("projector", norm=Norm(width=d_in, bias=True), **two_layers(d_in, d, d))

    return wrap_any_language_model(c, projector)


@family("llava_next", ties="above")
@family("llava_next_video", "llava_onevision", ties="either")
def llava_next(c: Config) -> Component:
    """LLaVA with a learned end of line between rows of tiles (LlavaNextForConditionalGeneration)."""
    return wrap_any_language_model(
        c, lambda v, d: block("projector", **llava_projector_layers(c, v, d), newline=Param(shape=(d,)))
    )


@family("video_llava", ties="above")
def video_llava(c: Config) -> Component:
    """LLaVA with a tower for images and another for video (VideoLlavaForConditionalGeneration)."""
    whole = wrap_any_language_model(c, lambda v, d: block("projector", **llava_projector_layers(c, v, d)))
    parts = dict(whole.parts())
    return block(video_tower=with_stack_role(parts["vision_tower"], "video"), **parts)


@family("mistral3", ties="above")
def mistral3(c: Config) -> Component:
    """Pixtral, neighbouring patches merged, two layers, Mistral (Mistral3ForConditionalGeneration)."""
    return wrap_any_language_model(c, lambda v, d: patch_merging_projector(c, v, d))


@family("mistral_large4", ties="above")
def mistral_large4(c: Config) -> Component:
    """Mistral 3's tower and projector, Mistral Large 4 (MistralLarge4ForConditionalGeneration)."""
    return vision_language_model(c, lambda v, d: patch_merging_projector(c, v, d), any_tower=True)


def patch_merging_projector(c: Config, v: Config, d: int) -> Block:
    """Neighbouring patches merged, and two layers."""
    dv, side = v.hidden_size, c.spatial_merge_size
    merge = Linear(d_in=dv * side * side, d_out=dv)
    return block("projector", norm=Norm(width=dv), merge=merge, **llava_projector_layers(c, v, d))


@family("paligemma", ties="above")
def paligemma(c: Config) -> Component:
    """SigLIP, one layer, Gemma (PaliGemma, 2407.07726; PaliGemmaForConditionalGeneration)."""

    def projector(v: Config, _: int) -> Linear:
        return Linear(d_in=v.hidden_size, d_out=c.projection_dim, bias=True, category="projector")

    return wrap_any_language_model(c, projector)


@family("cohere2_vision", "aya_vision", ties="above")
def cohere2_vision(c: Config) -> Component:
    """SigLIP, neighbouring patches joined, a gated projection, Command R (AyaVisionForConditionalGeneration)."""
    aya, side = c.family == "aya_vision", c.downsample_factor

    def projector(v: Config, d: int) -> Block:
        d_in, hidden = v.hidden_size * side * side, c.alignment_intermediate_size or d
        half = symbolic("half", hidden // 2, origin="alignment width / 2")
        up, down = Linear(d_in=d_in, d_out=hidden, bias=True), Linear(d_in=half, d_out=d, bias=True)
        return block("projector", norm=Norm(width=d_in, bias=True) if aya else None, linear_1=up, linear_2=down)

    return wrap_any_language_model(c, projector)


@family("internvl", "qianfan_ocr", ties="above")
def internvl(c: Config) -> Component:
    """A ViT, neighbouring patches joined, two layers, a language model (InternVLForConditionalGeneration)."""
    side = symbolic("side", int(1 / c.downsample_ratio), origin="1 / downsample_ratio")

    def projector(v: Config, d: int) -> Block:
        d_in = v.hidden_size * side * side
        return block("projector", norm=Norm(width=d_in, bias=True), **two_layers(d_in, d, d))

    return wrap_any_language_model(c, projector, any_tower=False)


@family("idefics3", "smolvlm", ties="above")
def idefics3(c: Config) -> Component:
    """A ViT, neighbouring patches joined, one layer, a language model (Idefics3, 2408.12637)."""
    side = c.scale_factor

    def projector(v: Config, d: int) -> Linear:
        return Linear(d_in=v.hidden_size * side * side, d_out=d, category="projector")

    return wrap_any_language_model(c, projector, any_tower=False)
