"""Language models that hear."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcalc.config import Config
from paramcalc.families.audio import AUDIO_NAMES, audio_tower, text_model, two_layers
from paramcalc.families.registry import family
from paramcalc.families.seeing import only_text
from paramcalc.families.skeletons import causal_lm, glu, gqa, rms, sizes
from paramcalc.spec import Block, Component, Linear, Run, block

# -- with the tower counted --------------------------------------------------------------------------------------


@family("audioflamingo3", "musicflamingo")
def audioflamingo3(c: Config) -> Block:
    """Whisper's encoder, two matrices, and a language model (AudioFlamingo3ForConditionalGeneration)."""
    tower, audio = audio_tower(c, AUDIO_NAMES, "audioflamingo3_encoder", "musicflamingo_encoder")
    text, width = text_model(c, "qwen2", {}, tied=False)
    projector = two_layers(audio.hidden_size, width, bias=c.projector_bias)
    return block(audio_tower=tower, projector=projector, **text.parts())


@family("qwen2_audio")
def qwen2_audio(c: Config) -> Block:
    """Whisper's encoder, one matrix, and Qwen2 (Qwen2AudioForConditionalGeneration)."""
    names = {value: key for key, value in AUDIO_NAMES.items()} | dict(hidden_size="d_model")
    tower, audio = audio_tower(c, names, "qwen2_audio_encoder")
    text, width = text_model(c, "qwen2", {}, tied=False)
    projector = Linear(d_in=audio.hidden_size, d_out=width, bias=True, category="projector")
    return block(audio_tower=tower, projector=projector, **text.parts())


VOXTRAL = dict(vocab_size=131072, hidden_size=3072, intermediate_size=8192) | dict(
    num_hidden_layers=30, num_key_value_heads=8, head_dim=128
)


@family("voxtral")
def voxtral(c: Config) -> Block:
    """Whisper's encoder, two matrices over groups of frames, and Llama (VoxtralForConditionalGeneration)."""
    tower, audio = audio_tower(c, AUDIO_NAMES, "voxtral_encoder")
    text, width = text_model(c, "llama", VOXTRAL, tied=False, completes=True)
    projector = two_layers(audio.encoder_ffn_dim, width, bias=False)
    return block(audio_tower=tower, projector=projector, **text.parts())


MOSS_AUDIO = dict(
    hidden_size=1024, encoder_layers=24, encoder_attention_heads=16, encoder_ffn_dim=4096, num_mel_bins=80
)
MOSS_TEXT = dict(
    hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8
)


@family("moss_transcribe_diarize")
def moss_transcribe_diarize(c: Config) -> Block:
    """Whisper's encoder, a projector over merged frames, and Qwen3 (MossTranscribeDiarizeForConditionalGeneration)."""
    tower, audio = audio_tower(c, AUDIO_NAMES, "moss_transcribe_diarize_audio", **MOSS_AUDIO)
    text, width = text_model(c, "qwen3", MOSS_TEXT, tied=c.tie_word_embeddings)
    projector = two_layers(audio.hidden_size * c.audio_merge_size, width, bias=c.projector_bias, norm=True)
    return block(audio_tower=tower, projector=projector, **text.parts())


# -- the language model alone ------------------------------------------------------------------------------------


class Heard(NamedTuple):
    """A language model of which the towers are not counted."""

    kind: str
    sizes: Mapping[str, Any] = {}
    completes: bool = False  # the class adds the sizes to a section that omits them
    towers: tuple[str, ...] = ("audio_config",)


GRANITE_TOWERS = ("encoder_config", "projector_config")


@family("glmasr", language=Heard("llama", sizes(59264, 2048, 6144, 28, 16, 4), completes=True))
@family("granite_speech", "granite_speech_plus", language=Heard("granite", towers=GRANITE_TOWERS))
@family("omniasr", language=Heard("llama", sizes(11984, 4096, 2816, 12, 8, 8)))
@family("qwen3_asr", language=Heard("qwen3", sizes(151936, 2048, 6144, 28, 16, 8, 128)))
@family(
    "vibevoice_asr",
    language=Heard("qwen2", towers=("acoustic_tokenizer_encoder_config", "semantic_tokenizer_encoder_config")),
)
@family(
    "voxtral_realtime",
    language=Heard(
        "voxtral_realtime_text",
        sizes(131072, 3072, 9216, 26, 32, 8, 128, sliding_window=8192),
        completes=True,
    ),
)
@family("got_ocr2", language=Heard("qwen2", sizes(151860, 1024, 2816, 24, 16, 16), towers=("vision_config",)))
def heard(c: Config) -> Component:
    """A language model that hears or sees: it is counted, towers and projectors are not (GlmAsr...Generation)."""
    kind, stated, completes, towers = c.language
    only_text(c, *towers)
    return text_model(c, kind, stated, tied=c.tie_word_embeddings, completes=completes)[0]


@family("nemo_speechlm")
def nemo_speechlm(c: Config) -> Component:
    """Nemotron-H that hears: it is counted, the tower is not (Nemotron3_5TranscribeForConditionalGeneration)."""
    c.require(c.says("text_config"), "text_config is missing", "it holds the language model")
    only_text(c, "audio_config", "word_timestamp_config")
    return text_model(c, "nemotron_h", {}, tied=False)[0]


@family("voxtral_realtime_text")
def voxtral_realtime_text(c: Config) -> Block:
    """Mistral with a norm steered by the delay between hearing and writing (VoxtralRealtimeTextForCausalLM)."""
    d = c.hidden_size
    steered = block("norm", down=Linear(d_in=d, d_out=32), up=Linear(d_in=32, d_out=d))
    attn = gqa(c, window=c.sliding_window)
    one = block(input_norm=rms(c), attn=attn, post_norm=rms(c), steered_norm=steered, ffn=glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, one), norm=rms(c))
