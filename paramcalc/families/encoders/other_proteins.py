"""Encoders of protein sequences."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa
from paramcalc.families.builders.decoder import layer_norm, pre_norm, rms
from paramcalc.families.builders.encoder import embeddings, encoder, encoder_layer
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.heads import encoder_heads, masked_lm_head
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block
from paramcalc.tree.leaves import Embedding, Linear, Param


@family("esm")
def esm(c: Config) -> Block:
    """Pre-norm encoder for proteins with contact prediction from its attention maps (EsmForMaskedLM)."""
    if c.vocab_size is None:
        raise c.missing("vocab_size")
    if c.raw("add_bias_fnn") is False:
        c.doubts.append("esm: add_bias_fnn is false: the Hub's own class gates its FFNs, which this count does not")
    d, kind = c.hidden_size, c.position_embedding_type  # the class builds no positions for any other kind
    before = embeddings(c, d, rows=None if kind == "absolute" else 0, types=False, norm=c.emb_layer_norm_before)
    if kind == "rotary":
        before["rotary"] = Param(shape=(((c.head_dim or equal_heads(c)) + 1) // 2,), buffer=True)
    contacts = Linear(
        d_in=c.num_hidden_layers * c.num_attention_heads, d_out=1, bias=True, category="head", per="never"
    )
    head = masked_lm_head(c, d, spare_bias=False)
    heads = encoder_heads(c, d, lm_head=head, pooled=("none",), transformed=("sequence_classification",))
    return encoder(c, before, encoder_layer(c, norm_first=True), heads, norm=layer_norm(c), contacts=contacts)


@family("esmc")
def esmc(c: Config) -> Block:
    """Llama's layer with LayerNorms and QK norms over all heads, for proteins; never tied (EsmcForMaskedLM)."""
    d, h = c.hidden_size, c.num_attention_heads
    c.require((c.num_key_value_heads or h) == h, "num_key_value_heads must equal num_attention_heads")
    equal_heads(c)
    attn = gqa(c, bias=c.attention_bias, q_norm=rms(c), k_norm=rms(c))
    layer = pre_norm(layer_norm(c), attn, glu(c, bias=c.mlp_bias))
    heads = encoder_heads(
        c,
        d,
        lm_head=masked_lm_head(c, d, spare_bias=False, tied=False),
        pooled=(),
        transformed=("sequence_classification",),
    )
    return encoder(c, {"embed_tokens": Embedding(rows=c.vocab_size, width=d)}, layer, heads, norm=rms(c))
