"""Audio-language models of other lineages."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, sized_attention
from paramcalc.families.builders.audio import tower_norm
from paramcalc.families.builders.audio_language import audio_language_model, audio_text_model, audio_tower, two_matrices
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision_language import assemble_multimodal
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Conv1d, Linear


@family("audioflamingo3", "musicflamingo")
def audioflamingo3(c: Config) -> Component:
    """Whisper's encoder, two matrices, and a language model (AudioFlamingo3ForConditionalGeneration)."""
    tower, audio = audio_tower(c)
    text, width = audio_text_model(c, tied=False)
    projector = two_matrices(audio.hidden_size, width, bias=c.projector_bias)
    return assemble_multimodal(text, audio_tower=tower, projector=projector)


@family("moss_transcribe_diarize")
def moss_transcribe_diarize(c: Config) -> Component:
    """Whisper's encoder, a projector over merged frames, and Qwen3 (MossTranscribeDiarizeForConditionalGeneration)."""
    tower, audio = audio_tower(c)
    text, width = audio_text_model(c, tied=c.tie_word_embeddings)
    projector = two_matrices(audio.hidden_size * c.audio_merge_size, width, bias=c.projector_bias, norm=True)
    return assemble_multimodal(text, audio_tower=tower, projector=projector)


@family("omniasr")
def omniasr(c: Config) -> Component:
    """wav2vec 2.0, one layer, Llama (OmniASRForConditionalGeneration)."""
    return audio_language_model(c, lambda v, d: Linear(d_in=v.hidden_size, d_out=d, bias=True, category="projector"))


# -- Fun-ASR-Nano ----------------------------------------------------------------------------------------------------


@tower("fun_asr_nano_encoder")
def fun_asr_nano_encoder(v: Config) -> Block:
    """Attention with a memory of near frames; the first layer stacks frames (SAN-M, 2006.01713; FunAsrNanoEncoder)."""
    depth, wide = v.num_hidden_layers, v.num_mel_bins * v.num_stacked_frames
    memory = block(memory=Conv1d(channels=v.hidden_size, kernel=v.fsmn_kernel_size, bias=False))
    last = (depth - v.num_timestamp_prediction_layers - 1, depth - 1)  # of the main layers, of the timestamp layers
    plan = [(i == 0, i in last) for i in range(depth)]
    layers = {
        (first, normed): san_m_layer(v, d_in=wide if first else v.hidden_size, normed=normed, inner=memory)
        for first, normed in dict.fromkeys(plan)
    }
    return block("other", layers=stack("audio", [layers[kind] for kind in plan]))


def san_m_layer(v: Config, *, d_in: int, normed: bool, inner: Component | None) -> Block:
    """Norm, attention from any width, norm, FFN, and an optional last norm."""
    d, norm = v.hidden_size, tower_norm(v.hidden_size)
    attn = sized_attention(d_in, v.num_attention_heads, equal_heads(v), bias=True, out_width=d, inner=inner)
    ffn = mlp(v, v.intermediate_size)
    return block(input_norm=tower_norm(d_in), attn=attn, post_norm=norm, ffn=ffn, norm=norm if normed else None)


@family("fun_asr_nano")
def fun_asr_nano(c: Config) -> Component:
    """SAN-M's encoder, a projector of linear and attention layers, Qwen3 (FunAsrNanoForConditionalGeneration)."""

    def projector(v: Config, _: int) -> Block:
        a = c.section("adaptor_config")
        one = san_m_layer(a, d_in=a.hidden_size, normed=False, inner=None)
        return block(
            "projector",
            **two_layers(v.hidden_size, a.projector_hidden_size, a.hidden_size),
            layers=stack("projector", Run(a.num_hidden_layers, one)),
        )

    return audio_language_model(c, projector)
