"""Decoders with latent attention."""

from __future__ import annotations

from paramcalc.components import Router
from paramcalc.components.ffn import Experts
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import with_options
from paramcalc.families.builders.decoder import causal_lm, decoder, pre_norm, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, SPARSE, mlp_types
from paramcalc.families.builders.mla import indexed_latent_attention, latent_attention, mla_moe, moe_layer_freq_types
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, Run, block
from paramcalc.tree.leaves import Linear


@family("axk1")
def axk1(c: Config) -> Block:
    """DeepSeek-V3 with a norm after the experts (AXK1ForCausalLM)."""
    ffn = {DENSE: glu(c), SPARSE: block(moe=mla_moe(c), norm=rms(c))}
    return decoder(c, latent_attention(c), ffn, ffn_words=mlp_types(c, moe_layer_freq_types(c)))


@family("axk2")
def axk2(c: Config) -> Block:
    """DeepSeek-V3.2 with gated attention, and gated norms before attention and experts (AXK2ForCausalLM)."""
    d, r = c.hidden_size, c.gated_norm_rank
    gated = block(norm=rms(c), gate=block("norm", down=Linear(d_in=d, d_out=r), up=Linear(d_in=r, d_out=d)))
    attn = with_options(indexed_latent_attention(c), query_gate=c.num_attention_heads * c.v_head_dim)
    layers = {
        DENSE: block(input_norm=gated, attn=attn, post_norm=rms(c), ffn=glu(c)),
        SPARSE: block(input_norm=gated, attn=attn, post_norm=gated, ffn=mla_moe(c)),
    }
    return causal_lm(c, [layers[word] for word in mlp_types(c, moe_layer_freq_types(c))], norm=rms(c))


@family("longcat_flash")
def longcat_flash(c: Config) -> Block:
    """Layers of two attentions and two FFNs, with experts next to the first; some are idle (LongcatFlashForCausalLM).

    The class holds input matrices for idle experts, which no token uses. The active parameters include as many real
    experts as a token may select; a token that selects idle ones uses fewer.
    """
    d, e, count, idle = c.hidden_size, c.moe_intermediate_size, c.num_local_experts, c.zero_expert_num
    router = Router(width=d, experts=count + idle, bias=c.router_bias, correction=True)
    sparse = moe(c, e, experts=count, top_k=min(c.num_experts_per_tok, count), router=router)
    spare = Experts(expert=Linear(d_in=d, d_out=2 * e), count=idle, top_k=0) if idle else None
    attn = latent_attention(c, query_dim=c.qk_head_dim)
    half = pre_norm(rms(c), attn, glu(c))
    layer = block(first=block(**half.items, moe=sparse, idle_experts=spare), second=half)
    if idle:
        layer = layer.replace(inexact="experts are counted as if no token chose an idle one")
    unbuilt_mtp(c)
    return causal_lm(c, Run(longcat_depth(c), layer), norm=rms(c))


def longcat_depth(c: Config) -> int:
    """Layers: num_layers, or half of num_hidden_layers, which counts both halves of a layer."""
    if c.num_hidden_layers is None:
        return c.num_layers  # type: ignore[no-any-return]  # fields are Any
    c.require(
        c.raw("num_layers") in (None, c.num_hidden_layers // 2),
        f"num_hidden_layers ({c.num_hidden_layers}) is not twice num_layers ({c.raw('num_layers')})",
    )
    return c.num_hidden_layers // 2  # type: ignore[no-any-return]  # fields are Any
