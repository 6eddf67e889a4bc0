"""GLM with images or audio."""

from __future__ import annotations

from paramcalc.components import Mlp
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, mha
from paramcalc.families.builders.audio_language import audio_language_model
from paramcalc.families.builders.decoder import pre_norm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import patch_count, video_patches
from paramcalc.families.builders.vision_language import vision_language_model, wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm

# -- GLM-4.1V and its successors -------------------------------------------------------------------------------------


@tower("glm4v_vision", "glm4v_moe_vision")
def glm4v_vision(v: Config) -> Block:
    """Llama's layer with learned and rotary positions; intermediate_size is the merger's (Glm4vVisionModel)."""
    attn = mha(v, qkv_bias=v.attention_bias, out_bias=False)
    return block(
        "vision",
        patches=video_patches(v),
        post_conv_norm=rms(v),
        positions=Embedding(rows=patch_count(v), width=v.hidden_size),
        layers=stack("vision", Run(v.num_hidden_layers, pre_norm(rms(v), attn, glu(v, v.out_hidden_size)))),
        norm=rms(v),
    )


def glm4v_merger(v: Config, hidden: int) -> Block:
    """A convolution over neighbouring vectors, a projection with a norm, and a gated FFN of width `hidden`."""
    out, side = v.out_hidden_size, v.spatial_merge_size
    return block(
        "projector",
        downsample=PatchEmbedding(width=out, channels=v.hidden_size, patch=(side, side)),
        proj=Linear(d_in=out, d_out=out),
        norm=Norm(width=out, bias=True),
        ffn=Mlp(width=out, hidden=hidden, gated=True),
    )


@family("glm4v", "glm4v_moe", ties="either")
def glm4v(c: Config) -> Component:
    """A tower, a convolution and a merger, GLM-4 (GLM-4.1V, 2507.01006; Glm4vForConditionalGeneration)."""
    return vision_language_model(c, lambda v, _: glm4v_merger(v, v.intermediate_size))


@family("glm46v", "glmga", ties="above")
def glm46v(c: Config) -> Component:
    """GLM-4.1V's tower and merger, and any language model, dense or with experts (Glm46VForConditionalGeneration)."""
    return wrap_any_language_model(c, lambda v, _: glm4v_merger(v, v.intermediate_size), any_tower=False)


# -- GLM-OCR and GLM 5 -----------------------------------------------------------------------------------------------


@tower("glm_ocr_vision", "glm5_next_vision")
def glm_ocr_vision(v: Config) -> Block:
    """Llama's layer with QK norms and rotary positions (GlmOcrVisionModel)."""
    norm = Norm(width=equal_heads(v))
    attn = mha(v, qkv_bias=v.attention_bias, out_bias=v.attention_bias, qk_norm=norm)
    layer = pre_norm(rms(v), attn, glu(v, bias=v.attention_bias))
    return block(
        "vision", patches=video_patches(v), layers=stack("vision", Run(v.num_hidden_layers, layer)), norm=rms(v)
    )


@family("glm_ocr", ties="either")
def glm_ocr(c: Config) -> Component:
    """A tower, a convolution and a merger, GLM-4 (GlmOcrForConditionalGeneration)."""
    return vision_language_model(c, lambda v, _: glm4v_merger(v, v.out_hidden_size * v.in_channels))


@family("glm5_next", ties="above")
def glm5_next(c: Config) -> Component:
    """GLM-OCR's tower and merger, GLM 5 (Glm5NextForConditionalGeneration)."""
    return vision_language_model(c, lambda v, _: glm4v_merger(v, v.projection_intermediate_size))


# -- audio -----------------------------------------------------------------------------------------------------------


@family("glmasr")
def glmasr(c: Config) -> Component:
    """Whisper's layers with rotary positions, two layers over groups of frames, Llama (GlmAsr...Generation)."""
    return audio_language_model(
        c, lambda v, d: block("projector", **two_layers(v.intermediate_size, 2 * d, d)), completes=True
    )
