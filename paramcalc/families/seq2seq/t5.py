"""T5 and its relatives: RMS norms first, relative position buckets, heads of any width."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import rms
from paramcalc.families.builders.t5 import first_and_rest, t5_buckets, t5_encoder_decoder, t5_layer, t5_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, Stack, stack
from paramcalc.tree.leaves import Param


@family("t5", unstated_depth=6, can_untie=False)
@family("mt5", unstated_depth=8, can_untie=False)
def t5(c: Config) -> Block:
    """Pre-norm encoder and decoder, relative position buckets in each stack's first layer (T5ForConditionalGeneration).

    With tie_word_embeddings false (T5 1.1, Flan-T5) published checkpoints hold a separate head; transformers 5 forces
    the tie.
    """
    return t5_encoder_decoder(c)


@family("umt5", unstated_depth=8, can_untie=False)
def umt5(c: Config) -> Block:
    """T5 with relative position buckets in every layer (UMT5ForConditionalGeneration)."""
    return t5_model(c, lambda role, depth: stack(role, Run(depth, t5_layer(c, role, buckets=t5_buckets(c)))))


@family("longt5", unstated_depth=6, can_untie=False)
def longt5(c: Config) -> Block:
    """T5 with a sliding window in the encoder, and optional summaries of blocks (LongT5ForConditionalGeneration)."""
    kind = c.encoder_attention_type
    c.require(kind in ("local", "transient-global"), f"encoder_attention_type {kind!r} is not known")

    def stack_of(role: str, depth: int) -> Stack:
        if role == "decoder":
            return first_and_rest(t5_layer(c, role, buckets=t5_buckets(c)), t5_layer(c, role), depth, role)
        beside: dict[str, Component] = {"global_norm": rms(c)}
        bias = {"global_bias": Param(shape=(t5_buckets(c), c.num_attention_heads), category="attention")}
        first, rest = (beside | bias, beside) if kind == "transient-global" else ({}, {})
        window = 2 * c.local_radius + 1
        why = "blocks with their neighbours are counted as windows"
        biased = t5_layer(c, role, buckets=t5_buckets(c), window=window, beside=first).replace(inexact=why)
        return first_and_rest(biased, t5_layer(c, role, window=window, beside=rest).replace(inexact=why), depth, role)

    return t5_model(c, stack_of)
