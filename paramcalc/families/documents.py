"""Models that read documents: a tower, a projector and a small language model."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, mha
from paramcalc.families.builders.decoder import decoder, layer_norm, pre_norm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import patch_count, patches, patches_per_merge, video_patches, vit_layer
from paramcalc.families.builders.vision_language import vision_language_model, wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.families.vision import glm4v_merger
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm


@family("lighton_ocr", ties="above")
def lighton_ocr(c: Config) -> Component:
    """Pixtral, neighbouring patches merged, two layers, Qwen3 (LightOnOcrForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        dv, side = v.hidden_size, c.spatial_merge_size
        merge = Linear(d_in=dv * side * side, d_out=dv)
        return block("projector", norm=Norm(width=dv), merge=merge, **two_layers(dv, d, d, bias=False))

    return wrap_any_language_model(c, projector)


# -- PaddleOCR-VL ------------------------------------------------------------------------------------------------


@tower("paddleocr_vl_vision")
def paddleocr_vl_vision(v: Config) -> Block:
    """SigLIP with rotary positions beside the learned ones (PaddleOCRVisionModel)."""
    return block(
        "vision",
        patches=patches(v),
        positions=Embedding(rows=patch_count(v), width=v.hidden_size),
        layers=stack("vision", Run(v.num_hidden_layers, vit_layer(v))),
        norm=layer_norm(v),
    )


@family("paddleocr_vl_text")
def paddleocr_vl_text(c: Config) -> Block:
    """Llama with biases everywhere or nowhere (PaddleOCRTextModel)."""
    return decoder(c, gqa(c, qkv_bias=c.use_bias, out_bias=c.use_bias), glu(c, bias=c.use_bias))


@family("paddleocr_vl", ties="either")
def paddleocr_vl(c: Config) -> Component:
    """SigLIP, two layers over merged patches, ERNIE (PaddleOCR-VL, 2510.14528; PaddleOCRVL...Generation)."""

    def projector(v: Config, d: int) -> Block:
        joined = v.hidden_size * patches_per_merge(v)
        return block("projector", norm=layer_norm(v), **two_layers(joined, joined, d))

    return vision_language_model(c, projector, flat=True)


# -- GLM-OCR -----------------------------------------------------------------------------------------------------


@tower("glm_ocr_vision", "glm5_next_vision")
def glm_ocr_vision(v: Config) -> Block:
    """Llama's layer with norms on queries and keys, and rotary positions (GlmOcrVisionModel)."""
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
