"""Encoders that narrow: MobileBERT within its layers, Funnel along the sequence."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import sized_attention
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder import CLASSIFIED, embeddings, encoder
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import discriminator, encoder_heads, lm_head, masked_lm_head
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("mobilebert")
def mobilebert(c: Config) -> Block:
    """A thin BERT: layers work in a bottleneck, each with several small FFNs (MobileBertForMaskedLM, 2004.02984)."""
    d, narrow = c.hidden_size, c.embedding_size
    norm, inputs = layer_norm(c), (3 if c.trigram_input else 1) * narrow
    before: dict[str, Component] = {
        "embed_tokens": Embedding(rows=c.vocab_size, width=narrow),
        "embed_proj": Linear(d_in=inputs, d_out=d, bias=True, category="embedding"),
        "positions": Embedding(rows=c.max_position_embeddings, width=d),
        "token_types": Embedding(rows=c.type_vocab_size, width=d),
        "embed_norm": norm,
    }
    heads = encoder_heads(c, d, lm_head=mobilebert_lm_head(c))
    if not c.classifier_activation:
        heads = {name: part for name, part in heads.items() if name != "pooler"}
    return encoder(c, before, mobilebert_layer(c), heads)


def mobilebert_layer(c: Config) -> Block:
    """Down to the bottleneck, attention, FFNs with a norm each, and up again. The width within may be stated."""
    d, narrow = c.hidden_size, c.intra_bottleneck_size
    width = c.true_hidden_size or (narrow if c.use_bottleneck else d)
    h, norm = c.num_attention_heads, Norm(width=width, bias=True)
    d_h = symbolic("d_h", width // h, origin="width / h")
    value_in = width if c.use_bottleneck_attention else d
    attn = sized_attention(width, h, d_h, bias=True, value_in=value_in, out_in=width, out_width=width)
    ffn = Mlp(width=width, hidden=c.intermediate_size, gated=False, bias=True)
    ffns = {f"ffn_{i}": block(ffn=ffn, norm=norm) for i in range(c.num_feedforward_networks)}
    if not c.use_bottleneck:
        return block(attn=attn, attn_norm=norm, **ffns)
    down = block("other", proj=Linear(d_in=d, d_out=narrow, bias=True), norm=Norm(width=narrow, bias=True))
    up = block("other", proj=Linear(d_in=width, d_out=d, bias=True), norm=layer_norm(c))
    shared = down if c.key_query_shared_bottleneck else None
    return block(bottleneck=down, attn_bottleneck=shared, attn=attn, attn_norm=norm, **ffns, output_bottleneck=up)


def mobilebert_lm_head(c: Config) -> Block:
    """The embeddings are the narrow part of the output matrix; the rest is the head's own."""
    d, narrow, head = c.hidden_size, c.embedding_size, masked_lm_head(c, c.hidden_size)
    decoder = lm_head(c, narrow, owner="embed_tokens", bias=True)
    rest = Linear(d_in=c.vocab_size, d_out=d - narrow, category="head")
    return block(**head.items | {"rest": rest, "decoder": decoder})


@family("funnel")
def funnel(c: Config) -> Block:
    """Blocks of layers that halve the sequence, and a decoder that restores it (FunnelForMaskedLM, 2006.03236)."""
    sizes = c.layer_indices("block_sizes") or [4, 4, 4]
    repeats = c.layer_indices("block_repeats") or [1] * len(sizes)
    c.require(len(sizes) == len(repeats), "block_sizes and block_repeats differ in length")
    layer, base = (
        funnel_layer(c).replace(inexact="blocks that halve the sequence are counted at full length"),
        c.head in ("base", *CLASSIFIED),
    )
    runs = [Run(size, layer, passes=passes) for size, passes in zip(sizes, repeats, strict=True)]
    head, replaced = lm_head(c, c.hidden_size, owner="embed_tokens", bias=True), discriminator(c)
    heads = encoder_heads(c, c.hidden_size, lm_head=head, pooled=(), transformed=CLASSIFIED, pretraining=replaced)
    return block(
        **embeddings(c, c.hidden_size, rows=0, types=False),
        layers=stack("encoder", runs),
        decoder=None if base else stack("decoder", Run(c.num_decoder_layers, layer), causal=False),
        **heads,
    )


def funnel_layer(c: Config) -> Block:
    """Transformer-XL's relative attention with biases for words, positions and segments; post-norm."""
    d, h, d_h = c.hidden_size, c.num_attention_heads, c.head_dim
    bias = Param(shape=(h, d_h))
    relative = block(
        position_proj=Linear(d_in=h * d_h, d_out=d),
        word_bias=bias,
        position_bias=bias,
        segment_bias=bias,
        segments=Param(shape=(2, h, d_h)),
    )
    attn = sized_attention(d, h, d_h, bias=True, q_bias=False, inner=relative)
    return block(attn=attn, attn_norm=layer_norm(c), ffn=mlp(c, c.d_inner), ffn_norm=layer_norm(c))
