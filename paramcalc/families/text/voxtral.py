"""The language model of Voxtral Realtime."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.decoder import causal_lm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, Run, block
from paramcalc.tree.leaves import Linear


@family("voxtral_realtime_text")
def voxtral_realtime_text(c: Config) -> Block:
    """Mistral with a norm conditioned on the transcription delay (VoxtralRealtimeTextModel)."""
    d = c.hidden_size
    steered = block("norm", down=Linear(d_in=d, d_out=32, per="call"), up=Linear(d_in=32, d_out=d, per="call"))
    attn = gqa(c, window=c.sliding_window)
    one = block(input_norm=rms(c), attn=attn, post_norm=rms(c), steered_norm=steered, ffn=glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, one), norm=rms(c))
