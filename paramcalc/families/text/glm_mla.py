"""GLM with latent attention."""

from __future__ import annotations

from paramcalc.components import HyperConnection, KimiDeltaAttention
from paramcalc.components.sparse import IndexKeys, KeyPooling
from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import causal_lm, decoder, ignored_fields, pre_norm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.layer_types import DENSE, FULL, LINEAR, SPARSE, first_dense, mlp_types
from paramcalc.families.builders.mla import (
    INDEXED,
    indexed_latent_attention,
    indexer_types,
    latent_attention,
    lightning_indexer,
    mla_moe,
)
from paramcalc.families.builders.mtp import mtp_modules, unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear, Param


@family("glm4_moe_lite")
def glm4_moe_lite(c: Config) -> Block:
    """DeepSeek-V3 with a list of FFN types, of which the first is dense (Glm4MoeLiteForCausalLM)."""
    unbuilt_mtp(c)
    ignored_fields(c, first_k_dense_replace=mlp_types(c, first_dense(c, 1)).count(DENSE), moe_layer_freq=1)
    return mla_moe_decoder(c, latent_attention(c), first_dense(c, 1))


def mla_moe_decoder(c: Config, attn: Component, default: list[str]) -> Block:
    """A decoder with the same attention in every layer, dense or sparse."""
    return decoder(c, attn, {DENSE: glu(c), SPARSE: mla_moe(c)}, ffn_words=mlp_types(c, default))


@family("glm_moe_dsa")
def glm_moe_dsa(c: Config) -> Block:
    """DeepSeek-V3.2 where a layer may reuse the selection of the indexer before it (GlmMoeDsaForCausalLM).

    Its multi-token-prediction module uses the model's own embedding and head.
    """
    attn = {"full": indexed_latent_attention(c), "shared": latent_attention(c, picks=c.index_topk)}
    ffn, ffn_words = {DENSE: glu(c), SPARSE: mla_moe(c)}, mlp_types(c, first_dense(c, c.first_k_dense_replace))
    mtp = mtp_modules(c, pre_norm(rms(c), attn["full"], ffn[SPARSE]), tables=False)
    ignored_fields(c, moe_layer_freq=1)
    return decoder(c, attn, ffn, dsa_indexer_types(c), ffn_words, mtp=mtp)


def dsa_indexer_types(c: Config) -> list[str]:
    """The indexer of each layer: `indexer_types`, the letters of index_topk_pattern, or one in each index_topk_freq."""
    words, pattern = c.layer_words("indexer_types", ("full", "shared")), c.raw("index_topk_pattern")
    letters = {"F": "full", "S": "shared"}
    if words is None and isinstance(pattern, str):
        c.require(set(pattern) <= set(letters), f"index_topk_pattern is {pattern!r}", "its letters are F and S")
        c.require(len(pattern) == c.num_hidden_layers, f"index_topk_pattern has {len(pattern)} letters")
        return [letters[letter] for letter in pattern]
    step, offset = c.index_topk_freq, c.index_skip_topk_offset
    default = ["shared" if max(i - offset + 1, 0) % step else "full" for i in range(c.num_hidden_layers)]
    return words or c.layer_words("index_topk_pattern", ("full", "shared")) or default


@family("glm5_next_text")
def glm5_next_text(c: Config) -> Block:
    """Kimi delta attention, latent attention over pooled keys, residual streams, experts (Glm5NextTextModel)."""
    linear = c.section("linear_attn_config")
    d_h = linear.head_dim or c.linear_head_dim
    delta = KimiDeltaAttention(
        width=c.hidden_size,
        heads=linear.num_heads or c.linear_num_heads,
        head_dim=d_h,
        kernel=linear.short_conv_kernel_size or c.linear_conv_kernel_dim,
        gate_rank=d_h,
    )
    pool = block(
        positions=Param(shape=(c.index_kpool, c.index_head_dim)),
        gate=Linear(d_in=c.hidden_size, d_out=c.index_head_dim),
    )
    scores = lightning_indexer(c, c.q_lora_rank).replace(
        index_keys=IndexKeys(c.index_head_dim + 1), pooling=KeyPooling(c.index_kpool)
    )
    indexer = {"full": block(scores=scores, pool=pool), "shared": None}
    default = [LINEAR if (i + 1) % 4 else INDEXED for i in range(c.num_hidden_layers)]
    words = c.layer_words("layer_types", (LINEAR, INDEXED, FULL)) or default
    ffn, mix = {DENSE: glu(c), SPARSE: mla_moe(c)}, glm_hyper_connection(c)
    plan = list(zip(words, indexer_types(c), mlp_types(c, first_dense(c, 3)), strict=True))

    def layer(word: str, index: str, kind: str) -> Block:
        mixer = delta if word == LINEAR else latent_attention(c, indexer=indexer[index], picks=c.index_topk)
        return block(attn_streams=mix, input_norm=rms(c), attn=mixer, ffn_streams=mix, post_norm=rms(c), ffn=ffn[kind])

    layers = {kind: layer(*kind) for kind in dict.fromkeys(plan)}
    unbuilt_mtp(c)
    return causal_lm(c, [layers[kind] for kind in plan], norm=rms(c))


def glm_hyper_connection(c: Config) -> HyperConnection:
    """hc_mult residual streams, mixed before and after a sublayer."""
    return HyperConnection(width=c.hidden_size, streams=c.hc_mult, mixtures=(2 + c.hc_mult) * c.hc_mult, scales=3)
