"""The language models of Apertus and Apertus 1.5."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import qk_norm_per_head
from paramcalc.families.builders.decoder import decoder
from paramcalc.families.builders.ffn import activation, mlp
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("apertus", "apertus1p5_text")
def apertus(c: Config) -> Block:
    """Llama with QK norms and a plain FFN whose activation has two learned slopes (ApertusForCausalLM)."""
    ffn = mlp(c, c.intermediate_size, bias=False).replace(inner=activation(c))
    return decoder(
        c,
        qk_norm_per_head(c, bias=c.attention_bias),
        ffn,
        head_rows=None if c.tie_word_embeddings else c.output_vocab_size,
    )
