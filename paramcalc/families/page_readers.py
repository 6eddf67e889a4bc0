"""Models that read pages: several towers in a row, or mergers between their layers, before a language model."""

from __future__ import annotations

from paramcalc.components import Conv2d
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, mha
from paramcalc.families.builders.decoder import layer_norm, pre_norm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision import height_and_width, patch_count, vit_layer
from paramcalc.families.builders.vision_language import vision_language_model, wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.families.towers.vision import siglip
from paramcalc.families.towers.vision_special import segment_anything
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param

# -- DeepSeek-OCR 2 and Unlimited-OCR ----------------------------------------------------------------------------


@tower("deepseek_ocr2_sam_vision_model", "unlimited_ocr_sam_vision_model")
def sam_with_convolutions(v: Config) -> Block:
    """Segment Anything's tower, and two convolutions that shrink what it puts out (DeepseekOcr2SamVisionEncoder)."""
    first, second = downsample_channels(v)
    return block(
        "vision",
        **segment_anything(v).items,
        conv_1=Conv2d(channels=first, kernel=3, per_group=v.output_channels, bias=False),
        conv_2=Conv2d(channels=second, kernel=3, per_group=first, bias=False),
    )


def downsample_channels(v: Config) -> tuple[int, int]:
    """Channels behind each of the two convolutions."""
    stated = v.list_of("downsample_channels")
    if stated is None:
        return 512, v.last_channels
    v.require(len(stated) == 2, f"downsample_channels has {len(stated)} entries, not one for each convolution")
    return v.size("downsample_channels", stated[0]), v.size("downsample_channels", stated[1])


@tower("deepseek_ocr2_encoder")
def deepseek_ocr2_encoder(v: Config) -> Block:
    """Qwen2's layers, which queries and patches pass together (DeepSeek-OCR 2; DeepseekOcr2VisionEncoder)."""
    layer = pre_norm(rms(v), gqa(v, qkv_bias=True), glu(v))
    table = {f"queries_{rows}": Embedding(rows=rows, width=v.hidden_size) for rows in (144, 256)}
    return block("vision", **table, layers=stack("page", Run(v.num_hidden_layers, layer)), norm=rms(v))


@tower("unlimited_ocr_vision_encoder")
def unlimited_ocr_encoder(v: Config) -> Block:
    """CLIP's layers over the other tower's patches (UnlimitedOcrVisionEncoder)."""
    return block(
        "vision",
        class_token=Param(shape=(v.hidden_size,)),
        positions=Embedding(rows=patch_count(v) + 1, width=v.hidden_size),
        pre_norm=layer_norm(v),
        layers=stack("page", Run(v.num_hidden_layers, vit_layer(v))),
    )


@tower("deepseek_ocr2_vision", "unlimited_ocr_vision")
def sam_and_encoder(v: Config) -> Block:
    """Segment Anything's tower, and an encoder of what it puts out (DeepseekOcr2VisionModel)."""
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


# -- MiniCPM-V ---------------------------------------------------------------------------------------------------


@tower("minicpmv4_6_vision", "minicpmv4_7_vision", "minicpm_ocr_vision")
def minicpmv_vision(v: Config) -> Block:
    """SigLIP with a merger of windows between two of its layers (MiniCPMV4_6VisionModel)."""
    height, width = height_and_width(v, "window_kernel_size")
    joined = height * width
    merger = block(
        attn_norm=layer_norm(v),
        attn=mha(v),
        norm=Norm(width=joined * v.hidden_size, bias=True),
        **two_layers(joined * v.hidden_size, joined * v.intermediate_size, v.hidden_size),
    )
    return block("vision", **siglip(v).items, merger=merger)


@family("minicpmv4_6", "minicpmv4_7", "minicpm_ocr", ties="above")
def minicpmv(c: Config) -> Component:
    """SigLIP, mergers of neighbouring patches, Qwen 3.5 (MiniCPM-V; MiniCPMV4_6ForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        last, times = v.hidden_size, c.merger_times
        widths = [last] * (times - 1) + [d]
        norm = Norm(width=4 * last, bias=True)
        merge = {f"merger_{i}": block(norm=norm, **two_layers(4 * last, 4 * last, out)) for i, out in enumerate(widths)}
        return block("projector", **merge)

    return wrap_any_language_model(c, projector, any_tower=False)


# -- Granite Docling ---------------------------------------------------------------------------------------------


@family("granite_docling", ties="above")
def granite_docling(c: Config) -> Component:
    """SigLIP, a coarse and a fine way to join patches, Granite (GraniteDoclingForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        del d
        dv, out, side, norm = v.hidden_size, v.out_hidden_size, v.scale_factor, Norm(width=v.out_hidden_size, bias=True)
        tapped = v.list_of("deepstack_visual_indexes")

        def path(side: int) -> Block:
            joined = dv * side * side
            merger = block(norm=Norm(width=joined, bias=True), **two_layers(joined, out, out))
            deep = {f"deepstack_{i}": merger for i in range(3 if tapped is None else len(tapped))}
            return block(proj=Linear(d_in=joined, d_out=out), **deep)

        return block(
            "projector",
            norm=layer_norm(v),
            coarse=path(side),
            fine=path(side // 2) if v.use_fine_route else None,
            mid_norm=norm,
            proj=Linear(d_in=out, d_out=out),
            out_norm=norm,
            router=density_router(c, dv) if c.density_router_hidden_size else None,
        )

    return vision_language_model(c, projector)


def density_router(c: Config, width: int) -> Block:
    """Says whether a page needs the fine way."""
    hidden = c.density_router_hidden_size
    one = Linear(d_in=width, d_out=1, bias=True)
    return block(attn=one, norm=Norm(width=width, bias=True), **two_layers(width, hidden, 1))
