"""DeepSeek: latent attention, a few dense layers first, then many small experts beside shared ones."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.families.latent_parts import DEEPSEEK, UNUSED, experts, latent_attention, shared_width
from paramcalc.families.mtp import mtp_modules
from paramcalc.families.patterns import dense_then_sparse
from paramcalc.families.registry import family
from paramcalc.families.skeletons import causal_lm, glu, gqa, moe, pre_norm, rms
from paramcalc.spec import Block, Run

DEEPSEEK_V3_NAMES = dict(num_local_experts="n_routed_experts", num_mtp_layers="num_nextn_predict_layers")
DEEPSEEK_V3 = DEEPSEEK | dict(num_local_experts=256, first_k_dense_replace=3, num_mtp_layers=1)


@family(
    "deepseek",
    "DeepseekForCausalLM",
    names=dict(num_experts="n_routed_experts"),
    defaults=dict(vocab_size=102400, hidden_size=4096, intermediate_size=11008, num_hidden_layers=30)
    | dict(num_attention_heads=32, num_key_value_heads=None, attention_bias=False)
    | dict(moe_intermediate_size=1407, n_shared_experts=None, num_experts=None, num_experts_per_tok=None)
    | dict(moe_layer_freq=1, first_k_dense_replace=0),
    fixed=dict(head_dim=None),
)
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


@family(
    "deepseek_v2",
    "DeepseekV2ForCausalLM",
    names=dict(num_experts="n_routed_experts"),
    defaults=DEEPSEEK
    | dict(vocab_size=102400, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32)
    | dict(num_attention_heads=32, mlp_bias=False, num_experts=64, num_experts_per_tok=None, n_shared_experts=2)
    | dict(moe_intermediate_size=1407, first_k_dense_replace=0),
    nullable=["q_lora_rank", "n_shared_experts"],
    unused=UNUSED,
)
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


@family(
    "sarvam_mla",
    "DeepseekV3ForCausalLM",
    names=DEEPSEEK_V3_NAMES | dict(num_experts="n_routed_experts", num_shared_experts="n_shared_experts"),
    defaults=DEEPSEEK
    | dict(vocab_size=262144, hidden_size=4096, intermediate_size=16384, num_hidden_layers=32, num_attention_heads=64)
    | dict(q_lora_rank=None, num_local_experts=128, first_k_dense_replace=1, num_mtp_layers=0),
    nullable=["num_mtp_layers"],
    unused=[*UNUSED, "q_head_dim"],
)
@family(
    "kimi_k2",
    "DeepseekV3ForCausalLM",
    names=DEEPSEEK_V3_NAMES,
    defaults=DEEPSEEK_V3,
    nullable=["q_lora_rank", "num_mtp_layers"],
    unused=UNUSED,
)
@family(
    "deepseek_v3",
    "DeepseekV3ForCausalLM",
    names=DEEPSEEK_V3_NAMES,
    defaults=DEEPSEEK_V3,
    nullable=["q_lora_rank", "num_mtp_layers"],
    unused=UNUSED,
)
def deepseek_v3(c: Config) -> Block:
    """DeepSeek-V2 with a buffer of corrections that balance the experts (DeepseekV3ForCausalLM).

    The checkpoint ships a module that predicts one more token; the reference class does not build it.
    """
    attn = latent_attention(c)
    dense, sparse = pre_norm(rms(c), attn, glu(c)), pre_norm(rms(c), attn, experts(c))
    return causal_lm(c, dense_then_sparse(c, dense, sparse), norm=rms(c), mtp=mtp_modules(c, sparse))
