"""Encoder-decoder models: T5 with relative positions and RMS norms, BART with learned positions and LayerNorms."""

from __future__ import annotations

from paramcalc.components import Attention, Mlp
from paramcalc.components.attention import Kind
from paramcalc.config import Config
from paramcalc.families.heads import classifier, lm_head, unknown_head
from paramcalc.families.registry import family
from paramcalc.families.skeletons import rms
from paramcalc.spec import Block, Component, Embedding, Norm, Param, Run, block, stack

# -- T5 ----------------------------------------------------------------------------------------------------------


T5_DEPTH = 6


@family(
    "t5",
    "T5ForConditionalGeneration",
    names=dict(
        hidden_size="d_model",
        num_attention_heads="num_heads",
        num_hidden_layers="num_layers",
        head_dim="d_kv",
    ),
    defaults=dict(
        vocab_size=32128,
        hidden_size=512,
        d_ff=2048,
        num_hidden_layers=T5_DEPTH,
        num_decoder_layers=None,
        num_attention_heads=8,
        head_dim=64,
        relative_attention_num_buckets=32,
        feed_forward_proj="relu",
        is_gated_act=False,
        tie_word_embeddings=True,
    ),
)
def t5(c: Config) -> Block:
    """Pre-norm encoder and decoder, relative position buckets in each stack's first layer (T5ForConditionalGeneration).

    With tie_word_embeddings false (T5 1.1, Flan-T5) published checkpoints hold a head of their own; transformers 5
    ties it by force.
    """
    table = Embedding(rows=c.vocab_size, width=c.hidden_size)
    shared = Embedding(rows=c.vocab_size, width=c.hidden_size, tied_to="shared")
    encoder = block(embed_tokens=shared, layers=t5_stack(c, "encoder", c.num_hidden_layers), norm=rms(c))
    if c.head in ("encoder", "token_classification"):
        head = classifier(c, transform=False) if c.head == "token_classification" else {}
        return block(shared=table, encoder=encoder, **head)
    # The class derives an unstated depth from num_layers alone, before it hears of num_hidden_layers.
    symmetric = c.num_hidden_layers if c.key("num_hidden_layers") == "num_layers" else T5_DEPTH
    depth = symmetric if c.num_decoder_layers is None else c.num_decoder_layers
    decoder = block(embed_tokens=shared, layers=t5_stack(c, "decoder", depth), norm=rms(c))
    return block(shared=table, encoder=encoder, decoder=decoder, **t5_head(c))


def t5_head(c: Config) -> dict[str, Component]:
    """The head of the classes that have a decoder."""
    match c.head:
        case "seq2seq_lm":
            if not c.tie_word_embeddings:
                c.doubts.append(
                    f"{c.family}: tie_word_embeddings is false: the head is counted as a matrix of its own, as in "
                    "published checkpoints and transformers 4; transformers 5 ties it by force and counts "
                    f"{c.vocab_size * c.hidden_size:,} fewer"
                )
            return {"lm_head": lm_head(c, c.hidden_size, owner="shared")}
        case "sequence_classification":
            return classifier(c, transform=True)
        case "question_answering":
            return classifier(c, transform=False)
        case "none":
            return {}
    raise unknown_head(c)


def t5_stack(c: Config, role: str, depth: int) -> Component:
    """Layers of which only the first holds the relative position buckets."""
    gated = c.is_gated_act if c.says("is_gated_act") else c.feed_forward_proj.startswith("gated-")
    ffn = Mlp(width=c.hidden_size, hidden=c.d_ff, gated=gated)

    def layer(buckets: int) -> Block:
        cross = {"cross_norm": rms(c), "cross_attn": t5_attention(c, source="cross")} if role == "decoder" else {}
        return block(attn_norm=rms(c), attn=t5_attention(c, buckets=buckets), **cross, ffn_norm=rms(c), ffn=ffn)

    return stack(role, [Run(1, layer(c.relative_attention_num_buckets)), Run(depth - 1, layer(0))])


def t5_attention(c: Config, *, buckets: int = 0, source: Kind = "self") -> Attention:
    """Multi-head attention with heads of d_kv channels, without biases."""
    h = c.num_attention_heads
    return Attention(
        width=c.hidden_size, heads=h, kv_heads=h, head_dim=c.head_dim, position_buckets=buckets, source=source
    )


# -- BART --------------------------------------------------------------------------------------------------------


@family(
    "bart",
    "BartForConditionalGeneration",
    names=dict(
        hidden_size="d_model", num_attention_heads="encoder_attention_heads", num_hidden_layers="encoder_layers"
    ),
    defaults=dict(
        vocab_size=50265,
        hidden_size=1024,
        num_hidden_layers=12,
        num_attention_heads=16,
        encoder_ffn_dim=4096,
        decoder_layers=12,
        decoder_attention_heads=16,
        decoder_ffn_dim=4096,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
    ),
    # Fields of the original implementation, which the class fixes.
    unused=[
        "add_cross_attention",
        "add_bias_logits",
        "add_final_layer_norm",
        "normalize_before",
        "normalize_embedding",
        "static_position_embeddings",
    ],
)
def bart(c: Config) -> Block:
    """Post-norm encoder and decoder, learned positions with two spare rows (BartForConditionalGeneration)."""
    if c.head == "lm":
        decoder = bart_side(c, "decoder", tied_to=None)
        return block(decoder=decoder, lm_head=lm_head(c, c.hidden_size, owner="decoder.embed_tokens"))
    tied = "shared" if c.tie_word_embeddings else None
    return block(
        shared=Embedding(rows=c.vocab_size, width=c.hidden_size),
        encoder=bart_side(c, "encoder", tied_to=tied),
        decoder=bart_side(c, "decoder", tied_to=tied),
        **bart_head(c),
    )


def bart_side(c: Config, role: str, *, tied_to: str | None) -> Block:
    """Embedding, positions and their norm, then the layers of one stack."""
    d, norm = c.hidden_size, Norm(width=c.hidden_size, bias=True)
    if role == "encoder":
        depth, heads, hidden = c.num_hidden_layers, c.num_attention_heads, c.encoder_ffn_dim
    else:
        depth, heads, hidden = c.decoder_layers, c.decoder_attention_heads, c.decoder_ffn_dim
    c.require(d % heads == 0, f"d_model ({d}) is not divisible by {role}_attention_heads ({heads})")

    def attn(source: Kind) -> Attention:
        return Attention(
            width=d,
            heads=heads,
            kv_heads=heads,
            head_dim=d // heads,
            q_bias=True,
            k_bias=True,
            v_bias=True,
            out_bias=True,
            source=source,
        )

    cross = {"cross_attn": attn("cross"), "cross_norm": norm} if role == "decoder" else {}
    ffn = Mlp(width=d, hidden=hidden, gated=False, bias=True)
    layer = block(attn=attn("self"), attn_norm=norm, **cross, ffn=ffn, ffn_norm=norm)
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=d, tied_to=tied_to),
        positions=Embedding(rows=c.max_position_embeddings + 2, width=d),
        embed_norm=norm,
        layers=stack(role, Run(depth, layer)),
    )


def bart_head(c: Config) -> dict[str, Component]:
    """The LM head with its persistent bias buffer, or a classifier."""
    match c.head:
        case "seq2seq_lm":
            bias = Param(shape=(1, c.vocab_size), buffer=True, category="head")
            return {"lm_head": lm_head(c, c.hidden_size, owner="shared"), "final_logits_bias": bias}
        case "sequence_classification":
            return classifier(c, transform=True)
        case "question_answering":
            return classifier(c, transform=False)
        case "none":
            return {}
    raise unknown_head(c)
