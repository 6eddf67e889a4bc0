"""Gated DeltaNets in most layers, attention in a few: Qwen3-Next, Qwen3.5, OLMo Hybrid."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import GatedDeltaNet
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import head_dim, head_gate, qk_norm_all_heads, qk_norm_per_head
from paramcalc.families.builders.decoder import causal_lm, decoder, norms_after, pre_norm, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, FULL, LINEAR, SPARSE, every, mixer_types, sparse_step_types
from paramcalc.families.builders.recurrent import delta_net
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Mtp
from paramcalc.tree.leaves import Linear


def qwen_mixers(c: Config) -> tuple[dict[str, Component], list[str]]:
    """Attention with a gate on every channel, the gated delta rule, and which layer has which."""
    bias = c.attention_bias
    gate = head_gate(c.hidden_size, c.num_attention_heads, head_dim(c), bias=bias)
    attn = qk_norm_per_head(c, bias=bias, gate=gate)
    default = every(c.full_attention_interval, FULL, otherwise=LINEAR, layers=c.num_hidden_layers)
    return {FULL: attn, LINEAR: delta_net(c)}, mixer_types(c, default)


def qwen_shared_expert_moe(c: Config) -> Component:
    """Routed experts beside a shared one with a gate."""
    shared = c.shared_expert_intermediate_size
    return moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared, shared_gate=True)


@family("qwen3_next")
def qwen3_next(c: Config) -> Block:
    """Three gated DeltaNets to each gated attention; experts in the sparse layers (Qwen3NextForCausalLM)."""
    mixer, words = qwen_mixers(c)
    return decoder(c, mixer, {DENSE: glu(c), SPARSE: qwen_shared_expert_moe(c)}, words, sparse_step_types(c))


def qwen3_5_decoder(c: Config, ffn: Component) -> Block:
    """Qwen3-Next's mixers with one kind of FFN, and the module for multi-token prediction that is shipped beside."""
    mixer, words = qwen_mixers(c)
    mixer[LINEAR] = mixer[LINEAR].replace(decay_dtype="float32")
    layer = pre_norm(rms(c), mixer[FULL], ffn)
    extra = c.mtp_num_hidden_layers or 0
    if c.mtp_use_dedicated_embeddings:
        c.doubts.append(f"{c.family}: the embeddings of the multi-token-prediction module are not counted with it")
    mtp = Mtp(
        count=min(extra, 1),
        items={
            "embed_norm": rms(c),
            "hidden_norm": rms(c),
            "proj": Linear(d_in=2 * c.hidden_size, d_out=c.hidden_size, category="other"),
            **{f"layer_{i}": layer for i in range(extra)},
            "norm": rms(c),
        },
    )
    return decoder(c, mixer, ffn, words, mtp=mtp)


@family("qwen3_5_text")
def qwen3_5_text(c: Config) -> Block:
    """Qwen3-Next's mixers with a plain gated FFN in every layer (Qwen3_5ForCausalLM)."""
    return qwen3_5_decoder(c, glu(c))


@family("qwen3_5_moe_text")
def qwen3_5_moe_text(c: Config) -> Block:
    """Qwen3-Next with experts in every layer (Qwen3_5MoeForCausalLM)."""
    return qwen3_5_decoder(c, qwen_shared_expert_moe(c))


@family("olmo_hybrid")
def olmo_hybrid(c: Config) -> Block:
    """OLMo 2's attention with norms behind, after three gated DeltaNets with norms before (OlmoHybridForCausalLM)."""
    key_heads = c.linear_num_key_heads or c.num_attention_heads
    derived = symbolic("d_k", int(0.75 * c.hidden_size / key_heads), origin="3/4 d / heads, rounded down")
    key_dim = c.linear_key_head_dim or derived
    delta = GatedDeltaNet(
        width=c.hidden_size,
        key_heads=key_heads,
        value_heads=c.linear_num_value_heads or c.num_attention_heads,
        key_dim=key_dim,
        value_dim=c.linear_value_head_dim or 2 * key_dim,
        kernel=c.linear_conv_kernel_dim,
    )
    layers = {
        FULL: norms_after(rms(c), qk_norm_all_heads(c, bias=c.attention_bias), glu(c)),
        LINEAR: pre_norm(rms(c), delta, glu(c)),
    }
    default = every(4, FULL, otherwise=LINEAR, layers=c.num_hidden_layers)
    words = mixer_types(c, default if FULL in default else [*default[:-1], FULL])
    c.require(set(words) == {FULL, LINEAR}, "layer_types needs layers of both kinds")
    return causal_lm(c, [layers[word] for word in words], norm=rms(c))
