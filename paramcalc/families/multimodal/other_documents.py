"""Models that read document pages."""

from __future__ import annotations

from paramcalc.components import Conv2d
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.view import Config
from paramcalc.families.builders.audio_language import audio_text_model
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.t5 import t5_buckets, t5_encoder_decoder
from paramcalc.families.builders.towers import tower_in
from paramcalc.families.builders.vision import height_and_width
from paramcalc.families.builders.vision_language import (
    assemble_multimodal,
    vision_language_model,
    wrap_any_language_model,
)
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Embedding, Linear, Norm


@family("got_ocr2", "pp_chart2table")
def got_ocr2(c: Config) -> Component:
    """Segment Anything's tower, two convolutions and a layer, Qwen2 (GOT-OCR 2, 2409.01704)."""
    vision, v = tower_in(c, "vision_config")
    language, d = audio_text_model(c, tied=c.tie_word_embeddings)
    out = v.output_channels
    projector = block(
        "projector",
        conv_1=Conv2d(channels=2 * out, kernel=3, per_group=out, bias=False),
        conv_2=Conv2d(channels=d, kernel=3, per_group=2 * out, bias=False),
        proj=Linear(d_in=d, d_out=d, bias=True),
    )
    return assemble_multimodal(language, vision_tower=vision, projector=projector)


@family("lighton_ocr", ties="above")
def lighton_ocr(c: Config) -> Component:
    """Pixtral, merged patches, two layers, Qwen3 (LightOnOcrForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        dv, side = v.hidden_size, c.spatial_merge_size
        merge = Linear(d_in=dv * side * side, d_out=dv)
        return block("projector", norm=Norm(width=dv), merge=merge, **two_layers(dv, d, d, bias=False))

    return wrap_any_language_model(c, projector)


@family("pix2struct", ties="above")
def pix2struct(c: Config) -> Component:
    """A ViT, and T5's decoder that attends to it (Pix2Struct, 2210.03347; Pix2StructForConditionalGeneration)."""
    if c.head != "seq2seq_lm":
        raise unknown_head(c)
    return vision_language_model(c, lambda *_: None)


# -- UDOP ------------------------------------------------------------------------------------------------------------


@family("udop", unstated_depth=24, can_untie=False)
def udop(c: Config) -> Block:
    """T5 over words, their positions on a page, and its patches (UDOP, 2212.02623; UdopForConditionalGeneration).

    The class builds patches and distances for the decoder too.
    """
    height, width = height_and_width(c, "patch_size")
    patches = PatchEmbedding(width=c.hidden_size, channels=c.num_channels, patch=(height, width))
    places = Embedding(rows=c.max_2d_position_embeddings, width=c.hidden_size, sharded=False)
    parts = dict(t5_encoder_decoder(c).items)
    inputs: dict[str, dict[str, Component]] = {
        "encoder": {"patches": patches.replace(tied_to="patches"), "places": block(x=places, y=places)},
        "decoder": {"patches": patches},
    }
    for role in inputs.keys() & parts.keys():
        parts[role] = block(**inputs[role], distances=page_distances(c), **dict(parts[role].parts()))
    return block(patches=patches, **parts)


def page_distances(c: Config) -> Block:
    """Bias tables by distance: along the text, horizontally, vertically; the first may be tied to the layers' table."""
    stated = c.list_of("relative_bias_args")
    kinds = [{"type": word} for word in PAGE_AXES] if stated is None else stated
    tables: dict[str, Component] = {}
    for i, kind in enumerate(kinds):
        c.require(kind.get("type") in PAGE_AXES, f"relative_bias_args has the unknown type {kind.get('type')!r}")
        spare = 2 if kind.get("prefix_bucket") and not kind.get("expand") else 0
        rows = c.size("relative_bias_args", kind.get("relative_attention_num_buckets", 32)) + spare
        tables[f"{kind['type']}_{i}"] = Embedding(
            rows=t5_buckets(c) if not i and c.head != "none" else rows,
            width=c.num_attention_heads,
            category="attention",
            tied_to="encoder.layers.0.attn.position_bias" if not i and c.head != "none" else None,
            sharded=False,
        )
    return block(**tables)


PAGE_AXES = ("1d", "horizontal", "vertical")
