"""Kimi delta attention in most layers, latent attention in a few."""

from __future__ import annotations

from paramcalc.components import KimiDeltaAttention
from paramcalc.config import Config, Reading
from paramcalc.families.latent_parts import experts, latent_attention
from paramcalc.families.mtp import unbuilt_mtp
from paramcalc.families.patterns import every, first_dense, ignored_frequency, mixers, mlp_words
from paramcalc.families.registry import family
from paramcalc.families.skeletons import DENSE, FULL, LINEAR, SPARSE, causal_lm, glu, interleaved, rms
from paramcalc.spec import Block, Component, Linear

KIMI = (
    dict(vocab_size=163840, hidden_size=2304, intermediate_size=9216, moe_intermediate_size=1024)
    | dict(num_hidden_layers=27, num_attention_heads=32, q_lora_rank=None, kv_lora_rank=512, qk_nope_head_dim=128)
    | dict(qk_rope_head_dim=64, v_head_dim=128, attention_bias=False, num_local_experts=256, num_experts_per_tok=8)
    | dict(n_shared_experts=1, first_k_dense_replace=1, layer_types=None, mlp_layer_types=None)
)
KIMI_NAMES = (
    dict(max_position_embeddings="model_max_length", norm_topk_prob="moe_renormalize", n_group="num_expert_group")
    | dict(num_local_experts="num_experts", num_experts_per_tok="num_experts_per_token")
    | dict(n_shared_experts="num_shared_experts")
)
# The class does not look at them, or (qk_head_dim) derives them.
KIMI_UNUSED = ["num_key_value_heads", "qk_head_dim", "mla_use_nope", "moe_router_activation_func", "use_grouped_topk"]
KIMI_LINEAR = Reading(
    defaults=dict(head_dim=None, num_heads=None, short_conv_kernel_size=None, full_attn_layers=None, kda_layers=None)
)


def delta_and_latent(
    c: Config, delta: KimiDeltaAttention, default: list[str], *, gate: Component | None = None
) -> Block:
    """Kimi's decoder: delta attention and latent attention, a few dense layers first, then experts."""
    attn = latent_attention(c).but(inner=gate)
    ffn_words = mlp_words(c, first_dense(c, c.first_k_dense_replace))
    ignored_frequency(c)
    unbuilt_mtp(c)
    ffn = {DENSE: glu(c), SPARSE: experts(c)}
    return causal_lm(c, interleaved(c, {FULL: attn, LINEAR: delta}, mixers(c, default), ffn, ffn_words), norm=rms(c))


@family(
    "kimi_linear",
    "KimiLinearForCausalLM",
    names=KIMI_NAMES,
    fixed=dict(tie_word_embeddings=False),  # the class does not tie, whatever the file says
    defaults=KIMI | dict(linear_attn_config=None, linear_head_dim=128, linear_num_heads=32, linear_conv_kernel_dim=4),
    nullable=["q_lora_rank"],
    unused=[*KIMI_UNUSED, "head_dim"],
)
def kimi_linear(c: Config) -> Block:
    """Three Kimi delta attentions to each latent attention; experts beside a shared one (KimiLinearForCausalLM)."""
    linear, depth = c.section("linear_attn_config", KIMI_LINEAR), c.num_hidden_layers
    head_dim = linear.head_dim or c.linear_head_dim
    delta = KimiDeltaAttention(
        width=c.hidden_size,
        heads=linear.num_heads or c.linear_num_heads,
        head_dim=head_dim,
        kernel=linear.short_conv_kernel_size or c.linear_conv_kernel_dim,
        gate_rank=head_dim,
    )
    default = [FULL if i and i % 4 == 0 else LINEAR for i in range(depth)]
    if linear.says("full_attn_layers") and linear.says("kda_layers"):
        full, kda = linear.numbers("full_attn_layers"), linear.numbers("kda_layers")  # counted from 1
        c.require(
            sorted(full + kda) == list(range(1, depth + 1)) or c.says("layer_types"),
            f"full_attn_layers and kda_layers do not name each of {depth} layers once",
        )
        default = [FULL if i + 1 in full else LINEAR for i in range(depth)]
    return delta_and_latent(c, delta, default)


@family(
    "bailing_hybrid",
    "BailingHybridForCausalLM",
    names=KIMI_NAMES,
    fixed=dict(tie_word_embeddings=False),  # the class does not tie, whatever the file says
    defaults=KIMI
    | dict(vocab_size=157184, hidden_size=2560, intermediate_size=6144, moe_intermediate_size=768)
    | dict(num_hidden_layers=42, num_local_experts=512, first_k_dense_replace=2, layer_group_size=6, head_dim=128)
    | dict(short_conv_kernel_size=4, linear_head_dim=None, linear_num_heads=None, linear_conv_kernel_dim=None),
    nullable=["q_lora_rank"],
    unused=KIMI_UNUSED,
)
def bailing_hybrid(c: Config) -> Block:
    """Kimi Linear with full-rank gates, and a gate per head on latent attention (BailingHybridForCausalLM)."""
    d, h = c.hidden_size, c.num_attention_heads
    delta = KimiDeltaAttention(
        width=d,
        # The class derives the linear_ fields from the others, unless the file has them too.
        heads=c.linear_num_heads or h,
        head_dim=c.linear_head_dim or c.head_dim,
        kernel=c.linear_conv_kernel_dim or c.short_conv_kernel_size,
    )
    default = every(c.layer_group_size, FULL, otherwise=LINEAR, layers=c.num_hidden_layers)
    return delta_and_latent(c, delta, default, gate=Linear(d_in=d, d_out=h))
