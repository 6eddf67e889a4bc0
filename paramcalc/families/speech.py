"""Models that hear, speak or make music: Whisper, MusicGen, Seamless, and language models with an audio tower."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcalc.config import Config, Reading
from paramcalc.dims import named
from paramcalc.families.heads import decoder_head, labels, lm_head, unknown_head
from paramcalc.families.multimodal import only_text
from paramcalc.families.registry import family, get
from paramcalc.families.sides import BART, NAMES, UNUSED, Form, layer, side, spectrogram_encoder
from paramcalc.families.skeletons import causal_lm, glu, gqa, layer_norm, pre_norm, rms, sizes
from paramcalc.spec import Block, Component, Embedding, Linear, Norm, Param, Run, block, stack

# -- Whisper -----------------------------------------------------------------------------------------------------

SPEC_AUGMENT = [
    "apply_spec_augment",
    "mask_feature_length",
    "mask_feature_min_masks",
    "mask_feature_prob",
    "mask_time_length",
    "mask_time_min_masks",
    "mask_time_prob",
]
WHISPER = Form(spare_rows=0, embed_norm=False, pre_norm=True, key_bias=False)


@family(
    "whisper",
    "WhisperForConditionalGeneration",
    names=NAMES | dict(num_key_value_heads="encoder_attention_heads"),
    defaults=BART
    | dict(vocab_size=51865, hidden_size=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
    | dict(decoder_layers=4, decoder_attention_heads=6, decoder_ffn_dim=1536, max_target_positions=448)
    | dict(num_mel_bins=80, max_source_positions=1500, classifier_proj_size=256, use_weighted_layer_sum=False),
    unused=[*UNUSED, *SPEC_AUGMENT, "forced_decoder_ids", "median_filter_width"],
)
def whisper(c: Config) -> Block:
    """Pre-norm encoder over a spectrogram, decoder over text; keys have no bias (WhisperForConditionalGeneration)."""
    if c.head == "audio_classification":
        return block(encoder=spectrogram_encoder(c, WHISPER), **audio_head(c))
    if c.head not in ("seq2seq_lm", "lm", "none"):
        raise unknown_head(c)
    return block(
        encoder=None if c.head == "lm" else spectrogram_encoder(c, WHISPER),
        decoder=side(c, "decoder", WHISPER, owner=None, positions=c.max_target_positions),
        lm_head=None if c.head == "none" else lm_head(c, c.hidden_size, owner="decoder.embed_tokens"),
    )


def audio_head(c: Config) -> dict[str, Component]:
    """A narrow classifier over the encoder, perhaps over a weighted sum of all its layers."""
    narrow = c.classifier_proj_size
    weights = {"layer_weights": Param(shape=(c.encoder_layers + 1,), category="head")}
    return (weights if c.use_weighted_layer_sum else {}) | {
        "projector": Linear(d_in=c.hidden_size, d_out=narrow, bias=True, category="head"),
        "classifier": Linear(d_in=narrow, d_out=labels(c), bias=True, category="head"),
    }


# -- MusicGen ----------------------------------------------------------------------------------------------------

MUSICGEN = dict(
    vocab_size=2048,
    hidden_size=1024,
    decoder_layers=24,
    decoder_attention_heads=16,
    decoder_ffn_dim=4096,
    num_codebooks=4,
)
MUSICGEN_NAMES = dict(
    decoder_layers="num_hidden_layers", decoder_attention_heads="num_attention_heads", decoder_ffn_dim="ffn_dim"
)
MUSICGEN_UNUSED = ["audio_channels", "add_cross_attention", "cross_attention_hidden_size"]


@family(
    "musicgen_decoder",
    "MusicgenForCausalLM",
    names=MUSICGEN_NAMES,
    defaults=MUSICGEN,
    fixed=dict(has_cross_attention=True),
    unused=MUSICGEN_UNUSED,
)
@family(
    "musicgen_melody_decoder",
    "MusicgenMelodyForCausalLM",
    names=MUSICGEN_NAMES,
    defaults=MUSICGEN,
    fixed=dict(has_cross_attention=False),
    unused=MUSICGEN_UNUSED,
)
def musicgen_decoder(c: Config) -> Block:
    """Pre-norm decoder over several codebooks, each with a token table and a head of its own (MusicgenForCausalLM)."""
    if c.head not in ("lm", "seq2seq_lm", "none"):
        raise unknown_head(c)
    form = Form(pre_norm=True, bias=False, ffn_bias=False, cross=c.has_cross_attention)
    d, n = c.hidden_size, c.num_codebooks
    return block(
        embed_tokens=Embedding(rows=n * (c.vocab_size + 1), width=d),
        layers=stack("decoder", Run(c.decoder_layers, layer(c, "decoder", form))),
        norm=layer_norm(c),
        lm_heads=Linear(d_in=d, d_out=n * c.vocab_size, category="head") if c.head != "none" else None,
    )


@family("musicgen", "MusicgenForConditionalGeneration", defaults={})
@family(
    "musicgen_melody", "MusicgenMelodyForConditionalGeneration", defaults={}, unused=["chroma_length", "num_chroma"]
)
def musicgen(c: Config) -> Component:
    """MusicGen with its text and audio encoders: the decoder is counted (MusicgenForConditionalGeneration)."""
    only_text(c, "text_encoder", "audio_encoder")
    kind = f"{c.family}_decoder"
    return get(kind).recipe(c.section("decoder", get(kind).reading, family=kind))


# -- Seamless ----------------------------------------------------------------------------------------------------

SEAMLESS = dict(
    vocab_size=256102,
    hidden_size=1024,
    encoder_layers=24,
    encoder_attention_heads=16,
    encoder_ffn_dim=8192,
    decoder_layers=24,
    decoder_attention_heads=16,
    decoder_ffn_dim=8192,
    tie_word_embeddings=True,
)
SEAMLESS_NAMES = dict(num_hidden_layers="decoder_layers", num_attention_heads="decoder_attention_heads")
# What describes the speech encoder, the unit decoder and the vocoder.
SEAMLESS_SPEECH = """
    adaptor_dropout adaptor_kernel_size adaptor_stride add_adapter char_vocab_size conv_depthwise_kernel_size
    feature_projection_input_dim lang_embed_dim leaky_relu_slope left_max_position_embeddings max_new_tokens
    max_source_positions num_adapter_layers num_conv_pos_embedding_groups num_conv_pos_embeddings
    position_embeddings_type resblock_dilation_sizes resblock_kernel_sizes right_max_position_embeddings
    sampling_rate speech_encoder_attention_heads speech_encoder_chunk_size speech_encoder_dropout
    speech_encoder_hidden_act speech_encoder_intermediate_size speech_encoder_layerdrop speech_encoder_layers
    speech_encoder_left_chunk_num spkr_embed_dim t2u_bos_token_id t2u_decoder_attention_heads
    t2u_decoder_ffn_dim t2u_decoder_layers t2u_decoder_start_token_id t2u_encoder_attention_heads
    t2u_encoder_ffn_dim t2u_encoder_layers t2u_eos_token_id t2u_max_new_tokens t2u_max_position_embeddings
    t2u_pad_token_id t2u_variance_pred_dropout t2u_variance_predictor_embed_dim
    t2u_variance_predictor_hidden_dim t2u_variance_predictor_kernel_size t2u_vocab_size unit_embed_dim
    unit_hifi_gan_vocab_size upsample_initial_channel upsample_kernel_sizes upsample_rates var_pred_dropout
    variance_predictor_kernel_size vocoder_num_langs vocoder_num_spkrs vocoder_offset
