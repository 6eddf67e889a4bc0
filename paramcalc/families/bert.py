"""BERT and its kin: post-norm encoders with learned positions, and the heads their classes put on top."""

from __future__ import annotations

from itertools import pairwise

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Attention, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, mha, sized_attention
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder import embeddings, encoder, encoder_layer, narrow_embeddings, projected
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import (
    ALL_HEADS,
    dense_head,
    electra_heads,
    encoder_heads,
    lm_head,
    masked_lm_head,
    num_labels,
    roberta_heads,
    summary_projection,
)
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block
from paramcalc.tree.leaves import Conv1d, Embedding, Linear, Param, Product

# -- BERT with another table or another head ---------------------------------------------------------------------


@family("bert")
def bert(c: Config) -> Block:
    """Post-norm encoder: learned positions and segments, pooler or MLM head by class (BertForMaskedLM)."""
    return encoder(c, embeddings(c, c.hidden_size), encoder_layer(c), encoder_heads(c, c.hidden_size))


@family("dpr")
def dpr(c: Config) -> Block:
    """BERT without a pooler for questions or passages, or one that marks answers (DPRQuestionEncoder, 2004.04906)."""
    d, narrow = c.hidden_size, c.projection_dim
    heads: dict[str, Component] = {"encode_proj": dense_head(c, narrow, per="sequence")} if narrow else {}
    if c.head == "question_answering":
        width = narrow or d
        heads["qa_outputs"] = Linear(d_in=width, d_out=2, bias=True, category="head")
        heads["qa_classifier"] = Linear(d_in=width, d_out=1, bias=True, category="head", per="sequence")
    return encoder(c, embeddings(c, d), encoder_layer(c), heads)


@family("roberta", "camembert", "data2vec-text", "xlm-roberta")
def roberta(c: Config) -> Block:
    """BERT whose classifiers replace the pooler by a dense layer of their own (RobertaForMaskedLM)."""
    return encoder(c, embeddings(c, c.hidden_size), encoder_layer(c), roberta_heads(c))


@family("megatron-bert")
def megatron_bert(c: Config) -> Block:
    """BERT with the norms first: none after the embeddings, one after the layers (MegatronBertForMaskedLM)."""
    before, heads = embeddings(c, c.hidden_size, norm=False), encoder_heads(c, c.hidden_size)
    return encoder(c, before, encoder_layer(c, norm_first=True), heads, norm=layer_norm(c))


@family("roberta-prelayernorm", embed_norm=True)
@family("xlm-roberta-xl", embed_norm=False)
def roberta_prelayernorm(c: Config) -> Block:
    """RoBERTa with the norms first, perhaps one after the embeddings too (RobertaPreLayerNormForMaskedLM)."""
    before = embeddings(c, c.hidden_size, norm=c.embed_norm)
    return encoder(c, before, encoder_layer(c, norm_first=True), roberta_heads(c), norm=layer_norm(c))


@family("bert-generation")
def bert_generation(c: Config) -> Block:
    """BERT without segments and pooler, and a decoder's plain head (BertGenerationDecoder)."""
    heads: dict[str, Component] = {}
    if c.head == "lm":
        heads["lm_head"] = lm_head(c, c.hidden_size, owner="embed_tokens", bias=True)
        if not c.tie_word_embeddings:
            heads["spare_bias"] = Param(shape=(c.vocab_size,), category="head")
    return encoder(c, embeddings(c, c.hidden_size, types=False), encoder_layer(c), heads)


@family("big_bird")
def big_bird(c: Config) -> Block:
    """BERT with sparse attention, a pooler in every class, an FFN before the answers (BigBirdForMaskedLM)."""
    heads = encoder_heads(c, c.hidden_size, pooled=ALL_HEADS[:-1], transformed=("sequence_classification",), answers=2)
    if c.head == "question_answering":
        heads = {"answer_ffn": mlp(c, c.intermediate_size), "answer_norm": layer_norm(c), **heads}
    layer = encoder_layer(c, attn=mha(c, qkv_bias=c.use_bias)).replace(
        inexact="blocks of sparse attention are counted as full attention"
    )
    return encoder(c, embeddings(c, c.hidden_size), layer, heads)


@family("ernie")
def ernie(c: Config) -> Block:
    """BERT with a table of tasks where the file asks for it (ErnieForMaskedLM)."""
    tasks = {"tasks": Embedding(rows=c.task_type_vocab_size, width=c.hidden_size)} if c.use_task_id else {}
    return encoder(c, embeddings(c, c.hidden_size) | tasks, encoder_layer(c), encoder_heads(c, c.hidden_size))


@family("layoutlm")
def layoutlm(c: Config) -> Block:
    """BERT with tables for a token's place on the page, and a pooler in every class (LayoutLMForMaskedLM)."""
    place = Embedding(rows=c.max_2d_position_embeddings, width=c.hidden_size)
    places = {f"{axis}_positions": place for axis in ("x", "y", "height", "width")}
    heads = encoder_heads(c, c.hidden_size, pooled=ALL_HEADS)
    return encoder(c, embeddings(c, c.hidden_size) | places, encoder_layer(c), heads)


@family("tapas")
def tapas(c: Config) -> Block:
    """BERT with seven tables of a token's place in a table, and heads that pick cells (TapasForMaskedLM)."""
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


