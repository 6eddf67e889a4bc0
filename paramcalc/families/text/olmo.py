"""OLMo, dense and with experts."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, kv_heads, qk_norm_all_heads, sliding
from paramcalc.families.builders.decoder import decoder, norms_after
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import full_every
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block
from paramcalc.tree.leaves import Norm


@family("olmo")
def olmo(c: Config) -> Block:
    """Llama with norms without weights (OlmoForCausalLM)."""
    return decoder(c, gqa(c, bias=c.attention_bias), glu(c), norm=Norm(width=c.hidden_size, scale=False))


@family("olmo2")
def olmo2(c: Config) -> Block:
    """Llama with norms after attention and FFN, and QK norms over all heads at once (Olmo2ForCausalLM)."""
    return decoder(c, qk_norm_all_heads(c, bias=c.attention_bias), glu(c), layer=norms_after)


@family("olmo3")
def olmo3(c: Config) -> Block:
    """OLMo 2 with full attention in every fourth layer (Olmo3ForCausalLM)."""
    attn = sliding(qk_norm_all_heads(c, bias=c.attention_bias), c.sliding_window)
    return decoder(c, attn, glu(c), full_every(c, 4), layer=norms_after)


@family("olmoe")
def olmoe(c: Config) -> Block:
    """Experts in every layer; QK norms over all heads at once, sized by d / h (OlmoeForCausalLM)."""
    q_norm, k_norm = Norm(width=c.hidden_size), Norm(width=equal_heads(c) * kv_heads(c))
    attn = gqa(c, bias=c.attention_bias, q_norm=q_norm, k_norm=k_norm)
    return decoder(c, attn, moe(c, c.intermediate_size, experts=c.num_experts))


@family("flex_olmo")
def flex_olmo(c: Config) -> Block:
    """OLMo 2's layer with experts in every layer (FlexOlmoForCausalLM)."""
    experts = moe(c, c.intermediate_size, experts=c.num_local_experts)
    return decoder(c, qk_norm_all_heads(c, bias=c.attention_bias), experts, layer=norms_after)
