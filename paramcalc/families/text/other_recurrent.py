"""Recurrent decoders without attention, other than Mamba: RWKV and xLSTM."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Mlp, Mlstm, RwkvChannelMix, RwkvTimeMix
from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import causal_lm, layer_norm, pre_norm
from paramcalc.families.builders.heads import decoder_head
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Norm


@family("rwkv")
def rwkv(c: Config) -> Block:
    """RWKV-4: time mixing and channel mixing behind LayerNorms, and a norm before the first layer (RwkvForCausalLM)."""
    d = c.hidden_size
    mixer = RwkvTimeMix(width=d, inner=c.attention_hidden_size or d)
    layer = pre_norm(layer_norm(c), mixer, RwkvChannelMix(width=d, hidden=c.intermediate_size or 4 * d))
    first = block(pre_norm=layer_norm(c), **layer.items)
    return causal_lm(c, [first, Run(c.num_hidden_layers - 1, layer)], norm=layer_norm(c))


@family("xlstm")
def xlstm(c: Config) -> Block:
    """Matrix memories with exponential gates, and gated FFNs (xLSTMForCausalLM)."""
    d, depth, bias = c.hidden_size, c.num_blocks or c.num_hidden_layers, c.use_bias
    multiple, wanted = c.ffn_round_up_to_multiple_of, d * c.ffn_proj_factor
    hidden = symbolic(
        "d_ff", int((wanted + multiple - 1) // multiple * multiple), origin="d x ffn_proj_factor, rounded up"
    )
    mixer = Mlstm(
        width=d,
        heads=c.num_heads,
        qk_width=symbolic("d_qk", int(d * c.qk_dim_factor), origin="d x qk_dim_factor"),
        value_width=symbolic("d_v", int(d * c.v_dim_factor), origin="d x v_dim_factor"),
        bias=bias,
    )
    norm = Norm(width=d, bias=bias)
    layer = pre_norm(norm, mixer, Mlp(width=d, hidden=hidden, gated=True, bias=bias))
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=c.embedding_dim or d),
        layers=stack("decoder", Run(depth, layer)),
        norm=Norm(width=d),
        **decoder_head(c, d),
    )
