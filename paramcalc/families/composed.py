"""Models put together from two others, each with a section of the config."""

from __future__ import annotations

from paramcalc.config import Config, Reading
from paramcalc.families.heads import unknown_head
from paramcalc.families.registry import family, get
from paramcalc.spec import Block, Component, Linear, block


def half(c: Config, section: str, kind: str, head: str) -> tuple[Component, Config]:
    """The model in a section of the config, with a head of its own choice."""
    stated = c.section(section, Reading({})).raw("model_type") or kind
    one = get(stated)
    view = c.section(section, one.reading, family=stated, head=head)
    return one.recipe(view), view


@family("encoder-decoder", "EncoderDecoderModel", defaults={})
def encoder_decoder(c: Config) -> Block:
    """Any encoder and any decoder, joined by cross attention, and a projection where widths differ (EncoderDecoder)."""
    if c.head != "none":
        raise unknown_head(c)
    both = c.says("encoder") and c.says("decoder")
    c.require(both, "encoder and decoder must be sections", "they hold the configs of the two models")
    encoder, one = half(c, "encoder", "bert", "none")
    decoder, two = half(c, "decoder", "bert", "lm")
    differ = one.hidden_size != two.hidden_size and two.raw("cross_attention_hidden_size") is None
    bridge = Linear(d_in=one.hidden_size, d_out=two.hidden_size, bias=True, category="projector") if differ else None
    return block(encoder=encoder, bridge=bridge, decoder=decoder)
