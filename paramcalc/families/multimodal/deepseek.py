"""DeepSeek-VL, DeepSeek-OCR 2 and Unlimited-OCR."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Conv2d
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.decoder import layer_norm, pre_norm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower, tower_in, vision_tower
from paramcalc.families.builders.vision import patch_count, vit_layer
from paramcalc.families.builders.vision_language import (
    any_language_model,
    assemble_multimodal,
    vision_language_model,
    with_stack_role,
    wrap_any_language_model,
)
from paramcalc.families.registry import family
from paramcalc.families.towers.vision_special import sam_neck, segment_anything
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Param


@family("deepseek_vl", ties="above")
def deepseek_vl(c: Config) -> Component:
    """SigLIP, two layers, Llama (DeepSeek-VL, 2403.05525; DeepseekVLForConditionalGeneration)."""
    return wrap_any_language_model(c, lambda v, d: block("projector", **two_layers(v.hidden_size, d, d)))


@family("deepseek_vl_hybrid", ties="above")
def deepseek_vl_hybrid(c: Config) -> Component:
    """SigLIP and Segment Anything's tower, projected and joined, and Llama (DeepSeek-VL, 2403.05525)."""
    vision, v = vision_tower(c, any_kind=True)
    fine, f = tower_in(c, "high_res_vision_config")
    language, d = any_language_model(c)
    out, half = f.output_channels, symbolic("d / 2", d // 2, origin="hidden_size / 2")
    fine_proj = block(
        "vision",
        neck=sam_neck(f),
        conv_1=Conv2d(channels=2 * out, kernel=3, per_group=out, bias=False),
        conv_2=Conv2d(channels=4 * out, kernel=3, per_group=2 * out, bias=False),
        gate=Param(shape=(1,)),
    )
    projector = block(
        "projector",
        proj=Linear(d_in=v.hidden_size, d_out=half, bias=True),
        fine_proj=Linear(d_in=4 * out, d_out=half, bias=True),
        both=Linear(d_in=d, d_out=d, bias=True),
    )
    return assemble_multimodal(
        language,
        vision_tower=vision,
        fine_tower=with_stack_role(fine, "fine vision"),
        fine_proj=fine_proj,
        projector=projector,
    )


# -- DeepSeek-OCR 2 and Unlimited-OCR --------------------------------------------------------------------------------


@tower("deepseek_ocr2_sam_vision_model", "unlimited_ocr_sam_vision_model")
def sam_with_convolutions(v: Config) -> Block:
    """Segment Anything's tower with two convolutions that reduce its output (DeepseekOcr2SamVisionEncoder)."""
    first, second = downsample_channels(v)
    return block(
        "vision",
        **segment_anything(v).items,
        conv_1=Conv2d(channels=first, kernel=3, per_group=v.output_channels, bias=False),
        conv_2=Conv2d(channels=second, kernel=3, per_group=first, bias=False),
    )


def downsample_channels(v: Config) -> tuple[int, int]:
    """Output channels of the two convolutions."""
    stated = v.list_of("downsample_channels")
    if stated is None:
        return 512, v.last_channels
    v.require(len(stated) == 2, f"downsample_channels has {len(stated)} entries, not one for each convolution")
    return v.size("downsample_channels", stated[0]), v.size("downsample_channels", stated[1])


@tower("deepseek_ocr2_encoder")
def deepseek_ocr2_encoder(v: Config) -> Block:
    """Qwen2's layers over queries and patches together (DeepSeek-OCR 2; DeepseekOcr2VisionEncoder)."""
    layer = pre_norm(rms(v), gqa(v, qkv_bias=True), glu(v))
    table = {f"queries_{rows}": Embedding(rows=rows, width=v.hidden_size) for rows in (144, 256)}
    return block("vision", **table, layers=stack("page", Run(v.num_hidden_layers, layer)), norm=rms(v))


@tower("unlimited_ocr_vision_encoder")
def unlimited_ocr_encoder(v: Config) -> Block:
    """CLIP's layers over the patches of the other tower (UnlimitedOcrVisionEncoder)."""
    return block(
        "vision",
        class_token=Param(shape=(v.hidden_size,)),
        positions=Embedding(rows=patch_count(v) + 1, width=v.hidden_size),
        pre_norm=layer_norm(v),
        layers=stack("page", Run(v.num_hidden_layers, vit_layer(v))),
    )


@tower("deepseek_ocr2_vision", "unlimited_ocr_vision")
def sam_and_encoder(v: Config) -> Block:
    """Segment Anything's tower, and an encoder of its output (DeepseekOcr2VisionModel)."""
    (fine, _), (page, _) = tower_in(v, "sam_config"), tower_in(v, "encoder_config")
    return block("vision", fine=fine, page=page)


@family("deepseek_ocr2", both=False, ties="above")
@family("unlimited_ocr", both=True, ties="above")
def deepseek_ocr2(c: Config) -> Component:
    """Two towers in a row, one layer, DeepSeek's experts (DeepSeek-OCR 2; DeepseekOcr2ForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        fine, page = v.sections()
        d_in = downsample_channels(fine)[1] + page.hidden_size if c.both else page.hidden_size
        mark = Param(shape=(d,))
        return block(
            "projector",
            proj=Linear(d_in=d_in, d_out=d, bias=True),
            separator=mark,
            newline=mark if c.both else None,
        )

    return vision_language_model(c, projector)
