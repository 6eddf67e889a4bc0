"""BERT made smaller or faster: bottlenecks, grouped convolutions, integer weights."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import GroupedAttention, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, sized_attention
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder import embeddings, encoder, encoder_layer
from paramcalc.families.builders.heads import ALL_HEADS, encoder_heads, lm_head, masked_lm_head, roberta_heads
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("mobilebert")
def mobilebert(c: Config) -> Block:
    """A thin BERT: layers in a bottleneck, each with several small FFNs (MobileBertForMaskedLM, 2004.02984)."""
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
    """Projection to the bottleneck, attention, FFNs with a norm each, projection back. The inner width is optional."""
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
    """The output matrix: its narrow part is the embedding, the rest belongs to the head."""
    d, narrow, head = c.hidden_size, c.embedding_size, masked_lm_head(c, c.hidden_size)
    decoder = lm_head(c, narrow, owner="embed_tokens", bias=True)
    rest = Linear(d_in=c.vocab_size, d_out=d - narrow, category="head")
    return block(**head.items | {"rest": rest, "decoder": decoder})


@family("squeezebert")
def squeezebert(c: Config) -> Block:
    """BERT with grouped convolutions, and a pooler in every class (SqueezeBertForMaskedLM)."""
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


@family("ibert")
def ibert(c: Config) -> Block:
    """RoBERTa with integer copies of its matrices as buffers (IBertForMaskedLM, 2101.01321)."""
    tables, layer = embeddings(c, c.hidden_size), encoder_layer(c)
    matrices = [w for name in ("attn", "ffn") for w in layer.items[name].weights()]
    scales = sum(w.shape[0] for w in matrices if len(w.shape) == 2)
    rows = sum(w.elements for name in ("embed_tokens", "positions", "token_types") for w in tables[name].weights())
    # Besides the copies: a scale per output or table, three values per activation (14 and 4), a shift per norm.
    in_layer = Param(shape=(sum(w.elements for w in matrices) + scales + 14 * 3 + 2,), buffer=True)
    in_tables = Param(shape=(rows + 3 + 4 * 3 + 1,), buffer=True)
    return encoder(c, tables | {"integers": in_tables}, block(**layer.items, integers=in_layer), roberta_heads(c))
