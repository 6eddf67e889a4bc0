"""Models that hear or make music: Whisper, and MusicGen's decoder."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import with_options
from paramcalc.families.builders.audio_language import WHISPER_LAYOUT
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder_decoder import BartLayout, bart_layer, bart_stack, spectrogram_encoder
from paramcalc.families.builders.heads import lm_head, num_labels, unknown_head
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Param

# -- Whisper -----------------------------------------------------------------------------------------------------


@family("whisper")
def whisper(c: Config) -> Block:
    """Pre-norm encoder over a spectrogram, decoder over text; keys have no bias (WhisperForConditionalGeneration)."""
    if c.head == "audio_classification":
        return block(encoder=spectrogram_encoder(c, WHISPER_LAYOUT), **audio_classifier(c))
    if c.head not in ("seq2seq_lm", "lm", "none"):
        raise unknown_head(c)
    return block(
        encoder=None if c.head == "lm" else spectrogram_encoder(c, WHISPER_LAYOUT),
        decoder=bart_stack(
            c, "decoder", WHISPER_LAYOUT, layers=whisper_decoder_layer(c), owner=None, positions=c.max_target_positions
        ),
        lm_head=None if c.head == "none" else lm_head(c, c.hidden_size, owner="decoder.embed_tokens"),
    )


def whisper_decoder_layer(c: Config) -> Block:
    """A decoder's layer, which attends to as many frames whatever is said: sound is cut or padded to 30 seconds."""
    one = bart_layer(c, "decoder", WHISPER_LAYOUT)
    return block(
        **{**one.items, "cross_attn": with_options(one.items["cross_attn"], source_tokens=c.max_source_positions)}
    )


def audio_classifier(c: Config) -> dict[str, Component]:
    """A narrow classifier over the encoder, perhaps over a weighted sum of all its layers."""
    narrow = c.classifier_proj_size
    weights = {"layer_weights": Param(shape=(c.encoder_layers + 1,), category="head")}
    return (weights if c.use_weighted_layer_sum else {}) | {
        "projector": Linear(d_in=c.hidden_size, d_out=narrow, bias=True, category="head"),
        "classifier": Linear(d_in=narrow, d_out=num_labels(c), bias=True, category="head"),
    }


# -- MusicGen ----------------------------------------------------------------------------------------------------


@family("musicgen_decoder", has_cross_attention=True)
@family("musicgen_melody_decoder", has_cross_attention=False)
def musicgen_decoder(c: Config) -> Block:
    """Pre-norm decoder over several codebooks, each with a token table and a head of its own (MusicgenForCausalLM)."""
    if c.head not in ("lm", "seq2seq_lm", "none"):
        raise unknown_head(c)
    form = BartLayout(pre_norm=True, bias=False, ffn_bias=False, cross=c.has_cross_attention)
    d, n = c.hidden_size, c.num_codebooks
    return block(
        embed_tokens=Embedding(rows=n * (c.vocab_size + 1), width=d),
        layers=stack("decoder", Run(c.decoder_layers, bart_layer(c, "decoder", form))),
        norm=layer_norm(c),
        lm_heads=Linear(d_in=d, d_out=n * c.vocab_size, category="head") if c.head != "none" else None,
    )
