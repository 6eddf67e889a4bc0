"""DeBERTa: separate attention to content and to relative positions."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, mha, with_options
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder import CLASSIFIED, embeddings, encoder_layer, projected
from paramcalc.families.builders.heads import dense_head, encoder_heads, num_labels
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Conv1d, Embedding, Linear, Param, Product


@family("deberta")
def deberta(c: Config) -> Block:
    """BERT with separate attention to content and relative position (DebertaForMaskedLM, 2006.03654)."""
    d, h, words = c.hidden_size, c.num_attention_heads, position_attention_types(c)
    mixing, talking = (
        Linear(d_in=h, d_out=h, per="pair"),
        c.raw("talking_head"),
    )  # any truthy value counts as true
    positions = block(
        pos_proj=Linear(d_in=d, d_out=d) if "c2p" in words else None,
        pos_q_proj=Linear(d_in=d, d_out=d, bias=True) if "p2c" in words else None,
        logits_mixing=mixing if talking else None,
        weights_mixing=mixing if talking else None,
    )
    attn = mha(c, inner=positions if positions.items else None, k_bias=False)
    rows = positive_or_none(c, "max_relative_positions") or c.max_position_embeddings
    relative = Embedding(rows=2 * rows, width=d) if c.relative_attention else None
    layer = encoder_layer(c, attn=attn)
    if words:
        layer = layer.replace(
            inexact="scores of relative positions are not counted, their projections as if for tokens"
        )
    return deberta_encoder(c, layer, relative)


POSITION_SCORES = ("c2p", "p2c")  # the third kind in files, p2p, has no matrices


@family("deberta-v2")
def deberta_v2(c: Config) -> Block:
    """DeBERTa with buckets, shared position keys and a convolution next to the first layer (DebertaV2ForMaskedLM)."""
    d, words, h = c.hidden_size, position_attention_types(c), c.num_attention_heads
    d_h = c.attention_head_size or equal_heads(c)
    size = (
        positive_or_none(c, "position_buckets")
        or positive_or_none(c, "max_relative_positions")
        or c.max_position_embeddings
    )
    proj = Linear(d_in=d, d_out=h * d_h, bias=True, per="never")  # of the position table, once for all tokens
    own = [] if c.share_att_key else words
    table = Product(flops=2 * 2 * size * d * h * d_h, per="call")
    scores = Product(flops=2 * h * d_h * 2 * size, term="attention")
    tables = POSITION_SCORES if c.share_att_key and c.relative_attention else words
    positions = block(
        pos_k_proj=proj if "c2p" in own else None,
        pos_q_proj=proj if "p2c" in own else None,
        **{f"{word}_table": table for word in tables if word in POSITION_SCORES},
        **{f"{word}_scores": scores for word in words if word in POSITION_SCORES},
    )
    attn = with_options(mha(c, inner=positions if positions.items else None), head_dim=d_h, out_in=d)
    relative = Embedding(rows=2 * size, width=d) if c.relative_attention else None
    normed = "layer_norm" in [word.strip() for word in c.norm_rel_ebd.lower().split("|")]
    conv = None
    if c.conv_kernel_size:
        c.require(d % c.conv_groups == 0, f"hidden_size ({d}) is not divisible by conv_groups ({c.conv_groups})")
        per_group = d if c.conv_groups == 1 else d // c.conv_groups
        conv = block(conv=Conv1d(channels=d, kernel=c.conv_kernel_size, per_group=per_group), norm=layer_norm(c))
    return deberta_encoder(c, encoder_layer(c, attn=attn), relative, layer_norm(c) if normed else None, conv)


def deberta_encoder(
    c: Config, layer: Block, relative: Component | None, norm: Component | None = None, conv: Component | None = None
) -> Block:
    """Embeddings with or without absolute positions, layers with relative ones, and BERT's or DeBERTa's head."""
    d, width = c.hidden_size, c.embedding_size or c.hidden_size
    rows = None if c.position_biased_input else 0
    tables = embeddings(c, width, rows=rows, norm=False) | (projected(c, width, bias=False) if width != d else {})
    own = block(
        transform=dense_head(c, d),
        norm=layer_norm(c),
        bias=Param(shape=(c.vocab_size,), category="head"),
        table=Product(flops=2 * width * c.vocab_size),
    )
    heads = encoder_heads(c, width, lm_head=None if c.legacy else own, pooled=())
    if c.head in CLASSIFIED:
        pooled = c.pooler_hidden_size or d
        outputs = 1 if c.head == "multiple_choice" else num_labels(c)
        heads = {
            "pooler": Linear(d_in=pooled, d_out=pooled, bias=True, category="head"),
            "classifier": dense_head(c, outputs),
        }
    return block(
        **tables,
        embed_norm=layer_norm(c),
        relative_positions=relative,
        relative_norm=norm,
        conv=conv,
        layers=stack("encoder", Run(c.num_hidden_layers, layer)),
        **heads,
    )


def position_attention_types(c: Config) -> list[str]:
    """The kinds of relative attention: c2p, p2c; a list, or words joined by a bar. Empty without relative attention."""
    stated = c.raw("pos_att_type") or []
    words = [word.strip() for word in stated.lower().split("|")] if isinstance(stated, str) else list(stated)
    c.require(set(words) <= {"c2p", "p2c", "p2p", ""}, f"pos_att_type {stated!r} is not known", "known: c2p, p2c")
    return words if c.relative_attention else []


def positive_or_none(c: Config, name: str) -> int | None:
    """A size, or None if the file omits it or states less than one."""
    value = c.raw(name)
    return (
        None
        if value is None or (type(value) is int and value < 1)
        else symbolic(name, c.size(name, value), origin=c.key(name))
    )
