"""HY 4: latent attention between several residual streams."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import head_gate, with_options
from paramcalc.families.builders.decoder import causal_lm
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.layer_types import DENSE, SPARSE, first_dense, mlp_types
from paramcalc.families.builders.mla import latent_attention, lightning_indexer, mla_moe
from paramcalc.families.builders.residual_streams import hyper_connected_layer, hyper_connection, merged_streams
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("hy_v4", "hy_v4_vl_text")
def hy_v4(c: Config) -> Block:
    """DeepSeek-V3.2 with gates and sinks, indexers in some layers, and residual streams (HYV4ForCausalLM)."""
    gate = head_gate(c.hidden_size, c.num_attention_heads, c.v_head_dim)
    attn = latent_attention(c, sinks=True, gate=gate)
    index = {"full": lightning_indexer(c, c.q_lora_rank), "shared": None}
    default = ["shared" if i and (i - 1) % 4 else "full" for i in range(c.num_hidden_layers)]
    ffn, mix = {DENSE: glu(c), SPARSE: mla_moe(c)}, hyper_connection(c, 2 * c.hc_mult, 2)
    layers = {
        (word, kind): hyper_connected_layer(
            c, with_options(attn, indexer=index[word], picks=c.index_topk), ffn[kind], mix
        )
        for word in index
        for kind in ffn
    }
    words = zip(c.layer_words("indexer_types", index) or default, mlp_types(c, first_dense(c, 1)), strict=True)
    return causal_lm(c, [layers[pair] for pair in words], norm=merged_streams(c))
