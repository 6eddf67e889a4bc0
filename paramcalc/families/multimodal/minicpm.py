"""MiniCPM-V and MiniCPM-OCR."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import height_and_width
from paramcalc.families.builders.vision_language import wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.families.towers.vision import siglip
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Norm


@tower("minicpmv4_6_vision", "minicpmv4_7_vision", "minicpm_ocr_vision")
def minicpmv_vision(v: Config) -> Block:
    """SigLIP with a window merger between two of its layers (MiniCPMV4_6VisionModel)."""
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
