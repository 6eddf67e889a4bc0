"""Nemotron-H with images and audio, and Nemotron 3.5 Transcribe."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Conv2d, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, head_dim, kv_heads, mha, sized_attention
from paramcalc.families.builders.audio import conformer_layer, tower_norm
from paramcalc.families.builders.audio_language import audio_text_model
from paramcalc.families.builders.decoder import batch_norm, layer_norm, layer_scaled
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision_language import (
    assemble_multimodal,
    own_language_model,
    section_alone,
    text_alone,
)
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Conv1d, Linear, Norm, Param

# -- Nemotron 3 Nano Omni --------------------------------------------------------------------------------------------


@tower("radio")
def radio(v: Config) -> Block:
    """A ViT over patches of images and of a few frames, with several class tokens (RADIO, 2312.06709; RadioModel)."""
    d, patch, frames = v.hidden_size, v.num_channels * v.patch_size * v.patch_size, v.video_temporal_patch_size
    side = symbolic("side", v.max_img_size // v.patch_size, origin="max_img_size / patch_size")
    hidden = int(d * v.mlp_ratio)
    if v.use_swiglu_ffn:
        hidden = (int(hidden * 2 / 3) + 7) // 8 * 8
    width = symbolic("d_ff", hidden, origin="hidden_size x mlp_ratio")
    ffn = Mlp(width=d, hidden=width, gated=v.use_swiglu_ffn, bias=True)
    layer = layer_scaled(layer_norm(v), mha(v, qkv_bias=v.qkv_bias), ffn)
    chosen = v.list_of("summary_idxs")
    return block(
        "vision",
        patches=Linear(d_in=patch, d_out=d),
        frames=Linear(d_in=frames * patch, d_out=d) if frames else None,
        positions=Param(shape=(1, side * side, d)),
        tokens=Param(shape=(v.num_cls_tokens + v.num_registers, d)),
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
        summary=Param(shape=(2 if chosen is None else len(chosen),), buffer=True),
    )


@tower("nemotron_h_omni_audio")
def parakeet(v: Config) -> Block:
    """A conformer behind separable convolutions over a spectrogram (Fast Conformer, 2305.05084; ParakeetEncoder)."""
    d, heads, channels, kernel = (
        v.hidden_size,
        v.num_attention_heads,
        v.subsampling_conv_channels,
        v.subsampling_conv_kernel_size,
    )
    halvings = v.subsampling_factor.bit_length() - 1
    left = symbolic(
        "bins", v.num_mel_bins // v.subsampling_conv_stride**halvings, origin="num_mel_bins / stride^layers"
    )
    depth, point = Conv2d(channels=channels, kernel=kernel), Conv2d(channels=channels, kernel=1, per_group=channels)
    d_h, bias = equal_heads(v), v.attention_bias
    place = Param(shape=(heads, d_h))
    attn: dict[str, Component] = dict(
        attn=sized_attention(d, heads, d_h, bias=bias), pos_proj=Linear(d_in=d, d_out=heads * d_h)
    )
    layer = conformer_layer(
        d,
        mlp(v, v.intermediate_size, bias=bias),
        {**attn, "pos_bias_u": place, "pos_bias_v": place},
        inner=d,
        kernel=v.conv_kernel_size,
        between=batch_norm(d),
        bias=v.convolution_bias,
        depth_bias=v.convolution_bias,
    )
    return block(
        "other",
        conv_0=depth,
        **{f"conv_{i}": block(depth=depth, point=point) for i in range(1, halvings)},
        input=Linear(d_in=channels * left, d_out=d, bias=True),
        layers=stack("audio", Run(v.num_hidden_layers, layer)),
    )


@family("nemotron_h_omni", ties="section")
def nemotron_h_omni(c: Config) -> Component:
    """RADIO, optionally Parakeet, two layers after each, Nemotron-H (NemotronH_Omni_Reasoning_V3)."""
    if text_alone(c):
        return section_alone(c, "vision_config", "audio_config")
    language, d = own_language_model(c)
    predicts = c.sections()[0].raw("num_nextn_predict_layers")
    vision, _ = tower_in(c, "vision_config")
    ratio, width, between = int(1 / c.downsample_ratio), c.vision_hidden_size, c.projector_hidden_size
    projector = block(
        "projector",
        tower_norm=Norm(width=width, bias=True) if predicts else None,  # in models with multi-token-prediction modules
        norm=Norm(width=width * ratio * ratio),
        **two_layers(width * ratio * ratio, between, d, bias=False),
    )
    if c.raw("audio_config") is None:
        return assemble_multimodal(language, vision_tower=vision, projector=projector)
    audio, a = tower_in(c, "audio_config")
    hidden = a.required("projection_hidden_size")
    audio_layers = two_layers(a.hidden_size, hidden, d, bias=a.projection_bias)
    audio_projector = block("projector", norm=Norm(width=a.hidden_size), **audio_layers)
    return assemble_multimodal(
        language, vision_tower=vision, projector=projector, audio_tower=audio, audio_projector=audio_projector
    )


# -- Nemotron 3.5 Transcribe -----------------------------------------------------------------------------------------


def transcribe_layers(v: Config, role: str, *, normed: bool = True) -> dict[str, Component]:
    """Audio layers between two norms, with as many values as queries; `normed`: with QK norms."""
    d, wide, norm = v.hidden_size, v.num_attention_heads * head_dim(v), tower_norm(v.hidden_size)
    part = tower_norm(head_dim(v)) if normed else None
    attn = block(
        q_proj=Linear(d_in=d, d_out=wide),
        k_proj=Linear(d_in=d, d_out=kv_heads(v) * head_dim(v)),
        v_proj=Linear(d_in=d, d_out=wide),
        q_norm=part,
        k_norm=part,
        o_proj=Linear(d_in=wide, d_out=d, bias=True),
    )
    layer = block(input_norm=norm, attn=attn, post_norm=norm, ffn=mlp(v, v.intermediate_size))
    return dict(input_norm=norm, layers=stack(role, Run(v.num_hidden_layers, layer)), norm=norm)


def stacked_frames(v: Config) -> Linear:
    """A projection of several concatenated spectrogram frames."""
    return Linear(d_in=v.subsampling_factor * v.num_mel_bins, d_out=v.hidden_size)


@tower("nemotron3_5_transcribe_asr_audio")
def transcribe_speech(v: Config) -> Block:
    """The speech encoder (Nemotron3_5TranscribeAsrAudioModel)."""
    return block("other", input=stacked_frames(v), **transcribe_layers(v, "audio"))


@tower("nemotron3_diarization_audio")
def diarization_encoder(v: Config) -> Block:
    """The speaker encoder (Nemotron3DiarizationAudioModel)."""
    return block("other", input=stacked_frames(v), **transcribe_layers(v, "speakers", normed=False))


@tower("nemotron3_diarization")
def diarization(v: Config) -> Block:
    """The active speakers of each frame (Nemotron3DiarizationForAudioFrameClassification)."""
    encoder, a = tower_in(v, "audio_config")
    h = v.section("head_config")
    v.raw("streaming_config")
    v.require(h.audio_hidden_size == a.hidden_size, "head_config.audio_hidden_size is not that of audio_config")
    d, finer = h.hidden_size, h.subsampling_factor
    return block(
        "other",
        encoder=encoder,
        proj=Linear(d_in=a.hidden_size, d_out=d, bias=True),
        upsample=Conv1d(channels=d * finer, kernel=3, per_group=d, per="tower"),
        **two_layers(d, d, h.num_speakers),
        silence=Param(shape=(a.hidden_size,)),
    )


@tower("nemotron3_5_transcribe_audio")
def transcribe_audio(v: Config) -> Block:
    """The speech encoder and the diarization model (Nemotron3_5TranscribeAudioModel)."""
    (speech, a), (speaker_model, speakers) = tower_in(v, "asr_config"), tower_in(v, "diarization_config")
    norms = dict(norm=tower_norm(a.hidden_size), speaker_norm=tower_norm(speakers.section("head_config").num_speakers))
    return block("other", speech=speech, diarization=speaker_model, **norms)


@tower("nemotron3_5_transcribe_word_timestamp")
def word_times(v: Config) -> Block:
    """The word timestamp encoder (Nemotron3_5TranscribeWordTimestampModel)."""
    d = v.hidden_size
    finer = Conv1d(channels=d, kernel=v.upsampling_factor, per_group=d, per="tower")
    return block("other", upsample=finer, **transcribe_layers(v, "word times"))


@family("nemo_speechlm")
def nemo_speechlm(c: Config) -> Component:
    """Encoders of speech, speakers and times, one layer, Nemotron-H (Nemotron3_5TranscribeForConditionalGeneration)."""
    audio, a = tower_in(c, "audio_config")
    language, d = audio_text_model(c, tied=False)
    times, w = tower_in(c, "word_timestamp_config")
    head = None
    if c.head != "none":
        head = Linear(d_in=w.hidden_size, d_out=w.vocab_size, bias=True, category="other", per="tower")
    width = a.sections()[0].hidden_size
    projector = Linear(d_in=width, d_out=d, bias=True, category="projector")
    return assemble_multimodal(language, audio_tower=audio, projector=projector, word_times=times, word_times_head=head)
