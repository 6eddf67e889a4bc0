"""Encoders with BERT's plan and other attention, or none: approximated, global, grouped, of Fourier transforms."""

from __future__ import annotations

from paramcalc.components import GroupedAttention, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, mha
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder import CLASSIFIED, embeddings, encoder, encoder_layer, projected
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import (
    ALL_HEADS,
    POOLED,
    dense_head,
    encoder_heads,
    masked_lm_head,
    num_labels,
    roberta_heads,
)
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Conv1d, Embedding, Linear, Norm, Param

APPROXIMATED_ATTENTION = "approximated attention is counted as full attention"


@family("mra")
def mra(c: Config) -> Block:
    """BERT with two spare position rows and approximated attention, without a pooler (MraForMaskedLM)."""
    ids = {"position_ids": Param(shape=(1, c.max_position_embeddings), buffer=True)}
    layer = encoder_layer(c).replace(inexact=APPROXIMATED_ATTENTION)
    return encoder(
        c, embeddings(c, c.hidden_size, rows=c.max_position_embeddings + 2) | ids, layer, heads_without_pooler(c)
    )


def heads_without_pooler(c: Config) -> dict[str, Component]:
    """Heads without a pooler: classifiers have a dense layer of their own; answers are always two."""
    return encoder_heads(c, c.hidden_size, pooled=(), transformed=CLASSIFIED, answers=2)


@family("nystromformer", "yoso")
def nystromformer(c: Config) -> Block:
    """BERT whose approximated attention adds a convolution of each head's values (NystromformerForMaskedLM)."""
    h, window = c.num_attention_heads, c.conv_kernel_size
    conv = None if window is None else block(conv=Conv1d(channels=h, kernel=window, bias=False))
    layer = encoder_layer(c, attn=mha(c, inner=conv)).replace(inexact=APPROXIMATED_ATTENTION)
    return encoder(c, embeddings(c, c.hidden_size, rows=c.max_position_embeddings + 2), layer, heads_without_pooler(c))


@family("longformer")
def longformer(c: Config) -> Block:
    """RoBERTa with projections of their own for tokens that attend to everything (LongformerForMaskedLM)."""
    proj = Linear(d_in=c.hidden_size, d_out=c.hidden_size, bias=True)
    attn = mha(c, inner=block(**{f"global_{name}_proj": proj for name in "qkv"}))
    layer = encoder_layer(c, attn=attn).replace(inexact="windows and global tokens are counted as full attention")
    return encoder(c, embeddings(c, c.hidden_size), layer, roberta_heads(c))


@family("luke")
def luke(c: Config) -> Block:
    """RoBERTa that reads entities too, with queries for each pair of word and entity (LukeForMaskedLM)."""
    d, width = c.hidden_size, c.entity_emb_size
    query = Linear(d_in=d, d_out=d, bias=True, per="never")  # without entities
    aware = c.use_entity_aware_attention
    attn = mha(c, inner=block(w2e_q_proj=query, e2w_q_proj=query, e2e_q_proj=query) if aware else None)
    tables = embeddings(c, d)
    entities: dict[str, Component] = {"embed_entities": Embedding(rows=c.entity_vocab_size, width=width)}
    if width != d:
        entities["embed_proj"] = projected(c, width, bias=False)["embed_proj"].replace(per="never")
    tables["entities"] = block(**entities, **{name: part for name, part in tables.items() if name != "embed_tokens"})
    return encoder(c, tables, encoder_layer(c, attn=attn), luke_heads(c))


def luke_heads(c: Config) -> dict[str, Component]:
    """Words are told by a matrix of their own, entities by their table; classifiers of one, two or three vectors."""
    d, width = c.hidden_size, c.entity_emb_size
    joined = {"entity_classification": 1, "entity_pair_classification": 2, "entity_span_classification": 3}
    if c.head in joined:
        inputs = joined[c.head] * d if joined[c.head] > 1 else d
        bias = c.head != "entity_pair_classification"
        return {
            "pooler": dense_head(c, d),
            "classifier": Linear(d_in=inputs, d_out=num_labels(c), bias=bias, category="head"),
        }
    tied = "entities.embed_entities" if c.tie_word_embeddings else None
    entities: dict[str, Component] = {
        "entity_head": block(
            transform=dense_head(c, width, per="never"),
            norm=Norm(width=width, bias=True),
            decoder=Linear(
                d_in=width, d_out=c.entity_vocab_size, bias=True, category="head", tied_to=tied, per="never"
            ),
        )
    }
    heads = encoder_heads(c, d, lm_head=masked_lm_head(c, d, tied=False), pooled=(*POOLED, "masked_lm"))
    return heads | (entities if c.head == "masked_lm" else {})


@family("mpnet")
def mpnet(c: Config) -> Block:
    """RoBERTa without segments, with one table of relative position biases for all layers (MPNetForMaskedLM)."""
    shape = (c.relative_attention_num_buckets, c.num_attention_heads)
    bias = {"position_bias": Param(shape=shape, category="attention")}
    heads = roberta_heads(c)
    return encoder(c, embeddings(c, c.hidden_size, types=False) | bias, encoder_layer(c), heads)


@family("squeezebert")
def squeezebert(c: Config) -> Block:
    """BERT of grouped convolutions, with a pooler in every class (SqueezeBertForMaskedLM)."""
    d, hidden, up, down = c.hidden_size, c.intermediate_size, c.intermediate_groups, c.output_groups
    c.require(c.embedding_size == d, f"embedding_size ({c.embedding_size}) is not hidden_size ({d})")
    equal_heads(c)
    groups = dict(q=c.q_groups, k=c.k_groups, v=c.v_groups, out=c.post_attention_groups)
    for channels, parts in ((d, (*groups.values(), up, down)), (hidden, (up, down))):
        c.require(not any(channels % n for n in parts), f"groups {parts} do not divide {channels} channels")
    attn = GroupedAttention(width=d, heads=c.num_attention_heads, **{f"{name}_groups": n for name, n in groups.items()})
    ffn = Mlp(width=d, hidden=hidden, gated=False, bias=True, groups=(up, down))
    heads = encoder_heads(c, d, pooled=ALL_HEADS)
    return encoder(c, embeddings(c, d), encoder_layer(c, attn=attn, ffn=ffn), heads)


@family("fnet")
def fnet(c: Config) -> Block:
    """BERT with Fourier transforms, which have no weights, instead of attention (FNetForMaskedLM, 2105.03824)."""
    layer = block(mixing_norm=layer_norm(c), ffn=mlp(c, c.intermediate_size), ffn_norm=layer_norm(c))
    before = embeddings(c, c.hidden_size) | projected(c, c.hidden_size)
    return encoder(c, before, layer, encoder_heads(c, c.hidden_size, pooled=ALL_HEADS))
