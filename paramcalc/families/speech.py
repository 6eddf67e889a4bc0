"""Models that hear, speak or make music: Whisper, MusicGen, Seamless, Moshi."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.dims import named
from paramcalc.families.audio import WHISPER
from paramcalc.families.heads import decoder_head, labels, lm_head, unknown_head
from paramcalc.families.registry import family, get
from paramcalc.families.seeing import only_text
from paramcalc.families.sides import BART, NAMES, UNUSED, Form, layer, side, spectrogram_encoder
from paramcalc.families.skeletons import glu, gqa, layer_norm, pre_norm, rms
from paramcalc.spec import Block, Component, Embedding, Linear, Param, Run, block, stack

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

MUSICGEN = dict(vocab_size=2048, num_codebooks=4, hidden_size=1024) | dict(
    decoder_layers=24, decoder_attention_heads=16, decoder_ffn_dim=4096
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

SEAMLESS = (
    dict(vocab_size=256102, hidden_size=1024, tie_word_embeddings=True)
    | dict(encoder_layers=24, encoder_attention_heads=16, encoder_ffn_dim=8192)
    | dict(decoder_layers=24, decoder_attention_heads=16, decoder_ffn_dim=8192)
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
