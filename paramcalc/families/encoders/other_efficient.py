"""Encoders for long inputs: sparse, approximated, pooled or latent attention, or none."""

from __future__ import annotations

from paramcalc.components import Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha, sized_attention
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder import CLASSIFIED, embeddings, encoder, encoder_layer, projected
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import (
    ALL_HEADS,
    discriminator,
    encoder_heads,
    lm_head,
    num_labels,
    roberta_heads,
    unknown_head,
)
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Conv1d, Embedding, Linear, Norm, Param


@family("big_bird")
def big_bird(c: Config) -> Block:
    """BERT with sparse attention, a pooler in every class, an FFN before the answer head (BigBirdForMaskedLM)."""
    heads = encoder_heads(c, c.hidden_size, pooled=ALL_HEADS[:-1], transformed=("sequence_classification",), answers=2)
    if c.head == "question_answering":
        heads = {"answer_ffn": mlp(c, c.intermediate_size), "answer_norm": layer_norm(c), **heads}
    layer = encoder_layer(c, attn=mha(c, qkv_bias=c.use_bias)).replace(
        inexact="blocks of sparse attention are counted as full attention"
    )
    return encoder(c, embeddings(c, c.hidden_size), layer, heads)


@family("longformer")
def longformer(c: Config) -> Block:
    """RoBERTa with separate projections for global tokens (LongformerForMaskedLM)."""
    proj = Linear(d_in=c.hidden_size, d_out=c.hidden_size, bias=True)
    attn = mha(c, inner=block(**{f"global_{name}_proj": proj for name in "qkv"}))
    layer = encoder_layer(c, attn=attn).replace(inexact="windows and global tokens are counted as full attention")
    return encoder(c, embeddings(c, c.hidden_size), layer, roberta_heads(c))


APPROXIMATED_ATTENTION = "approximated attention is counted as full attention"


@family("mra")
def mra(c: Config) -> Block:
    """BERT with two spare position rows and approximated attention, without a pooler (MraForMaskedLM)."""
    ids = {"position_ids": Param(shape=(1, c.max_position_embeddings), buffer=True)}
    layer = encoder_layer(c).replace(inexact=APPROXIMATED_ATTENTION)
    return encoder(
        c, embeddings(c, c.hidden_size, rows=c.max_position_embeddings + 2) | ids, layer, heads_without_pooler(c)
    )


@family("nystromformer", "yoso")
def nystromformer(c: Config) -> Block:
    """BERT whose approximated attention adds a convolution of each head's values (NystromformerForMaskedLM)."""
    h, window = c.num_attention_heads, c.conv_kernel_size
    conv = None if window is None else block(conv=Conv1d(channels=h, kernel=window, bias=False))
    layer = encoder_layer(c, attn=mha(c, inner=conv)).replace(inexact=APPROXIMATED_ATTENTION)
    return encoder(c, embeddings(c, c.hidden_size, rows=c.max_position_embeddings + 2), layer, heads_without_pooler(c))


def heads_without_pooler(c: Config) -> dict[str, Component]:
    """Heads without a pooler: classifiers have their own dense layer; question answering has two outputs."""
    return encoder_heads(c, c.hidden_size, pooled=(), transformed=CLASSIFIED, answers=2)


@family("fnet")
def fnet(c: Config) -> Block:
    """BERT with Fourier transforms, which have no weights, instead of attention (FNetForMaskedLM, 2105.03824)."""
    layer = block(mixing_norm=layer_norm(c), ffn=mlp(c, c.intermediate_size), ffn_norm=layer_norm(c))
    before = embeddings(c, c.hidden_size) | projected(c, c.hidden_size)
    return encoder(c, before, layer, encoder_heads(c, c.hidden_size, pooled=ALL_HEADS))


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


# -- Perceiver -------------------------------------------------------------------------------------------------------


@family("perceiver")
def perceiver(c: Config) -> Block:
    """Latents that read bytes once and then attend to themselves many times (PerceiverForMaskedLM, 2107.14795)."""
    d, width, rows = c.d_latents, c.d_model, c.max_position_embeddings
    by_query = c.cross_attention_shape_for_attention
    c.require(by_query in ("q", "kv"), f"cross_attention_shape_for_attention {by_query!r} is not known", "q or kv")
    qk = c.qk_channels or (d if by_query == "q" else width)
    read = perceiver_layer(c, d, width, qk=qk, v=c.v_channels or qk, heads=c.num_cross_attention_heads)
    qk = c.qk_channels or d
    think = perceiver_layer(c, d, None, qk=qk, v=c.v_channels or qk, heads=c.num_self_attention_heads)
    text: dict[str, Component] = {
        "embed_tokens": Embedding(rows=c.vocab_size, width=width),
        "positions": Embedding(rows=rows, width=width),
    }
    return block(
        **({} if c.head == "none" else text),
        latents=Param(shape=(c.num_latents, d), category="embedding"),
        read=read,
        layers=stack("encoder", Run(c.num_self_attends_per_block, think, passes=c.num_blocks)),
        **perceiver_head(c),
    )


def perceiver_layer(
    c: Config, width: int, source: int | None, *, qk: int, v: int, heads: int, widening: int | None = None
) -> Block:
    """Norm, attention to a source of another width or to itself, norm, FFN."""
    c.require(qk % heads == 0 == v % heads, f"{qk} and {v} channels are not divisible by {heads} heads")
    factor = c.self_attention_widening_factor if source is None else c.cross_attention_widening_factor
    kind, out = ("self", v) if source is None else ("cross", width)
    attn = sized_attention(
        width, heads, qk // heads, bias=True, source=kind, value_dim=v // heads, kv_width=source, out_width=out
    )
    norm = Norm(width=width, bias=True)
    ffn = Mlp(width=width, hidden=(widening or factor) * width, gated=False, bias=True)
    source_norm = None if source is None else Norm(width=source, bias=True)
    layer = block(input_norm=norm, source_norm=source_norm, attn=attn, post_norm=norm, ffn=ffn)
    return layer.replace(inexact="latents are counted as if there were one for each token")


def perceiver_head(c: Config) -> dict[str, Component]:
    """Queries, one for each byte or one for the text, that attend to the latents."""
    d, width, rows = c.d_latents, c.d_model, c.max_position_embeddings
    match c.head:
        case "masked_lm":
            queries = Param(shape=(rows, width), category="embedding")
            decode = perceiver_layer(c, width, d, qk=256, v=width, heads=8, widening=1)
            return {"queries": queries, "decode": decode, "byte_bias": Param(shape=(c.vocab_size,), category="head")}
        case "sequence_classification":
            queries = Param(shape=(1, d), category="embedding")
            decode = perceiver_layer(c, d, d, qk=d, v=d, heads=1, widening=1)
            final = Linear(d_in=d, d_out=num_labels(c), bias=True, category="head")
            return {"queries": queries, "decode": decode, "classifier": final}
        case "none":
            return {}
    raise unknown_head(c)