@family("roc_bert")
def roc_bert(c: Config) -> Block:
    """BERT that also sees how a character sounds and looks (RoCBertForMaskedLM)."""
    d, sounds, looks = c.hidden_size, c.pronunciation_embed_dim, c.shape_embed_dim
    tables: dict[str, Component] = {
        "pronunciations": Embedding(rows=c.pronunciation_vocab_size, width=sounds),
        "shapes": Embedding(rows=c.shape_vocab_size, width=looks),
    }
    if c.concat_input:
        seen = d + (sounds if c.enable_pronunciation else 0) + (looks if c.enable_shape else 0)
        tables["map_inputs"] = Linear(d_in=seen, d_out=d, bias=True, category="embedding")
    heads = encoder_heads(c, d, pretraining={"lm_head": masked_lm_head(c, d)})
    return encoder(c, embeddings(c, d) | tables, encoder_layer(c), heads)


@family("xmod")
def xmod(c: Config) -> Block:
    """RoBERTa with an adapter for each language in each layer, all of them counted as used (XmodForMaskedLM)."""
    d, first = c.hidden_size, c.pre_norm
    adapter = Mlp(width=d, hidden=d // c.adapter_reduction_factor, gated=False, bias=True)
    languages = block("ffn", **{str(language): adapter for language in c.raw("languages") or ["en_XX"]})
    norm = layer_norm(c) if c.adapter_layer_norm else None
    layer = block(**encoder_layer(c, norm_first=first).items, adapter_norm=norm, adapters=languages)
    after = {"norm": layer_norm(c)} if first else {}
    return encoder(c, embeddings(c, d), layer, roberta_heads(c), **after)


@family("ibert")
def ibert(c: Config) -> Block:
    """RoBERTa with integer copies of its matrices as buffers (IBertForMaskedLM, 2101.01321)."""
    tables, layer = embeddings(c, c.hidden_size), encoder_layer(c)
    matrices = [w for name in ("attn", "ffn") for w in layer.items[name].weights()]
    scales = sum(w.shape[0] for w in matrices if len(w.shape) == 2)
    rows = sum(w.elements for name in ("embed_tokens", "positions", "token_types") for w in tables[name].weights())
    # Beside the copies: a scale per output or table, three values per activation (14 and 4), a shift per norm.
    in_layer = Param(shape=(sum(w.elements for w in matrices) + scales + 14 * 3 + 2,), buffer=True)
    in_tables = Param(shape=(rows + 3 + 4 * 3 + 1,), buffer=True)
    return encoder(c, tables | {"integers": in_tables}, block(**layer.items, integers=in_layer), roberta_heads(c))


# -- narrow embeddings -------------------------------------------------------------------------------------------


@family("electra")
def electra(c: Config) -> Block:
    """BERT with narrow embeddings, without a pooler; pre-training tells replaced tokens (ElectraForPreTraining)."""
    return encoder(c, narrow_embeddings(c, c.embedding_size), encoder_layer(c), electra_heads(c))


@family("convbert")
def convbert(c: Config) -> Block:
    """ELECTRA where half the heads are dynamic convolutions (ConvBertForMaskedLM, 2008.02496)."""
    d, g = c.hidden_size, c.num_groups
    c.require(d % g == 0 == c.intermediate_size % g, f"num_groups ({g}) does not divide the widths of the FFN")
    ffn = Mlp(width=d, hidden=c.intermediate_size, gated=False, bias=True, groups=(g, g))
    layer = encoder_layer(c, attn=span_attention(c), ffn=ffn)
    return encoder(c, narrow_embeddings(c, c.embedding_size), layer, electra_heads(c))


def span_attention(c: Config) -> Attention:
    """Fewer heads of half the width; a span-based dynamic convolution does the rest."""
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


@family("roformer")
def roformer(c: Config) -> Block:
    """BERT with rotary positions, kept as a table of the width of a head, without a pooler (RoFormerForMaskedLM)."""
    width = c.embedding_size or c.hidden_size
    table = Embedding(rows=c.max_position_embeddings, width=equal_heads(c))
    before = narrow_embeddings(c, width, rows=0) | {"positions": table}
    heads = encoder_heads(c, width, pooled=(), transformed=("sequence_classification",), answers=2)
    return encoder(c, before, encoder_layer(c), summary_projection(c) | heads)


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
    """BERT with narrow embeddings and a few layers that are passed through again and again (AlbertForMaskedLM)."""
    groups, depth, layer, inner = c.num_hidden_groups, c.num_hidden_layers, encoder_layer(c), c.inner_group_num
    group = layer if inner == 1 else block(**{f"layer_{i}": layer for i in range(inner)})
    runs = [Run(1, group, passes=passes) for passes in group_passes(depth, groups)]
    before = embeddings(c, c.embedding_size) | projected(c, c.embedding_size)
    heads = encoder_heads(c, c.embedding_size)
    if c.head == "pretraining":  # AlbertForPreTraining asks for num_labels orders of two sentences, BERT always for 2
        heads["next_sentence"] = dense_head(c, num_labels(c))
    return encoder(c, before, runs, heads)


def group_passes(depth: int, groups: int) -> list[int]:
    """How many of the `depth` steps use each group: step i uses group floor(i / (depth / groups))."""
    firsts = [-(-group * int(depth) // groups) for group in range(groups + 1)]
    return [after - first for first, after in pairwise(firsts)]
