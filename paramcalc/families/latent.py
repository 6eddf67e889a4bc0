"""Relatives of DeepSeek-V3: latent attention, some with indexers, before routed and shared experts."""

from __future__ import annotations

from paramcalc.components import Router
from paramcalc.components.ffn import Experts
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import with_options
from paramcalc.families.builders.decoder import causal_lm, decoder, ignored_fields, pre_norm, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, SPARSE, first_dense, mlp_types
from paramcalc.families.builders.mla import (
    indexed_latent_attention,
    latent_attention,
    mla_moe,
    moe_layer_freq_types,
    shared_width,
)
from paramcalc.families.builders.mtp import mtp_modules, unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block
from paramcalc.tree.leaves import Linear


@family("glm4_moe_lite")
def glm4_moe_lite(c: Config) -> Block:
    """DeepSeek-V3 with its layers' kinds in a list, the first one dense (Glm4MoeLiteForCausalLM)."""
    unbuilt_mtp(c)
    ignored_fields(c, first_k_dense_replace=mlp_types(c, first_dense(c, 1)).count(DENSE), moe_layer_freq=1)
    return mla_moe_decoder(c, latent_attention(c), first_dense(c, 1))


def mla_moe_decoder(c: Config, attn: Component, default: list[str]) -> Block:
    """A decoder with the same attention in every layer, dense and sparse."""
    return decoder(c, attn, {DENSE: glu(c), SPARSE: mla_moe(c)}, ffn_words=mlp_types(c, default))


@family("deepseek_v32")
def deepseek_v32(c: Config) -> Block:
    """DeepSeek-V3 with an indexer in each layer that picks the tokens to look at (DeepseekV32ForCausalLM).

    The layer of its module that predicts one more token has an indexer too.
    """
    attn, ffn = indexed_latent_attention(c), {DENSE: glu(c), SPARSE: mla_moe(c)}
    mtp = mtp_modules(c, pre_norm(rms(c), attn, ffn[SPARSE]))
    ignored_fields(c, moe_layer_freq=1)
    words = mlp_types(c, first_dense(c, c.first_k_dense_replace))
    return decoder(c, attn, ffn, ffn_words=words, mtp=mtp)


@family("glm_moe_dsa")
def glm_moe_dsa(c: Config) -> Block:
    """DeepSeek-V3.2 where a layer may use the choice of the indexer before it (GlmMoeDsaForCausalLM).

    Its module that predicts one more token uses the model's own embedding and head.
    """
    attn = {"full": indexed_latent_attention(c), "shared": latent_attention(c, picks=c.index_topk)}
    ffn, ffn_words = {DENSE: glu(c), SPARSE: mla_moe(c)}, mlp_types(c, first_dense(c, c.first_k_dense_replace))
    mtp = mtp_modules(c, pre_norm(rms(c), attn["full"], ffn[SPARSE]), tables=False)
    ignored_fields(c, moe_layer_freq=1)
    return decoder(c, attn, ffn, dsa_indexer_types(c), ffn_words, mtp=mtp)


def dsa_indexer_types(c: Config) -> list[str]:
    """Which layers have an indexer: `indexer_types`, the letters of index_topk_pattern, or every so many layers."""
    words, pattern = c.layer_words("indexer_types", ("full", "shared")), c.raw("index_topk_pattern")
    letters = {"F": "full", "S": "shared"}
    if words is None and isinstance(pattern, str):
        c.require(set(pattern) <= set(letters), f"index_topk_pattern is {pattern!r}", "its letters are F and S")
        c.require(len(pattern) == c.num_hidden_layers, f"index_topk_pattern has {len(pattern)} letters")
        return [letters[letter] for letter in pattern]
    step, offset = c.index_topk_freq, c.index_skip_topk_offset
    default = ["shared" if max(i - offset + 1, 0) % step else "full" for i in range(c.num_hidden_layers)]
    return words or c.layer_words("index_topk_pattern", ("full", "shared")) or default


@family("mistral4")
def mistral4(c: Config) -> Block:
    """DeepSeek-V3 whose router has no correction (Mistral4ForCausalLM)."""
    shared, e = shared_width(c), c.moe_intermediate_size
    sparse = moe(c, e, experts=c.num_local_experts, shared=shared, shared_count=c.n_shared_experts)
    words = first_dense(c, c.first_k_dense_replace)
    return decoder(c, latent_attention(c), {DENSE: glu(c), SPARSE: sparse}, ffn_words=words)


@family("axk1")
def axk1(c: Config) -> Block:
    """DeepSeek-V3 with a norm behind the experts (AXK1ForCausalLM)."""
    ffn = {DENSE: glu(c), SPARSE: block(moe=mla_moe(c), norm=rms(c))}
    return decoder(c, latent_attention(c), ffn, ffn_words=mlp_types(c, moe_layer_freq_types(c)))


@family("axk2")
def axk2(c: Config) -> Block:
    """DeepSeek-V3.2 with gated attention, and with gated norms before attention and experts (AXK2ForCausalLM)."""
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
    """Layers of two attentions and two FFNs, with experts beside the first; some do nothing (LongcatFlashForCausalLM).

    The class keeps input matrices for the experts that do nothing, which no token uses. Active counts as many real
    experts as a token may pick; one that picks idle ones uses fewer.
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
    """Layers: num_layers, or half of num_hidden_layers, which counts each half as one."""
    if c.num_hidden_layers is None:
        return c.num_layers  # type: ignore[no-any-return]  # fields are Any
    c.require(
        c.raw("num_layers") in (None, c.num_hidden_layers // 2),
        f"num_hidden_layers ({c.num_hidden_layers}) is not twice num_layers ({c.raw('num_layers')})",
    )
    return c.num_hidden_layers // 2  # type: ignore[no-any-return]  # fields are Any
