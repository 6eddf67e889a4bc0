"""Models put together from two others, each with a section of the config."""

from __future__ import annotations

from typing import Any

from paramcalc.config import Config
from paramcalc.config_reading import Reading
from paramcalc.containers import Block, block
from paramcalc.families.heads import unknown_head
from paramcalc.families.registry import family, get
from paramcalc.families.seeing import renamed
from paramcalc.leaves import Linear
from paramcalc.spec import Component


def half(c: Config, section: str, kind: str, head: str, **ours: Any) -> tuple[Component, Config]:
    """The model in a section of the config, with a head of its own; a `kind` with `ours` where there is no section."""
    stated = c.section(section, Reading({})).raw("model_type") or kind
    one = get(stated)
    reading = one.reading if c.says(section) else one.reading._replace(defaults={**one.reading.defaults, **ours})
    view = c.section(section, reading, family=stated, head=head)
    return one.recipe(view), view


@family("encoder-decoder")
def encoder_decoder(c: Config) -> Block:
    """Any encoder and any decoder, joined by cross attention, and a projection where widths differ (EncoderDecoder)."""
    if c.head != "none":
        raise unknown_head(c)
    encoder, one = half(c, "encoder", "bert", "none")
    decoder, two = half(c, "decoder", "bert", "lm", is_decoder=True, add_cross_attention=True)
    differ = one.hidden_size != two.hidden_size and two.raw("cross_attention_hidden_size") is None
    bridge = (
        Linear(d_in=one.hidden_size, d_out=two.hidden_size, bias=True, category="other", per="source")
        if differ
        else None
    )
    return block(encoder=encoder, bridge=bridge, decoder=renamed(decoder, "decoder"))
