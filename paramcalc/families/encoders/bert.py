"""BERT and its relatives: post-norm encoders with learned positions."""

from __future__ import annotations

from itertools import pairwise

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Attention, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import sized_attention
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder import embeddings, encoder, encoder_layer, narrow_embeddings, projected
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import (
    dense_head,
    electra_heads,
    encoder_heads,
    lm_head,
    masked_lm_head,
    num_labels,
)
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block
from paramcalc.tree.leaves import Conv1d, Embedding, Linear, Param, Product


@family("bert")
def bert(c: Config) -> Block:
    """Post-norm encoder: learned positions and segments, pooler or MLM head by class (BertForMaskedLM)."""
    return encoder(c, embeddings(c, c.hidden_size), encoder_layer(c), encoder_heads(c, c.hidden_size))


@family("megatron-bert")
def megatron_bert(c: Config) -> Block:
    """BERT with the norms first: none after the embeddings, one after the layers (MegatronBertForMaskedLM)."""
    before, heads = embeddings(c, c.hidden_size, norm=False), encoder_heads(c, c.hidden_size)
    return encoder(c, before, encoder_layer(c, norm_first=True), heads, norm=layer_norm(c))


@family("bert-generation")
def bert_generation(c: Config) -> Block:
    """BERT without segments and pooler, and a decoder's plain head (BertGenerationDecoder)."""
    heads: dict[str, Component] = {}
    if c.head == "lm":
        heads["lm_head"] = lm_head(c, c.hidden_size, owner="embed_tokens", bias=True)
        if not c.tie_word_embeddings:
            heads["spare_bias"] = Param(shape=(c.vocab_size,), category="head")
    return encoder(c, embeddings(c, c.hidden_size, types=False), encoder_layer(c), heads)


@family("roc_bert")
def roc_bert(c: Config) -> Block:
    """BERT with tables for the pronunciation and the shape of characters (RoCBertForMaskedLM)."""
    d, pronunciation, shape = c.hidden_size, c.pronunciation_embed_dim, c.shape_embed_dim
    tables: dict[str, Component] = {
        "pronunciations": Embedding(rows=c.pronunciation_vocab_size, width=pronunciation),
        "shapes": Embedding(rows=c.shape_vocab_size, width=shape),
    }
    if c.concat_input:
        d_in = d + (pronunciation if c.enable_pronunciation else 0) + (shape if c.enable_shape else 0)
        tables["map_inputs"] = Linear(d_in=d_in, d_out=d, bias=True, category="embedding")
    heads = encoder_heads(c, d, pretraining={"lm_head": masked_lm_head(c, d)})
    return encoder(c, embeddings(c, d) | tables, encoder_layer(c), heads)


# -- embeddings or layers of another width ---------------------------------------------------------------------------


@family("rembert")
def rembert(c: Config) -> Block:
    """BERT with narrow input and wide output embeddings that are never tied (RemBertForMaskedLM)."""
    width = c.output_embedding_size
    head = masked_lm_head(c, width, spare_bias=False, tied=False)
    before = embeddings(c, c.input_embedding_size) | projected(c, c.input_embedding_size)
    return encoder(c, before, encoder_layer(c), encoder_heads(c, width, lm_head=head))


@family("distilbert")
def distilbert(c: Config) -> Block:
    """BERT without segments and pooler (DistilBertForMaskedLM)."""
    head = masked_lm_head(c, c.hidden_size, spare_bias=False)
    classified = ("sequence_classification", "multiple_choice")
    heads = encoder_heads(c, c.hidden_size, lm_head=head, pooled=(), transformed=classified)
    layer = encoder_layer(c, ffn=mlp(c, c.hidden_dim))
    return encoder(c, embeddings(c, c.hidden_size, types=False), layer, heads)


@family("albert")
def albert(c: Config) -> Block:
    """BERT with narrow embeddings and a few layers that are passed repeatedly (AlbertForMaskedLM)."""
    groups, depth, layer, inner = c.num_hidden_groups, c.num_hidden_layers, encoder_layer(c), c.inner_group_num
    group = layer if inner == 1 else block(**{f"layer_{i}": layer for i in range(inner)})
    runs = [Run(1, group, passes=passes) for passes in group_passes(depth, groups)]
    before = embeddings(c, c.embedding_size) | projected(c, c.embedding_size)
    heads = encoder_heads(c, c.embedding_size)
    if c.head == "pretraining":  # sentence order with num_labels outputs; BERT always has 2
        heads["next_sentence"] = dense_head(c, num_labels(c))
    return encoder(c, before, runs, heads)


def group_passes(depth: int, groups: int) -> list[int]:
    """The number of passes through each group: step i uses group floor(i / (depth / groups))."""
    firsts = [-(-group * int(depth) // groups) for group in range(groups + 1)]
    return [after - first for first, after in pairwise(firsts)]


@family("convbert")
def convbert(c: Config) -> Block:
    """ELECTRA where half the heads are dynamic convolutions (ConvBertForMaskedLM, 2008.02496)."""
    d, g = c.hidden_size, c.num_groups
    c.require(d % g == 0 == c.intermediate_size % g, f"num_groups ({g}) does not divide the widths of the FFN")
    ffn = Mlp(width=d, hidden=c.intermediate_size, gated=False, bias=True, groups=(g, g))
    layer = encoder_layer(c, attn=span_attention(c), ffn=ffn)
    return encoder(c, narrow_embeddings(c, c.embedding_size), layer, electra_heads(c))


def span_attention(c: Config) -> Attention:
    """Fewer heads of half the width; a span-based dynamic convolution replaces the others."""
    d, kernel, heads = c.hidden_size, c.conv_kernel_size, max(c.num_attention_heads // c.head_ratio, 1)
    c.require(d % heads == 0, f"hidden_size ({d}) is not divisible by the {heads} heads that head_ratio leaves")
    d_h = symbolic("d_h", d // heads // 2, origin="half of d / heads")
    width = heads * d_h
    convolution = block(
        depthwise=Conv1d(channels=d, kernel=kernel, bias=False),
        pointwise=Linear(d_in=d, d_out=width, bias=True),
        kernel=Linear(d_in=width, d_out=heads * kernel, bias=True),
        values=Linear(d_in=d, d_out=width, bias=True),
        windows=Product(flops=2 * width * kernel, term="convolution"),
    )
    return sized_attention(d, heads, d_h, bias=True, inner=convolution, out_in=d)
