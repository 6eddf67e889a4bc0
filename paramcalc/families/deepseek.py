"""DeepSeek: latent attention, a few dense layers first, then many small experts beside shared ones."""

from __future__ import annotations

from paramcalc.components import LatentAttention
from paramcalc.config import Config
from paramcalc.families.registry import family
from paramcalc.families.skeletons import causal_lm, glu, moe, pre_norm, rms
from paramcalc.spec import Block, Component, Embedding, Linear, Mtp, Run

DEEPSEEK = dict(
    vocab_size=129280,
    hidden_size=7168,
    intermediate_size=18432,
    num_hidden_layers=61,
    num_attention_heads=128,
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    attention_bias=False,
    num_experts_per_tok=8,
    n_shared_experts=1,
    moe_intermediate_size=2048,
    first_k_dense_replace=3,
)
# Latent attention has no key/value heads, and derives its head sizes from the qk_ and v_ fields.
LATENT_UNUSED = ["num_key_value_heads", "head_dim", "qk_head_dim", "n_group", "topk_group", "topk_method"]


def latent_attention(c: Config) -> LatentAttention:
    """Latent attention from the q_lora_rank, kv_lora_rank, qk_ and v_ fields."""
    return LatentAttention(
        width=c.hidden_size,
        heads=c.num_attention_heads,
        q_rank=c.q_lora_rank,
        kv_rank=c.kv_lora_rank,
        nope_dim=c.qk_nope_head_dim,
        rope_dim=c.qk_rope_head_dim,
        value_dim=c.v_head_dim,
        bias=c.attention_bias,
    )


def shared_width(c: Config) -> int | None:
    """The shared experts are one MLP, as wide as all of them together; zero of them still leave its biases."""
    return None if c.n_shared_experts is None else c.n_shared_experts * c.moe_intermediate_size


def dense_then_sparse(c: Config, dense: Component, sparse: Component) -> list[Run]:
    """first_k_dense_replace dense layers, then sparse ones. The class does not look at moe_layer_freq."""
    if c.raw("moe_layer_freq") not in (None, 1):
        c.doubts.append(f"{c.family}: moe_layer_freq is not 1; {c.architecture} ignores it and so does this count")
    first = min(c.first_k_dense_replace, c.num_hidden_layers)
    return [Run(first, dense), Run(c.num_hidden_layers - first, sparse)]


@family(
    "deepseek_v2",
    "DeepseekV2ForCausalLM",
    names=dict(num_experts="n_routed_experts"),
    defaults=DEEPSEEK
    | dict(
        vocab_size=102400,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        mlp_bias=False,
        num_experts=64,
        num_experts_per_tok=None,
        n_shared_experts=2,
        moe_intermediate_size=1407,
        first_k_dense_replace=0,
    ),
    nullable=["q_lora_rank", "n_shared_experts"],
    unused=LATENT_UNUSED,
)
def deepseek_v2(c: Config) -> Block:
    """Latent attention; dense layers first, then routed and shared experts (DeepseekV2ForCausalLM)."""
    attn, bias = latent_attention(c), c.mlp_bias
    experts = moe(
        c,
        c.moe_intermediate_size,
        experts=c.num_experts,
        shared=shared_width(c),
        shared_count=c.n_shared_experts or 0,
        shared_bias=bias,
    )
    dense, sparse = pre_norm(rms(c), attn, glu(c, bias=bias)), pre_norm(rms(c), attn, experts)
    return causal_lm(c, dense_then_sparse(c, dense, sparse), norm=rms(c))


@family(
    "deepseek_v3",
    "DeepseekV3ForCausalLM",
    names=dict(num_local_experts="n_routed_experts", num_mtp_layers="num_nextn_predict_layers"),
    defaults=DEEPSEEK | dict(num_local_experts=256, num_mtp_layers=1),
    nullable=["q_lora_rank", "num_mtp_layers"],
    unused=LATENT_UNUSED,
)
def deepseek_v3(c: Config) -> Block:
    """DeepSeek-V2 with a buffer of corrections that balance the experts (DeepseekV3ForCausalLM).

    The checkpoint ships a module that predicts one more token; the reference class does not build it.
    """
    attn, d = latent_attention(c), c.hidden_size
    experts = moe(
        c,
        c.moe_intermediate_size,
        experts=c.num_local_experts,
        shared=shared_width(c),
        shared_count=c.n_shared_experts or 0,
        correction=True,
    )
    dense, sparse = pre_norm(rms(c), attn, glu(c)), pre_norm(rms(c), attn, experts)
    mtp = Mtp(
        count=c.num_mtp_layers or 0,
        items={
            "embed_tokens": Embedding(rows=c.vocab_size, width=d, tied_to="embed_tokens"),
            "embed_norm": rms(c),
            "hidden_norm": rms(c),
            "proj": Linear(d_in=2 * d, d_out=d, category="other"),
            "layer": sparse,
            "norm": rms(c),
            "lm_head": Linear(d_in=d, d_out=c.vocab_size, tied_to="lm_head", category="head"),
        },
    )
    return causal_lm(c, dense_then_sparse(c, dense, sparse), norm=rms(c), mtp=mtp)
