"""GOT-OCR 2 and its kin: Segment Anything's tower, convolutions that shrink the image, and a small language model."""

from __future__ import annotations

from paramcalc.components import Conv2d
from paramcalc.config.view import Config
from paramcalc.families.builders.audio_language import audio_text_model
from paramcalc.families.builders.encoder_decoder import BartLayout, bart_stack
from paramcalc.families.builders.heads import decoder_head
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower_in
from paramcalc.families.builders.vision_language import assemble_multimodal, vision_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear


@family("got_ocr2", "pp_chart2table")
def got_ocr2(c: Config) -> Component:
    """Segment Anything's tower, two convolutions and a layer, Qwen2 (GOT-OCR 2, 2409.01704)."""
    seen, v = tower_in(c, "vision_config")
    language, d = audio_text_model(c, tied=c.tie_word_embeddings)
    out = v.output_channels
    projector = block(
        "projector",
        conv_1=Conv2d(channels=2 * out, kernel=3, per_group=out, bias=False),
        conv_2=Conv2d(channels=d, kernel=3, per_group=2 * out, bias=False),
        proj=Linear(d_in=d, d_out=d, bias=True),
    )
    return assemble_multimodal(language, vision_tower=seen, projector=projector)


@family("pp_formulanet_text")
def pp_formulanet_text(c: Config) -> Block:
    """MBART's decoder, which attends to what a tower puts out (PPFormulaNetTextModel)."""
    form = BartLayout(pre_norm=True)
    return block(**bart_stack(c, "decoder", form, owner=None).items, **decoder_head(c, c.hidden_size))


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

    return vision_language_model(c, projector)
