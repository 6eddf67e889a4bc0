"""SeamlessM4T (2308.11596): one text decoder, encoders of text and of speech, and speech synthesis."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import sized_attention
from paramcalc.families.builders.audio import conformer_layer, conv_over_time, hifi_gan, tower_norm
from paramcalc.families.builders.decoder import batch_norm
from paramcalc.families.builders.encoder_decoder import BartLayout, bart_attention, bart_layer, bart_stack
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import lm_head, unknown_head
from paramcalc.families.builders.vision_language import assemble_multimodal
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Param

SEAMLESS_LAYOUT = BartLayout(spare_rows=None, embed_norm=False, pre_norm=True)
SEAMLESS_TOWER_LAYOUT = SEAMLESS_LAYOUT._replace(norms=None)  # a tower, which is counted as a whole
SPEECH_INPUT_HEADS, SPEECH_OUTPUT_HEADS = ("speech_to_text", "speech_to_speech"), ("text_to_speech", "speech_to_speech")


@family("seamless_m4t", second=False)
@family("seamless_m4t_v2", second=True)
def seamless(c: Config) -> Component:
    """M2M-100's encoder and decoder, a speech encoder, text-to-unit layers and a vocoder (SeamlessM4TForTextToText).

    Each class builds only the parts that it needs.
    """
    if c.head not in ("seq2seq_lm", "none", *SPEECH_INPUT_HEADS, *SPEECH_OUTPUT_HEADS):
        raise unknown_head(c)
    speech_input, speech_output = (
        c.head in ("none", *classes) for classes in (SPEECH_INPUT_HEADS, SPEECH_OUTPUT_HEADS)
    )
    language = block(
        shared=Embedding(rows=c.vocab_size, width=c.hidden_size),
        encoder=None if c.head in SPEECH_INPUT_HEADS else bart_stack(c, "encoder", SEAMLESS_LAYOUT),
        decoder=bart_stack(c, "decoder", SEAMLESS_LAYOUT),
        lm_head=lm_head(c, c.hidden_size, owner="shared"),
    )
    return assemble_multimodal(
        language,
        speech_encoder=seamless_speech_encoder(c) if speech_input else None,
        units=text_to_units(c) if speech_output else None,
        vocoder=unit_vocoder(c) if speech_output else None,
    )


# -- speech encoder --------------------------------------------------------------------------------------------------


def seamless_speech_encoder(c: Config) -> Block:
    """A conformer over spectrogram frames, and layers that shorten its output (SeamlessM4TSpeechEncoder)."""
    d, heads, norm = c.hidden_size, c.speech_encoder_attention_heads, tower_norm(c.hidden_size)
    c.require(d % heads == 0, f"hidden_size ({d}) is not divisible by speech_encoder_attention_heads ({heads})")
    c.require(c.conv_depthwise_kernel_size % 2 == 1, "conv_depthwise_kernel_size is even")
    d_h = symbolic("d_h", d // heads, origin="d / speech_encoder_attention_heads")
    attn, ffn = sized_attention(d, heads, d_h, bias=True), mlp(c, c.speech_encoder_intermediate_size)
    positions, shared = conformer_positions(c, heads, d_h)
    middle = norm if c.second else batch_norm(d)
    one = conformer_layer(
        d, ffn, {"attn": attn, **positions}, inner=d, kernel=c.conv_depthwise_kernel_size, between=middle, bias=False
    )
    shorten = conv_over_time(d, 2 * d, c.adaptor_kernel_size)
    adapter = block(
        residual_norm=norm, residual_conv=shorten, attn_norm=norm, attn_conv=shorten, attn=attn, ffn_norm=norm, ffn=ffn
    )
    return block(
        "other",
        input_norm=tower_norm(c.feature_projection_input_dim),
        input=Linear(d_in=c.feature_projection_input_dim, d_out=d, bias=True),
        **shared,
        layers=stack("audio", Run(c.speech_encoder_layers, one)),
        norm=norm,
        ffn=ffn,
        adapter=stack("adapter", Run(c.num_adapter_layers, adapter)) if c.add_adapter else None,
        inner_norm=norm,
    )


def conformer_positions(c: Config, heads: int, d_h: int) -> tuple[dict[str, Component], dict[str, Component]]:
    """The position parts of each conformer layer, and those that all layers share."""
    kind = c.position_embeddings_type
    if c.second:
        rows = c.left_max_position_embeddings + c.right_max_position_embeddings + 1
        return {"distances": Embedding(rows=rows, width=d_h)} if kind == "relative_key" else {}, {}
    if kind == "relative":  # Transformer-XL (1901.02860), section 3.3
        bias = Param(shape=(heads, d_h))
        return {"pos_proj": Linear(d_in=c.hidden_size, d_out=c.hidden_size), "pos_bias_u": bias, "pos_bias_v": bias}, {}
    return {}, {"frequencies": Param(shape=((d_h + 1) // 2,), buffer=True)} if kind == "rotary" else {}


# -- speech synthesis ------------------------------------------------------------------------------------------------


def text_to_units(c: Config) -> Block:
    """An encoder and a decoder from text states to speech units (SeamlessM4TTextToUnitForConditionalGeneration).

    The decoder of the second version predicts all units at once.
    """
    d, rows, norm = c.hidden_size, c.t2u_vocab_size, tower_norm(c.hidden_size)
    before: dict[str, Component] = {}
    decodes = bart_layer(c, "t2u_decoder", SEAMLESS_TOWER_LAYOUT)
    if c.second:
        conv = conv_over_time(d, d, 7)
        decodes = block(
            attn_norm=norm,
            attn=bart_attention(c, "t2u_decoder", SEAMLESS_TOWER_LAYOUT),
            conv_1=conv,
            conv_2=conv,
            conv_norm=norm,
        )
        width, hidden = c.t2u_variance_predictor_embed_dim, c.t2u_variance_predictor_hidden_dim
        before = {
            "embed_chars": Embedding(rows=c.char_vocab_size, width=d),
            "char_scale": Param(shape=(1,)),
            "scale": Param(shape=(1,)),
            "durations": duration_predictor(width, hidden, c.t2u_variance_predictor_kernel_size),
        }
    return block(
        "other",
        encoder=stack("unit encoder", Run(c.t2u_encoder_layers, bart_layer(c, "t2u_encoder", SEAMLESS_TOWER_LAYOUT))),
        encoder_norm=norm,
        embed_tokens=Embedding(rows=rows, width=d),
        **before,
        decoder=stack("unit decoder", Run(c.t2u_decoder_layers, decodes)),
        norm=norm,
        lm_head=Linear(d_in=d, d_out=rows, tied_to="units.embed_tokens" if c.tie_word_embeddings else None),
    )


def duration_predictor(width: int, hidden: int, kernel: int) -> Block:
    """The duration of each unit: two convolutions and one output (SeamlessM4TVariancePredictor)."""
    norm = tower_norm(hidden)
    return block(
        conv_1=conv_over_time(width, hidden, kernel),
        norm_1=norm,
        conv_2=conv_over_time(hidden, hidden, kernel),
        norm_2=norm,
        proj=Linear(d_in=hidden, d_out=1, bias=True),
    )


def unit_vocoder(c: Config) -> Block:
    """A vocoder from units, speaker and language to a waveform (HiFi-GAN, 2010.05646; SeamlessM4TCodeHifiGan)."""
    d = c.unit_embed_dim
    return block(
        "other",
        durations=duration_predictor(d, d, c.variance_predictor_kernel_size),
        units=Embedding(rows=c.unit_hifi_gan_vocab_size, width=d),
        speakers=Embedding(rows=c.vocoder_num_spkrs, width=c.spkr_embed_dim),
        languages=Embedding(rows=c.vocoder_num_langs, width=c.lang_embed_dim),
        **hifi_gan(c, d + c.lang_embed_dim + c.spkr_embed_dim),
    )
