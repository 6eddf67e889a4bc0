"""Language models that hear."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.families.attentions import gqa
from paramcalc.families.audio import AUDIO_NAMES, audio_tower, text_model, two_matrices
from paramcalc.families.audio_encoders import hears
from paramcalc.families.feedforward import glu
from paramcalc.families.registry import family
from paramcalc.families.seeing import Named, joined, only_text
from paramcalc.families.skeletons import causal_lm, rms, sizes
from paramcalc.families.vision import two_layers
from paramcalc.spec import Block, Component, Linear, Run, block

# -- with the tower counted --------------------------------------------------------------------------------------


@family("audioflamingo3", "musicflamingo")
def audioflamingo3(c: Config) -> Component:
    """Whisper's encoder, two matrices, and a language model (AudioFlamingo3ForConditionalGeneration)."""
    tower, audio = audio_tower(c, AUDIO_NAMES, "audioflamingo3_encoder", "musicflamingo_encoder")
    text, width = text_model(c, "qwen2", {}, tied=False)
    projector = two_matrices(audio.hidden_size, width, bias=c.projector_bias)
    return joined(text, audio_tower=tower, projector=projector)


@family("qwen2_audio")
def qwen2_audio(c: Config) -> Component:
    """Whisper's encoder, one matrix, and Qwen2 (Qwen2AudioForConditionalGeneration)."""
    names = {value: key for key, value in AUDIO_NAMES.items()} | dict(hidden_size="d_model")
    tower, audio = audio_tower(c, names, "qwen2_audio_encoder")
    text, width = text_model(c, "qwen2", {}, tied=False)
    projector = Linear(d_in=audio.hidden_size, d_out=width, bias=True, category="projector")
    return joined(text, audio_tower=tower, projector=projector)


VOXTRAL = dict(vocab_size=131072, hidden_size=3072, intermediate_size=8192) | dict(
    num_hidden_layers=30, num_key_value_heads=8, head_dim=128
)


@family("voxtral")
def voxtral(c: Config) -> Component:
    """Whisper's encoder, two matrices over groups of frames, and Llama (VoxtralForConditionalGeneration)."""
    tower, audio = audio_tower(c, AUDIO_NAMES, "voxtral_encoder")
    text, width = text_model(c, "llama", VOXTRAL, tied=False, completes=True)
    projector = two_matrices(audio.encoder_ffn_dim, width, bias=False)
    return joined(text, audio_tower=tower, projector=projector)


MOSS_AUDIO = dict(
    hidden_size=1024, encoder_layers=24, encoder_attention_heads=16, encoder_ffn_dim=4096, num_mel_bins=80
)
MOSS_TEXT = dict(
    hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8
)


@family("moss_transcribe_diarize")
def moss_transcribe_diarize(c: Config) -> Component:
    """Whisper's encoder, a projector over merged frames, and Qwen3 (MossTranscribeDiarizeForConditionalGeneration)."""
    tower, audio = audio_tower(c, AUDIO_NAMES, "moss_transcribe_diarize_audio", **MOSS_AUDIO)
    text, width = text_model(c, "qwen3", MOSS_TEXT, tied=c.tie_word_embeddings)
    projector = two_matrices(audio.hidden_size * c.audio_merge_size, width, bias=c.projector_bias, norm=True)
    return joined(text, audio_tower=tower, projector=projector)


# -- with towers of their own ------------------------------------------------------------------------------------


@family("glmasr")
def glmasr(c: Config) -> Component:
    """Whisper's layers with rotary positions, two layers over groups of frames, Llama (GlmAsr...Generation)."""
    text = Named("llama", sizes(59264, 2048, 6144, 28, 16, 4))
    return hears(
        c,
        text,
        "glmasr_encoder",
        lambda v, d: block("projector", **two_layers(v.intermediate_size, 2 * d, d)),
        completes=True,
    )


@family("qwen3_asr")
def qwen3_asr(c: Config) -> Component:
    """A spectrogram encoder over chunks, two layers, Qwen3 (Qwen3ASRForConditionalGeneration)."""
    text = Named("qwen3", sizes(151936, 2048, 6144, 28, 16, 8, 128))
    return hears(
        c,
        text,
        "qwen3_asr_encoder",
        lambda v, _: block("projector", **two_layers(v.hidden_size, v.hidden_size, v.output_dim)),
    )


@family("omniasr")
def omniasr(c: Config) -> Component:
    """wav2vec 2.0, one layer, Llama (OmniASRForConditionalGeneration)."""
    return hears(
        c,
        Named("llama", sizes(11984, 4096, 2816, 12, 8, 8)),
        "omniasr_audio",
        lambda v, d: Linear(d_in=v.hidden_size, d_out=d, bias=True, category="projector"),
    )


@family("voxtral_realtime")
def voxtral_realtime(c: Config) -> Component:
    """A causal spectrogram encoder, two layers over groups of frames, Mistral (VoxtralRealtime...Generation)."""
    text = Named("voxtral_realtime_text", sizes(131072, 3072, 9216, 26, 32, 8, 128, sliding_window=8192))
    return hears(
        c,
        text,
        "voxtral_realtime_encoder",
        lambda v, d: block("projector", **two_layers(v.hidden_size * c.downsample_factor, d, d, bias=False)),
        completes=True,
    )


# -- the language model alone ------------------------------------------------------------------------------------


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
