"""DeepSeek: latent attention, a few dense layers first, then many small experts beside shared ones."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.families.latent_parts import experts, latent_attention, shared_width
from paramcalc.families.mtp import mtp_modules
from paramcalc.families.patterns import dense_then_sparse
from paramcalc.families.registry import family
from paramcalc.families.skeletons import causal_lm, glu, gqa, moe, pre_norm, rms
from paramcalc.spec import Block, Run


@family("deepseek")
def deepseek(c: Config) -> Block:
    """Llama with routed and shared experts in each moe_layer_freq-th layer after the first (DeepseekForCausalLM)."""
    attn, shared = gqa(c, qkv_bias=c.attention_bias, out_bias=c.attention_bias), c.n_shared_experts
    dense = pre_norm(rms(c), attn, glu(c))
    if not c.num_experts:
        return causal_lm(c, Run(c.num_hidden_layers, dense), norm=rms(c))
    routed = moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared_width(c), shared_count=shared or 0)
    sparse, first, period = pre_norm(rms(c), attn, routed), c.first_k_dense_replace, c.moe_layer_freq
    layers = [sparse if i >= first and i % period == 0 else dense for i in range(c.num_hidden_layers)]
    return causal_lm(c, layers, norm=rms(c))


@family("deepseek_v2")
def deepseek_v2(c: Config) -> Block:
    """Latent attention; dense layers first, then routed and shared experts (DeepseekV2ForCausalLM)."""
    attn, bias = latent_attention(c), c.mlp_bias
    routed = moe(
        c,
        c.moe_intermediate_size,
        experts=c.num_experts,
        shared=shared_width(c),
        shared_count=c.n_shared_experts or 0,
        shared_bias=bias,
    )
    dense, sparse = pre_norm(rms(c), attn, glu(c, bias=bias)), pre_norm(rms(c), attn, routed)
    return causal_lm(c, dense_then_sparse(c, dense, sparse), norm=rms(c))


@family("sarvam_mla", "kimi_k2", "deepseek_v3")
def deepseek_v3(c: Config) -> Block:
    """DeepSeek-V2 with a buffer of corrections that balance the experts (DeepseekV3ForCausalLM).

    The checkpoint ships a module that predicts one more token; the reference class does not build it.
    """
    attn = latent_attention(c)
    dense, sparse = pre_norm(rms(c), attn, glu(c)), pre_norm(rms(c), attn, experts(c))
    return causal_lm(c, dense_then_sparse(c, dense, sparse), norm=rms(c), mtp=mtp_modules(c, sparse))
