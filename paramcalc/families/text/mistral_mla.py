"""Mistral with latent attention."""

from __future__ import annotations

from collections.abc import Mapping

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import with_options
from paramcalc.families.builders.decoder import causal_lm, decoder, pre_norm, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, SPARSE, first_dense, mlp_types
from paramcalc.families.builders.mla import indexer_types, latent_attention, lightning_indexer, shared_width
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Norm, Param


@family("mistral4")
def mistral4(c: Config) -> Block:
    """DeepSeek-V3 without correction biases in the router (Mistral4ForCausalLM)."""
    shared, e = shared_width(c), c.moe_intermediate_size
    sparse = moe(c, e, experts=c.num_local_experts, shared=shared, shared_count=c.n_shared_experts)
    words = first_dense(c, c.first_k_dense_replace)
    return decoder(c, latent_attention(c), {DENSE: glu(c), SPARSE: sparse}, ffn_words=words)


@family("mistral_large4_text")
def mistral_large4_text(c: Config) -> Block:
    """Latent attention with scaled softmax and indexers, no rotation in every fourth layer (MistralLarge4TextModel)."""
    sources = c.layer_indices("kv_source_layers") or list(range(c.num_hidden_layers))
    own = sources == list(range(c.num_hidden_layers))
    c.require(own, "kv_source_layers shares keys and values between layers, which cannot be counted")
    step = c.no_rope_layer_interval
    rotary = c.per_layer("no_rope_layers") or [(i + 1) % step for i in range(c.num_hidden_layers)]
    d, plain, both = c.hidden_size, latent_attention(c), c.qk_nope_head_dim + c.qk_rope_head_dim
    attn = {True: plain, False: plain.replace(nope_dim=both, rope_dim=0)}
    own_norm = Norm(width=d, bias=True)
    indexer = {
        "full": block(q_input_norm=own_norm, scores=lightning_indexer(c, d), scaling=softmax_scaling(c.index_n_heads)),
        "shared": None,
    }
    e = c.moe_intermediate_size
    experts = moe(c, e, experts=c.num_local_experts, shared=shared_width(c), shared_count=c.n_shared_experts)
    ffn = {DENSE: glu(c), SPARSE: experts}

    def layer(rope: bool, index: str, kind: str) -> Block:
        scaling = softmax_scaling(c.num_attention_heads)
        mixer = with_options(attn[rope], inner=scaling, indexer=indexer[index], picks=c.index_topk)
        return pre_norm(rms(c), mixer, ffn[kind])

    words = mlp_types(c, first_dense(c, c.first_k_dense_replace))
    plan = list(zip(map(bool, rotary), indexer_types(c), words, strict=True))
    layers = {kind: layer(*kind) for kind in dict.fromkeys(plan)}
    half = symbolic("d_r / 2", (c.qk_rope_head_dim + 1) // 2, origin="qk_rope_head_dim / 2, rounded up")
    rope = c.raw("rope_parameters") or {}
    if isinstance(rope, Mapping) and rope.get("partial_rotary_factor") not in (None, 1):
        c.doubts.append(
            f"{c.family}: partial_rotary_factor makes some kinds of rope_parameters learn fewer frequencies"
        )
    if c.qk_rope_head_dim == 1:
        c.doubts.append(f"{c.family}: some kinds of rope_parameters learn no frequency for one rotary channel")
    positions = {"rotary_alpha": Param(shape=(half,))}
    return causal_lm(c, [layers[kind] for kind in plan], norm=rms(c), before=positions)


def softmax_scaling(heads: int) -> Block:
    """A scale and a bias per head for the attention scores."""
    return block(scale=Param(shape=(heads,)), bias=Param(shape=(heads,)))
