"""Later decoders whose class is code on the Hub: Ling, Phi-3-small, MiMo, the first Phi-1.5."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, qk_norm_per_head
from paramcalc.families.builders.decoder import decoder, layer_norm, parallel, pre_norm, rms, unpublished
from paramcalc.families.builders.ffn import glu, mlp, moe
from paramcalc.families.builders.layer_types import DENSE, SPARSE, first_dense
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, Mtp, block
from paramcalc.tree.leaves import Linear


@family("mixformer-sequential")
def mixformer(c: Config) -> Block:
    """Phi as it was first published: attention and FFN beside each other (MixFormerSequentialForCausalLM)."""
    attn, ffn = gqa(c, bias=True), mlp(c, c.n_inner)
    return decoder(c, attn, ffn, layer=parallel, norm=layer_norm(c), head_bias=True)


@family("phi3small")
def phi3small(c: Config) -> Block:
    """LayerNorms, biases on every matrix, a gated FFN, a tied head (Phi3SmallForCausalLM)."""
    unpublished(c)
    c.require(c.ff_dim_multiplier is None, "ff_dim_multiplier: only ff_intermediate_size is counted", "leave it out")
    return decoder(c, gqa(c, bias=True), glu(c, c.ff_intermediate_size, bias=True), norm=layer_norm(c))


@family("bailing_moe", "bailing_moe_v2")
def bailing_moe(c: Config) -> Block:
    """Experts beside shared ones, a few dense layers first (Ling; BailingMoeForCausalLM).

    Ling 2.0 has QK norms and corrections of its routers, which are buffers (BailingMoeV2ForCausalLM).
    """
    c.require(not c.multi_gate, "multi_gate: routers for pictures and sound are not counted", "leave it out")
    attention = qk_norm_per_head if c.use_qk_norm else gqa
    attn = attention(c, qkv_bias=c.use_qkv_bias, out_bias=c.use_bias)
    sparse = moe(
        c,
        c.moe_intermediate_size,
        experts=c.num_experts,
        shared_count=c.num_shared_experts,
        correction=c.moe_router_enable_expert_bias,
    )
    words = first_dense(c, c.first_k_dense_replace)
    return decoder(c, attn, {DENSE: glu(c), SPARSE: sparse}, ffn_words=words)


@family("mimo")
def mimo(c: Config) -> Block:
    """Qwen2, and layers that predict further tokens (MiMoForCausalLM, 2505.07608)."""
    unpublished(c)
    attn, ffn, d = gqa(c, qkv_bias=c.attention_bias), glu(c), c.hidden_size
    ahead = Mtp(
        count=c.num_nextn_predict_layers or 0,
        items={
            "token_norm": rms(c),
            "hidden_norm": rms(c),
            "proj": Linear(d_in=2 * d, d_out=d, category="other"),
            "layer": pre_norm(rms(c), attn, ffn),
            "norm": rms(c),
        },
    )
    return block(**decoder(c, attn, ffn).items, mtp=ahead if c.num_nextn_predict_layers else None)
