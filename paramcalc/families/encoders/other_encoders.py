"""Encoders with BERT's plan and other tables, heads or adapters."""

from __future__ import annotations

from paramcalc.components import Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, mha
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder import embeddings, encoder, encoder_layer, narrow_embeddings, projected
from paramcalc.families.builders.heads import (
    ALL_HEADS,
    POOLED,
    dense_head,
    electra_heads,
    encoder_heads,
    masked_lm_head,
    num_labels,
    roberta_heads,
    summary_projection,
)
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("dpr")
def dpr(c: Config) -> Block:
    """BERT without a pooler for questions or passages, or with answer spans (DPRQuestionEncoder, 2004.04906)."""
    d, narrow = c.hidden_size, c.projection_dim
    heads: dict[str, Component] = {"encode_proj": dense_head(c, narrow, per="sequence")} if narrow else {}
    if c.head == "question_answering":
        width = narrow or d
        heads["qa_outputs"] = Linear(d_in=width, d_out=2, bias=True, category="head")
        heads["qa_classifier"] = Linear(d_in=width, d_out=1, bias=True, category="head", per="sequence")
    return encoder(c, embeddings(c, d), encoder_layer(c), heads)


@family("electra")
def electra(c: Config) -> Block:
    """BERT with narrow embeddings, without a pooler; pre-training detects replaced tokens (ElectraForPreTraining)."""
    return encoder(c, narrow_embeddings(c, c.embedding_size), encoder_layer(c), electra_heads(c))


@family("layoutlm")
def layoutlm(c: Config) -> Block:
    """BERT with tables for the position of a token on the page, and a pooler in every class (LayoutLMForMaskedLM)."""
    place = Embedding(rows=c.max_2d_position_embeddings, width=c.hidden_size)
    places = {f"{axis}_positions": place for axis in ("x", "y", "height", "width")}
    heads = encoder_heads(c, c.hidden_size, pooled=ALL_HEADS)
    return encoder(c, embeddings(c, c.hidden_size) | places, encoder_layer(c), heads)


@family("roformer")
def roformer(c: Config) -> Block:
    """BERT with rotary positions stored as a table of head width, without a pooler (RoFormerForMaskedLM)."""
    width = c.embedding_size or c.hidden_size
    table = Embedding(rows=c.max_position_embeddings, width=equal_heads(c))
    before = narrow_embeddings(c, width, rows=0) | {"positions": table}
    heads = encoder_heads(c, width, pooled=(), transformed=("sequence_classification",), answers=2)
    return encoder(c, before, encoder_layer(c), summary_projection(c) | heads)


@family("tapas")
def tapas(c: Config) -> Block:
    """BERT with seven tables for the position of a token in a table, and cell selection heads (TapasForMaskedLM)."""
    d, sizes = c.hidden_size, c.layer_indices("type_vocab_sizes") or [3, 256, 256, 2, 256, 256, 10]
    places = {f"token_types_{i}": Embedding(rows=rows, width=d) for i, rows in enumerate(sizes)}
    if c.head == "question_answering":
        scores = {name: Param(shape=shape, category="head") for name, shape in (("weight", (d,)), ("bias", ()))}
        cells: Component = block(cells=block(**scores), columns=block(**scores))
        heads = {"pooler": dense_head(c, d), "cell_selection": cells}
        if c.num_aggregation_labels:
            heads["aggregation"] = dense_head(c, c.num_aggregation_labels)
    else:
        heads = encoder_heads(c, d)
    return encoder(c, embeddings(c, d, types=False) | places, encoder_layer(c), heads)


@family("xmod")
def xmod(c: Config) -> Block:
    """RoBERTa with an adapter for each language in each layer, all counted as active (XmodForMaskedLM)."""
    d, first = c.hidden_size, c.pre_norm
    adapter = Mlp(width=d, hidden=d // c.adapter_reduction_factor, gated=False, bias=True)
    languages = block("ffn", **{str(language): adapter for language in c.raw("languages") or ["en_XX"]})
    norm = layer_norm(c) if c.adapter_layer_norm else None
    layer = block(**encoder_layer(c, norm_first=first).items, adapter_norm=norm, adapters=languages)
    after = {"norm": layer_norm(c)} if first else {}
    return encoder(c, embeddings(c, d), layer, roberta_heads(c), **after)


@family("luke")
def luke(c: Config) -> Block:
    """RoBERTa with entities as input, and queries for each pair of word and entity (LukeForMaskedLM)."""
    d, width = c.hidden_size, c.entity_emb_size
    query = Linear(d_in=d, d_out=d, bias=True, per="never")  # a forward pass without entities
    aware = c.use_entity_aware_attention
    attn = mha(c, inner=block(w2e_q_proj=query, e2w_q_proj=query, e2e_q_proj=query) if aware else None)
    tables = embeddings(c, d)
    entities: dict[str, Component] = {"embed_entities": Embedding(rows=c.entity_vocab_size, width=width)}
    if width != d:
        entities["embed_proj"] = projected(c, width, bias=False)["embed_proj"].replace(per="never")
    tables["entities"] = block(**entities, **{name: part for name, part in tables.items() if name != "embed_tokens"})
    return encoder(c, tables, encoder_layer(c, attn=attn), luke_heads(c))


def luke_heads(c: Config) -> dict[str, Component]:
    """Words are predicted by a separate matrix, entities by their table; classifiers of one, two or three vectors."""
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
