"""DeepSeek to V3.2: latent attention, a few dense layers, then layers with many small experts and shared ones."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.decoder import decoder, ignored_fields, pre_norm, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, SPARSE, dense_then_sparse, first_dense, mlp_types
from paramcalc.families.builders.mla import indexed_latent_attention, latent_attention, mla_moe, shared_width
from paramcalc.families.builders.mtp import mtp_modules
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("deepseek")
def deepseek(c: Config) -> Block:
    """Llama with routed and shared experts in each moe_layer_freq-th layer after the first (DeepseekForCausalLM)."""
    attn, shared = gqa(c, bias=c.attention_bias), c.n_shared_experts
    if not c.num_experts:
        return decoder(c, attn, glu(c))
    routed = moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared_width(c), shared_count=shared or 0)
    first, period = c.first_k_dense_replace, c.moe_layer_freq
    words = [SPARSE if i >= first and i % period == 0 else DENSE for i in range(c.num_hidden_layers)]
    return decoder(c, attn, {DENSE: glu(c), SPARSE: routed}, ffn_words=words)


@family("deepseek_v2")
def deepseek_v2(c: Config) -> Block:
    """Latent attention; dense layers first, then routed and shared experts (DeepseekV2ForCausalLM)."""
    bias, e = c.mlp_bias, c.moe_intermediate_size
    shared = dict(shared=shared_width(c), shared_count=c.n_shared_experts or 0, shared_bias=bias)
    ffn = {DENSE: glu(c, bias=bias), SPARSE: moe(c, e, experts=c.num_experts, **shared)}
    return decoder(c, latent_attention(c), ffn, ffn_words=dense_then_sparse(c))


@family("deepseek_v3", "kimi_k2", "sarvam_mla")
def deepseek_v3(c: Config) -> Block:
    """DeepSeek-V2 with a buffer of correction biases that balance the experts (DeepseekV3ForCausalLM).

    The checkpoint contains a module that predicts one more token; the reference class does not build it.
    """
    attn, ffn = latent_attention(c), {DENSE: glu(c), SPARSE: mla_moe(c)}
    mtp = mtp_modules(c, pre_norm(rms(c), attn, ffn[SPARSE]))
    return decoder(c, attn, ffn, ffn_words=dense_then_sparse(c), mtp=mtp)


@family("deepseek_v32")
def deepseek_v32(c: Config) -> Block:
    """DeepSeek-V3 with an indexer in each layer that selects the tokens to attend to (DeepseekV32ForCausalLM).

    The layer of its multi-token-prediction module has an indexer too.
    """
    attn, ffn = indexed_latent_attention(c), {DENSE: glu(c), SPARSE: mla_moe(c)}
    mtp = mtp_modules(c, pre_norm(rms(c), attn, ffn[SPARSE]))
    ignored_fields(c, moe_layer_freq=1)
    words = mlp_types(c, first_dense(c, c.first_k_dense_replace))
    return decoder(c, attn, ffn, ffn_words=words, mtp=mtp)
