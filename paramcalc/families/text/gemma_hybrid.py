"""RecurrentGemma (Griffin, 2402.19427)."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import RgLru
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.decoder import decoder
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.layer_types import LINEAR, SLIDING
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block

RECURRENT, LOCAL_ATTENTION = "recurrent", "attention"


@family("recurrent_gemma")
def recurrent_gemma(c: Config) -> Block:
    """Griffin: two linear recurrent units for each sliding attention (RecurrentGemmaForCausalLM)."""
    inner, heads = c.lru_width or c.hidden_size, c.num_attention_heads
    c.require(inner % heads == 0, f"lru_width ({inner}) is not divisible by num_attention_heads ({heads})")
    # The FFN is half as wide as the field.
    hidden = symbolic("d_ff", c.intermediate_size // 2, origin=f"{c.key('intermediate_size')} / 2, rounded down")
    ffn = glu(c, hidden, bias=True)
    unit = RgLru(width=c.hidden_size, inner=inner, heads=heads, kernel=c.conv1d_width)
    attn = gqa(c, qkv_bias=c.attention_bias, out_bias=True, window=c.sliding_window)
    # The class treats any type but `recurrent` as attention, even the newer name of its recurrent layers.
    mixer = {RECURRENT: unit, LOCAL_ATTENTION: attn, SLIDING: attn, LINEAR: attn}
    words = c.layer_words("block_types", tuple(mixer), any_length=True) or [RECURRENT, RECURRENT, LOCAL_ATTENTION]
    return decoder(c, mixer, ffn, [words[i % len(words)] for i in range(c.num_hidden_layers)])
