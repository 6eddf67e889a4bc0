"""T5Gemma: Gemma's layers as encoder and decoder, each with sizes of its own."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, with_options
from paramcalc.families.builders.decoder import rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.heads import num_labels, unknown_head
from paramcalc.families.builders.layer_types import FULL, SLIDING, attention_types, every
from paramcalc.families.builders.projectors import gemma3_projector
from paramcalc.families.builders.towers import vision_tower
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Stack, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm


def t5gemma_stack(side: Config, role: str, *, period: int, qk_norm: bool, kv_width: int | None = None) -> Stack:
    """Gemma's layers with a norm before and after each sublayer; cross attention to an encoder of `kv_width`."""
    norm, bias = rms(side), side.attention_bias
    per_head = Norm(width=side.head_dim) if qk_norm else None

    def one(window: int | None) -> Block:
        attn = gqa(side, bias=bias, qk_norm=per_head, window=window)
        cross = with_options(attn, source="cross", window=None, kv_width=kv_width)
        attn = with_options(attn, source="joint") if role == "decoder" and kv_width is None else attn
        steps = {"attn": attn} | ({"cross_attn": cross} if kv_width else {}) | {"ffn": glu(side)}
        return block(
            **{
                name: part
                for key, step in steps.items()
                for name, part in ((f"pre_{key}_norm", norm), (key, step), (f"post_{key}_norm", norm))
            }
        )

    layers = {FULL: one(None), SLIDING: one(side.sliding_window)}
    words = attention_types(side, every(period, FULL, otherwise=SLIDING, layers=side.num_hidden_layers))
    return stack(role, [layers[word] for word in words])


def t5gemma_head(c: Config, side: Config, owner: str) -> dict[str, Component]:
    """An LM head over the vocabulary of `side`, or a linear classifier."""
    d = side.hidden_size
    match c.head:
        case "seq2seq_lm":
            tied_to = owner if c.tie_word_embeddings else None
            return {"lm_head": Linear(d_in=d, d_out=side.vocab_size, category="head", tied_to=tied_to)}
        case "sequence_classification" | "token_classification":
            return {"score": Linear(d_in=d, d_out=num_labels(c), bias=True, category="head")}
        case "none" | "encoder":
            return {}
    raise unknown_head(c)


@family("t5gemma")
def t5gemma(c: Config) -> Block:
    """Gemma 2 as encoder and decoder, of sizes of their own (T5GemmaForConditionalGeneration)."""
    one = c.section("encoder")
    table = Embedding(rows=one.vocab_size, width=one.hidden_size)
    encoder = block(embed_tokens=table, layers=t5gemma_stack(one, "encoder", period=2, qk_norm=False), norm=rms(one))
    two = c.section("decoder")
    if c.head == "encoder" or (c.head != "seq2seq_lm" and not c.is_encoder_decoder):
        return block(encoder=encoder, **t5gemma_head(c, one, ""))
    table = Embedding(rows=two.vocab_size, width=two.hidden_size)
    layers = t5gemma_stack(two, "decoder", period=2, qk_norm=False, kv_width=one.hidden_size)
    decoder = block(embed_tokens=table, layers=layers, norm=rms(two))
    return block(encoder=encoder, decoder=decoder, **t5gemma_head(c, two, "decoder.embed_tokens"))


@family("t5gemma2")
def t5gemma2(c: Config) -> Block:
    """Gemma 3 as encoder and decoder, with a vision tower in the encoder (T5Gemma2ForConditionalGeneration)."""
    outer = c.section("encoder")
    one = outer.section("text_config")
    two = c.section("decoder")
    vision, v = vision_tower(outer, any_kind=True)
    c.require(
        (one.hidden_size, one.vocab_size) == (two.hidden_size, two.vocab_size),
        "encoder and decoder must have the same hidden_size and vocab_size",
    )
    owner, end = "encoder.embed_tokens", Embedding(rows=1, width=one.hidden_size)
    tied = c.tie_word_embeddings
    table = Embedding(rows=one.vocab_size, width=one.hidden_size)
    sides = {
        role: t5gemma_stack(side, role, period=side.sliding_window_pattern, qk_norm=True)
        for role, side in (("encoder", one), ("decoder", two))
    }
    encoder = block(
        vision_tower=vision,
        projector=gemma3_projector(v, one.hidden_size),
        embed_tokens=table,
        end_of_image=end,
        layers=sides["encoder"],
        norm=rms(one),
    )
    decoder = block(
        embed_tokens=table.replace(tied_to=owner if tied else None),
        end_of_image=end.replace(tied_to="encoder.end_of_image" if tied else None),
        layers=sides["decoder"],
        norm=rms(two),
    )
    return block(encoder=encoder, decoder=decoder, **t5gemma_head(c, two, owner))