""".split()  # noqa: SIM905 - readable as a paragraph


@family(
    "seamless_m4t",
    "SeamlessM4TForTextToText",
    names=SEAMLESS_NAMES,
    defaults=SEAMLESS,
    unused=SEAMLESS_SPEECH,
)
@family(
    "seamless_m4t_v2",
    "SeamlessM4Tv2ForTextToText",
    names=SEAMLESS_NAMES,
    defaults=SEAMLESS,
    unused=SEAMLESS_SPEECH,
)
def seamless(c: Config) -> Block:
    """M2M-100's encoder and decoder for text; what hears and speaks is not counted (SeamlessM4TForTextToText)."""
    form = Form(spare_rows=None, embed_norm=False, pre_norm=True)
    hears = c.head in ("speech_to_text", "speech_to_speech")
    if not hears and c.head not in ("seq2seq_lm", "text_to_speech", "none"):
        raise unknown_head(c)
    if c.head != "seq2seq_lm":
        c.doubts.append(f"{c.family}: the text encoder and decoder are counted; speech encoder and vocoder are not")
    return block(
        shared=Embedding(rows=c.vocab_size, width=c.hidden_size),
        encoder=None if hears else side(c, "encoder", form),
        decoder=side(c, "decoder", form),
        lm_head=lm_head(c, c.hidden_size, owner="shared"),
    )


