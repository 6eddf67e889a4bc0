"""Mistral, Ministral and Mixtral."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, sliding
from paramcalc.families.builders.decoder import decoder
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import FULL, SLIDING, attention_types
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("mistral", "ministral3", "phi3")
def mistral(c: Config) -> Block:
    """Llama without biases; a sliding window in every layer if the file states one (MistralForCausalLM)."""
    return decoder(c, gqa(c, window=c.sliding_window), glu(c))


@family("ministral")
def ministral(c: Config) -> Block:
    """Mistral with a list of attention types, by default sliding (MinistralForCausalLM)."""
    c.required("head_dim")
    default = [SLIDING if c.sliding_window else FULL] * c.num_hidden_layers
    return decoder(c, sliding(gqa(c), c.sliding_window), glu(c), attention_types(c, default))


@family("mixtral")
def mixtral(c: Config) -> Block:
    """Mistral with eight experts, two of them active, in every layer (MixtralForCausalLM)."""
    return decoder(c, gqa(c, window=c.sliding_window), moe(c, c.intermediate_size, experts=c.num_experts))
