"""The first InternLM; InternLM 2 and 3 equal Llama."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.decoder import decoder, unpublished
from paramcalc.families.builders.ffn import glu
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("internlm")
def internlm(c: Config) -> Block:
    """Llama with optional biases on all attention projections (InternLMForCausalLM)."""
    unpublished(c)
    return decoder(c, gqa(c, bias=c.bias), glu(c))
