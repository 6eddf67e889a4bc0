"""Language models that hear."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.containers import Block, Run, block
from paramcalc.families.attentions import gqa
from paramcalc.families.audio import audio_tower, text_model, two_matrices
from paramcalc.families.audio_encoders import hears
from paramcalc.families.feedforward import glu
from paramcalc.families.registry import family
from paramcalc.families.seeing import joined, only_text
from paramcalc.families.skeletons import causal_lm, rms
from paramcalc.families.towers import only
from paramcalc.families.vision import two_layers
from paramcalc.leaves import Linear
from paramcalc.spec import Component

# -- with the tower counted --------------------------------------------------------------------------------------


@family("audioflamingo3", "musicflamingo")
def audioflamingo3(c: Config) -> Component:
    """Whisper's encoder, two matrices, and a language model (AudioFlamingo3ForConditionalGeneration)."""
    tower, audio = audio_tower(c)
    text, width = text_model(c, tied=False)
    projector = two_matrices(audio.hidden_size, width, bias=c.projector_bias)
    return joined(text, audio_tower=tower, projector=projector)


@family("qwen2_audio")
def qwen2_audio(c: Config) -> Component:
    """Whisper's encoder, one matrix, and Qwen2 (Qwen2AudioForConditionalGeneration)."""
    tower, audio = audio_tower(c)
    text, width = text_model(c, tied=False)
    projector = Linear(d_in=audio.hidden_size, d_out=width, bias=True, category="projector")
    return joined(text, audio_tower=tower, projector=projector)


@family("voxtral")
def voxtral(c: Config) -> Component:
    """Whisper's encoder, two matrices over groups of frames, and Llama (VoxtralForConditionalGeneration)."""
    tower, audio = audio_tower(c)
    text, width = text_model(c, tied=False, completes=True)
    projector = two_matrices(audio.encoder_ffn_dim, width, bias=False)
    return joined(text, audio_tower=tower, projector=projector)


@family("moss_transcribe_diarize")
def moss_transcribe_diarize(c: Config) -> Component:
    """Whisper's encoder, a projector over merged frames, and Qwen3 (MossTranscribeDiarizeForConditionalGeneration)."""
    tower, audio = audio_tower(c)
    text, width = text_model(c, tied=c.tie_word_embeddings)
    projector = two_matrices(audio.hidden_size * c.audio_merge_size, width, bias=c.projector_bias, norm=True)
    return joined(text, audio_tower=tower, projector=projector)


# -- with towers of their own ------------------------------------------------------------------------------------


@family("glmasr")
def glmasr(c: Config) -> Component:
    """Whisper's layers with rotary positions, two layers over groups of frames, Llama (GlmAsr...Generation)."""
    return hears(c, lambda v, d: block("projector", **two_layers(v.intermediate_size, 2 * d, d)), completes=True)


@family("qwen3_asr")
def qwen3_asr(c: Config) -> Component:
    """A spectrogram encoder over chunks, two layers, Qwen3 (Qwen3ASRForConditionalGeneration)."""
    return hears(c, lambda v, _: block("projector", **two_layers(v.hidden_size, v.hidden_size, v.output_dim)))


@family("omniasr")
def omniasr(c: Config) -> Component:
    """wav2vec 2.0, one layer, Llama (OmniASRForConditionalGeneration)."""
    return hears(c, lambda v, d: Linear(d_in=v.hidden_size, d_out=d, bias=True, category="projector"))


@family("voxtral_realtime")
def voxtral_realtime(c: Config) -> Component:
    """A causal spectrogram encoder, two layers over groups of frames, Mistral (VoxtralRealtime...Generation)."""

    def projector(v: Config, d: int) -> Block:
        return block("projector", **two_layers(v.hidden_size * c.downsample_factor, d, d, bias=False))

    only(c, "text_config", "voxtral_realtime_text")  # another's config would be given to the layers of this one
    return hears(c, projector, completes=True)


# -- the language model alone ------------------------------------------------------------------------------------


@family("nemo_speechlm")
def nemo_speechlm(c: Config) -> Component:
    """Nemotron-H that hears: it is counted, the tower is not (Nemotron3_5TranscribeForConditionalGeneration)."""
    c.require(c.says("text_config"), "text_config is missing", "it holds the language model")
    only_text(c, "audio_config", "word_timestamp_config")
    return text_model(c, tied=False)[0]


@family("voxtral_realtime_text")
def voxtral_realtime_text(c: Config) -> Block:
    """Mistral with a norm steered by the delay between hearing and writing (VoxtralRealtimeTextModel)."""
    d = c.hidden_size
    steered = block("norm", down=Linear(d_in=d, d_out=32, per="call"), up=Linear(d_in=32, d_out=d, per="call"))
    attn = gqa(c, window=c.sliding_window)
    one = block(input_norm=rms(c), attn=attn, post_norm=rms(c), steered_norm=steered, ffn=glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, one), norm=rms(c))
