"""BART and the families that a BartLayout describes completely."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.encoder_decoder import M2M_LAYOUT, BartLayout, bart_model
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("bart", form=BartLayout(unstated_labels=3))
@family("plbart", form=BartLayout())
@family("mbart", form=BartLayout(pre_norm=True))
@family("blenderbot-small", form=BartLayout(spare_rows=0))
@family("pegasus", "blenderbot", form=BartLayout(spare_rows=0, embed_norm=False, pre_norm=True))
@family("m2m_100", form=M2M_LAYOUT)
def bart(c: Config) -> Block:
    """Encoder and decoder with LayerNorms, plain FFNs and learned positions (BartForConditionalGeneration).

    Pegasus' positions are sinusoids, but stored as a table; M2M-100 computes them.
    """
    return bart_model(c, c.form)
