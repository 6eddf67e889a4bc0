"""GOT-OCR 2 and its kin: Segment Anything's tower, convolutions that shrink the image, and a small language model."""

from __future__ import annotations

from paramcalc.components import Conv2d
from paramcalc.config import Config
from paramcalc.containers import Block, block, stack
from paramcalc.dims import named
from paramcalc.families.attentions import equal_heads, mha
from paramcalc.families.audio import text_model
from paramcalc.families.feedforward import mlp
from paramcalc.families.heads import decoder_head
from paramcalc.families.registry import family
from paramcalc.families.seeing import joined, sees
from paramcalc.families.sides import Form, side
from paramcalc.families.skeletons import layer_norm, pre_norm
from paramcalc.families.towers import tower, tower_in
from paramcalc.families.vision import patches, two_layers
from paramcalc.leaves import Linear, Norm, Param
from paramcalc.spec import Component


@tower("got_ocr2_vision", "pp_chart2table_vision", "pp_formulanet_vision")
def got_ocr2_vision(v: Config) -> Block:
    """ViTDet: windows in most layers, positions added to their scores, a neck (Segment Anything, 2304.02643)."""
    d, out = v.hidden_size, v.output_channels
    side = named("side", v.image_size // v.patch_size, origin="image_size / patch_size")

    def layer(reach: int) -> Block:
        distances = Param(shape=(2 * reach - 1, equal_heads(v)))
        seen = block(height=distances, width=distances) if v.use_rel_pos else None
        return pre_norm(layer_norm(v), mha(v, qkv_bias=v.qkv_bias).but(inner=seen), mlp(v, v.intermediate_size))

    stated = v.raw("global_attn_indexes") is not None
    everywhere = v.numbers("global_attn_indexes") if stated else [2, 5, 8, 11]
    windowed, whole = layer(v.window_size or side), layer(side)
    norm = Norm(width=out, bias=True)
    return block(
        "vision",
        patches=patches(v),
        positions=Param(shape=(side, side, d)) if v.use_abs_pos else None,
        layers=stack("vision", [whole if i in everywhere else windowed for i in range(v.num_hidden_layers)]),
        neck=block(
            conv_1=Conv2d(channels=out, kernel=1, per_group=d, bias=False),
            norm_1=norm,
            conv_2=Conv2d(channels=out, kernel=3, per_group=out, bias=False),
            norm_2=norm,
        ),
    )


@family("got_ocr2", "pp_chart2table")
def got_ocr2(c: Config) -> Component:
    """Segment Anything's tower, two convolutions and a layer, Qwen2 (GOT-OCR 2, 2409.01704)."""
    seen, v = tower_in(c, "vision_config")
    language, d = text_model(c, tied=c.tie_word_embeddings)
    out = v.output_channels
    projector = block(
        "projector",
        conv_1=Conv2d(channels=2 * out, kernel=3, per_group=out, bias=False),
        conv_2=Conv2d(channels=d, kernel=3, per_group=2 * out, bias=False),
        proj=Linear(d_in=d, d_out=d, bias=True),
    )
    return joined(language, vision_tower=seen, projector=projector)


@family("pp_formulanet_text")
def pp_formulanet_text(c: Config) -> Block:
    """MBART's decoder, which attends to what a tower puts out (PPFormulaNetTextModel)."""
    form = Form(pre_norm=True)
    return block(**side(c, "decoder", form, owner=None).items, **decoder_head(c, c.hidden_size))


@family("pp_formulanet", ties="above")
def pp_formulanet(c: Config) -> Component:
    """Segment Anything's tower, two convolutions and two layers, MBART's decoder (PPFormulaNet...Generation)."""

    def projector(v: Config, _: int) -> Block:
        mid, out = v.post_conv_mid_channels, v.post_conv_out_channels
        return block(
            "projector",
            conv_1=Conv2d(channels=mid, kernel=3, per_group=v.post_conv_in_channels, bias=False),
            conv_2=Conv2d(channels=out, kernel=3, per_group=mid, bias=False),
            **two_layers(out, out, v.decoder_hidden_size),
        )

    return sees(c, projector)
