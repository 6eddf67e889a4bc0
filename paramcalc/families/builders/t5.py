"""Parts of T5 that its relatives share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paramcalc.components import Attention, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import head_dim, sized_attention
from paramcalc.families.builders.decoder import rms
from paramcalc.families.builders.heads import classifier, lm_head, unknown_head
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, LayerPattern, Run, Stack, block, stack
from paramcalc.tree.leaves import Embedding


def t5_encoder_decoder(c: Config) -> Block:
    """T5's encoder and decoder: only the first layer of each holds the position buckets."""
    return t5_model(
        c, lambda role, depth: first_and_rest(t5_layer(c, role, buckets=t5_buckets(c)), t5_layer(c, role), depth, role)
    )


def t5_model(c: Config, stack_of: Callable[[str, int], Stack]) -> Block:
    """Encoder and decoder with one token table and a head; the encoder alone for classes without a decoder."""
    tied_to = None if c.can_untie and not c.tie_word_embeddings else "shared"
    table = Embedding(rows=c.vocab_size, width=c.hidden_size)
    shared = Embedding(rows=c.vocab_size, width=c.hidden_size, tied_to=tied_to)
    encoder = block(embed_tokens=shared, layers=stack_of("encoder", c.num_hidden_layers), norm=rms(c))
    if c.head in ("encoder", "token_classification"):
        if c.raw("is_decoder"):
            c.doubts.append(f"{c.family}: is_decoder gives {c.architecture} cross attention, which is not counted")
        head = classifier(c, transform=False) if c.head == "token_classification" else {}
        return block(shared=table, encoder=encoder, **head)
    # The class derives the default depth from num_layers alone, before it sets num_hidden_layers.
    symmetric = c.num_hidden_layers if c.key("num_hidden_layers") == "num_layers" else c.unstated_depth
    depth = symmetric if c.num_decoder_layers is None else c.num_decoder_layers
    decoder = block(embed_tokens=shared, layers=stack_of("decoder", depth), norm=rms(c))
    return block(shared=table, encoder=encoder, decoder=decoder, **t5_head(c))


def t5_head(c: Config) -> dict[str, Component]:
    """The head of the classes with a decoder."""
    match c.head:
        case "seq2seq_lm":
            if not c.tie_word_embeddings and not c.can_untie:
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


def t5_buckets(c: Config) -> int:
    """The number of buckets of relative positions."""
    return c.relative_attention_num_buckets  # type: ignore[no-any-return]  # fields are Any


def first_and_rest(first: Component, rest: Component, depth: int, role: str) -> Stack:
    """A stack whose first layer differs from the rest."""
    return stack(role, LayerPattern((Run(1, first), Run(depth - 1, rest)), (0, 1)))


def t5_layer(
    c: Config,
    role: str,
    *,
    buckets: int = 0,
    window: int | None = None,
    beside: Mapping[str, Component] | None = None,
    ffn: Component | None = None,
) -> Block:
    """Attention, cross attention in a decoder, FFN; each behind its norm. `beside`: more parts of the attention."""
    cross = {"cross_norm": rms(c), "cross_attn": t5_attention(c, source="cross")} if role == "decoder" else {}
    return block(
        attn_norm=rms(c),
        **(beside or {}),
        attn=t5_attention(c, position_buckets=buckets, window=window),
        **cross,
        ffn_norm=rms(c),
        ffn=t5_ffn(c) if ffn is None else ffn,
    )


def t5_ffn(c: Config) -> Mlp:
    """A plain or gated FFN, as feed_forward_proj says."""
    gated = c.feed_forward_proj.startswith("gated-") if not c.has("is_gated_act") else c.is_gated_act
    return Mlp(width=c.hidden_size, hidden=c.d_ff, gated=gated)


def t5_attention(c: Config, **options: Any) -> Attention:
    """Multi-head attention with heads of d_kv channels, without biases."""
    return sized_attention(c.hidden_size, c.num_attention_heads, head_dim(c), **options)
