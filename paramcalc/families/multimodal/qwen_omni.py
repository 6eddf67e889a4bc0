"""Qwen's audio-language and omni models: the thinker, which generates text, and the whole, which adds speech."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.audio_language import audio_language_model, audio_text_model, audio_tower
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.projectors import qwen2_5_merger, qwen3_merger, two_layers
from paramcalc.families.builders.towers import tower_in
from paramcalc.families.builders.vision_language import assemble_multimodal, section_alone, text_alone
from paramcalc.families.registry import family, get_family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import block
from paramcalc.tree.leaves import Linear


@family("qwen2_audio")
def qwen2_audio(c: Config) -> Component:
    """Whisper's encoder, one matrix, and Qwen2 (Qwen2AudioForConditionalGeneration)."""
    tower, audio = audio_tower(c)
    text, width = audio_text_model(c, tied=False)
    projector = Linear(d_in=audio.hidden_size, d_out=width, bias=True, category="projector")
    return assemble_multimodal(text, audio_tower=tower, projector=projector)


@family("qwen3_asr")
def qwen3_asr(c: Config) -> Component:
    """A spectrogram encoder over chunks, two layers, Qwen3 (Qwen3ASRForConditionalGeneration)."""
    return audio_language_model(
        c, lambda v, _: block("projector", **two_layers(v.hidden_size, v.hidden_size, v.output_dim))
    )


# -- omni models -----------------------------------------------------------------------------------------------------


def thinker_model(c: Config, generation: str) -> Component:
    """Towers for audio, images and video, and the language model."""
    if text_alone(c):
        return section_alone(c, "audio_config", "vision_config")
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    audio, _ = tower_in(c, "audio_config")
    vision, v = tower_in(c, "vision_config")
    text = get_family(c.section_schema("text_config").kind)
    reading = text.schema._replace(fixed={**text.schema.fixed, "tie_word_embeddings": c.tie_word_embeddings})
    language = text.recipe(c.section("text_config", reading, family=text.name))
    merger = qwen2_5_merger(v) if generation == "qwen2_5_omni" else qwen3_merger(v, deep=True)
    return assemble_multimodal(language, audio_tower=audio, vision_tower=vision, projector=merger)


@family("qwen2_5_omni_thinker", generation="qwen2_5_omni")
@family("qwen3_omni_moe_thinker", generation="qwen3_omni_moe")
def omni_thinker(c: Config) -> Component:
    """Encoders of audio, images and video, mergers, Qwen (Qwen2.5-Omni, 2503.20215; Qwen2_5OmniThinker...)."""
    return thinker_model(c, c.generation)


@family("qwen2_5_omni", generation="qwen2_5_omni", vocoder="token2wav")
@family("qwen3_omni_moe", generation="qwen3_omni_moe", vocoder="code2wav")
def omni(c: Config) -> Component:
    """The thinker, and a talker and a vocoder if audio output is enabled (Qwen2_5OmniForConditionalGeneration)."""
    thinker = thinker_model(c.section("thinker_config"), c.generation)
    if not c.enable_audio_output:
        c.raw("talker_config"), c.raw(f"{c.vocoder}_config")
        return thinker
    talker, _ = tower_in(c, "talker_config")
    vocoder, _ = tower_in(c, f"{c.vocoder}_config")
    return block(**thinker.parts(), talker=talker, vocoder=vocoder)