# -- Moshi -------------------------------------------------------------------------------------------------------


@family(
    "moshi",
    "MoshiForCausalLM",
    defaults=dict(vocab_size=32000, hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, ffn_dim=22528)
    | dict(num_key_value_heads=None, head_dim=None, sliding_window=3000),
    fixed=dict(tie_word_embeddings=False),
    unused=["audio_vocab_size", "num_codebooks", "audio_encoder_config", "depth_decoder_config"],
)
def moshi(c: Config) -> Block:
    """Llama's layer with one spare row in the embedding; what hears and speaks is not counted (MoshiForCausalLM)."""
    c.require(c.ffn_dim % 2 == 0, f"ffn_dim ({c.ffn_dim}) must be even", "it is the width of gate and input together")
    if c.head == "seq2seq_lm":
        only_text(c, "audio_encoder_config", "depth_decoder_config")
    hidden = named("d_ff", c.ffn_dim // 2, origin="ffn_dim / 2")
    one = pre_norm(rms(c), gqa(c, window=c.sliding_window), glu(c, hidden))
    return block(
        embed_tokens=Embedding(rows=c.vocab_size + 1, width=c.hidden_size),
        layers=stack("decoder", Run(c.num_hidden_layers, one)),
        norm=rms(c),
        **decoder_head(c, c.hidden_size),
    )


# -- language models that hear -----------------------------------------------------------------------------------


def text_model(
    c: Config, kind: str, ours: Mapping[str, Any], *, tied: bool, completes: bool = False
) -> tuple[Component, int]:
    """The language model of text_config and its width.

    `kind` and `ours` hold where there is no section; `ours` also for what a section omits where the class
    `completes` it.
    """
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    stated = c.section("text_config", Reading({})).raw("model_type") or kind
    text = get(stated)
    defaults = dict(text.reading.defaults)
    if completes or not c.says("text_config"):
        defaults |= ours
    reading = text.reading._replace(defaults=defaults, fixed={**text.reading.fixed, "tie_word_embeddings": tied})
    section = c.section("text_config", reading, family=stated)
    return text.recipe(section), section.hidden_size


AUDIO = dict(
    hidden_size=1280,
    encoder_layers=32,
    encoder_attention_heads=20,
    encoder_ffn_dim=5120,
    num_mel_bins=128,
    max_source_positions=1500,
)
AUDIO_NAMES = dict(
    d_model="hidden_size",
    encoder_layers="num_hidden_layers",
    encoder_attention_heads="num_attention_heads",
    encoder_ffn_dim="intermediate_size",
)


def audio_tower(c: Config, names: Mapping[str, str], *kinds: str, **ours: int) -> tuple[Block, Config]:
    """Whisper's encoder, from audio_config; `kinds`: the model types it may have."""
    section = c.section("audio_config", Reading(AUDIO | ours, names=names, unused=["vocab_size"]))
    kind = section.raw("model_type") or kinds[0]
    c.require(kind in kinds, f"audio_config is a {kind}", "only Whisper's encoder can be counted here")
    return block("other", **spectrogram_encoder(section, WHISPER._replace(norms=None), role="audio").items), section


def two_layers(d_in: int, d: int, *, bias: bool, norm: bool = False) -> Block:
    """A projector of two matrices, perhaps normalised."""
    return block(
        "projector",
        linear_1=Linear(d_in=d_in, d_out=d, bias=bias),
        linear_2=Linear(d_in=d, d_out=d, bias=bias),
        norm=Norm(width=d, bias=True) if norm else None,
    )


@family("audioflamingo3", "AudioFlamingo3ForConditionalGeneration", defaults=dict(projector_bias=True))
@family(
    "musicflamingo",
    "MusicFlamingoForConditionalGeneration",
    defaults=dict(projector_bias=True),
    unused=["audio_frame_step", "head_dim"],
)
def audioflamingo3(c: Config) -> Block:
    """Whisper's encoder, two matrices, and a language model (AudioFlamingo3ForConditionalGeneration)."""
    tower, audio = audio_tower(c, AUDIO_NAMES, "audioflamingo3_encoder", "musicflamingo_encoder")
    text, width = text_model(c, "qwen2", {}, tied=False)
    projector = two_layers(audio.hidden_size, width, bias=c.projector_bias)
    return block(audio_tower=tower, projector=projector, **text.parts())


@family("qwen2_audio", "Qwen2AudioForConditionalGeneration", defaults={}, unused=["audio_token_index"])
def qwen2_audio(c: Config) -> Block:
    """Whisper's encoder, one matrix, and Qwen2 (Qwen2AudioForConditionalGeneration)."""
    names = {value: key for key, value in AUDIO_NAMES.items()} | dict(hidden_size="d_model")
    tower, audio = audio_tower(c, names, "qwen2_audio_encoder")
    text, width = text_model(c, "qwen2", {}, tied=False)
    projector = Linear(d_in=audio.hidden_size, d_out=width, bias=True, category="projector")
    return block(audio_tower=tower, projector=projector, **text.parts())


VOXTRAL = dict(
    vocab_size=131072,
    hidden_size=3072,
    intermediate_size=8192,
    num_hidden_layers=30,
    num_key_value_heads=8,
    head_dim=128,
)


@family("voxtral", "VoxtralForConditionalGeneration", defaults={}, unused=["hidden_size"])
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


@family(
    "moss_transcribe_diarize",
    "MossTranscribeDiarizeForConditionalGeneration",
    defaults=dict(projector_bias=True, audio_merge_size=4, tie_word_embeddings=True),
    unused=["audio_chunk_size"],
)
def moss_transcribe_diarize(c: Config) -> Block:
    """Whisper's encoder, a projector over merged frames, and Qwen3 (MossTranscribeDiarizeForConditionalGeneration)."""
    tower, audio = audio_tower(c, AUDIO_NAMES, "moss_transcribe_diarize_audio", **MOSS_AUDIO)
    text, width = text_model(c, "qwen3", MOSS_TEXT, tied=c.tie_word_embeddings)
    projector = two_layers(audio.hidden_size * c.audio_merge_size, width, bias=c.projector_bias, norm=True)
    return block(audio_tower=tower, projector=projector, **text.parts())


class Heard(NamedTuple):
    """A language model of which the towers are not counted."""

    kind: str
    sizes: Mapping[str, Any] = {}
    completes: bool = False  # the class adds the sizes to a section that omits them
    towers: tuple[str, ...] = ("audio_config",)


TIES = dict(tie_word_embeddings=True)
GRANITE_TOWERS = ("encoder_config", "projector_config")
GRANITE_UNUSED = ["audio_token_index", "downsample_rate", "has_lora_adapter", "window_size"]


@family(
    "glmasr",
    "GlmAsrForConditionalGeneration",
    defaults=TIES,
    fixed=dict(language=Heard("llama", sizes(59264, 2048, 6144, 28, 16, 4), completes=True)),
)
@family(
    "granite_speech",
    "GraniteSpeechForConditionalGeneration",
    defaults=TIES,
    fixed=dict(language=Heard("granite", towers=GRANITE_TOWERS)),
    unused=GRANITE_UNUSED,
)
@family(
    "granite_speech_plus",
    "GraniteSpeechPlusForConditionalGeneration",
    defaults=TIES,
    fixed=dict(language=Heard("granite", towers=GRANITE_TOWERS)),
    unused=GRANITE_UNUSED,
)
@family(
    "omniasr",
    "OmniASRForConditionalGeneration",
    defaults={},
    fixed=dict(tie_word_embeddings=False, language=Heard("llama", sizes(11984, 4096, 2816, 12, 8, 8))),
)
@family(
    "qwen3_asr",
    "Qwen3ASRForConditionalGeneration",
    defaults=TIES,
    fixed=dict(language=Heard("qwen3", sizes(151936, 2048, 6144, 28, 16, 8, 128))),
    unused=["token_classification_bias"],
)
@family(
    "vibevoice_asr",
    "VibeVoiceAsrForConditionalGeneration",
    defaults={},
    fixed=dict(
        tie_word_embeddings=False,
        language=Heard("qwen2", towers=("acoustic_tokenizer_encoder_config", "semantic_tokenizer_encoder_config")),
    ),
    unused=["acoustic_tokenizer_chunk_size"],
)
@family(
    "voxtral_realtime",
    "VoxtralRealtimeForConditionalGeneration",
    defaults=TIES,
    fixed=dict(
        language=Heard(
            "voxtral_realtime_text",
            sizes(131072, 3072, 9216, 26, 32, 8, 128, sliding_window=8192),
            completes=True,
        )
    ),
    unused=["audio_length_per_tok", "default_num_delay_tokens", "downsample_factor", "hidden_size"],
)
@family(
    "got_ocr2",
    "GotOcr2ForConditionalGeneration",
    defaults=TIES,
    fixed=dict(language=Heard("qwen2", sizes(151860, 1024, 2816, 24, 16, 16), towers=("vision_config",))),
    unused=["image_seq_length"],
)
def heard(c: Config) -> Component:
    """A language model that hears or sees: it is counted, towers and projectors are not (GlmAsr...Generation)."""
    kind, stated, completes, towers = c.language
    only_text(c, *towers)
    return text_model(c, kind, stated, tied=c.tie_word_embeddings, completes=completes)[0]


@family(
    "nemo_speechlm",
    "Nemotron3_5TranscribeForConditionalGeneration",
    defaults={},
    fixed=dict(tie_word_embeddings=False),
)
def nemo_speechlm(c: Config) -> Component:
    """Nemotron-H that hears: it is counted, the tower is not (Nemotron3_5TranscribeForConditionalGeneration)."""
    c.require(c.says("text_config"), "text_config is missing", "it holds the language model")
    only_text(c, "audio_config", "word_timestamp_config")
    return text_model(c, "nemotron_h", {}, tied=False)[0]


@family(
    "voxtral_realtime_text",
    "VoxtralRealtimeTextForCausalLM",
    defaults=dict(vocab_size=32000, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32)
    | dict(num_attention_heads=32, num_key_value_heads=8, head_dim=None, sliding_window=4096),
    nullable=["sliding_window"],
)
def voxtral_realtime_text(c: Config) -> Block:
    """Mistral with a norm steered by the delay between hearing and writing (VoxtralRealtimeTextForCausalLM)."""
    d = c.hidden_size
    steered = block("norm", down=Linear(d_in=d, d_out=32), up=Linear(d_in=32, d_out=d))
    attn = gqa(c, window=c.sliding_window)
    one = block(input_norm=rms(c), attn=attn, post_norm=rms(c), steered_norm=steered, ffn=glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, one), norm=rms(c))
