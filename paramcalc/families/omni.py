"""Qwen's models that see and hear: the thinker, which writes, and the whole, which speaks too."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.projectors import qwen2_5_merger, qwen3_merger
from paramcalc.families.builders.towers import tower_in
from paramcalc.families.builders.vision_language import assemble_multimodal, section_alone, text_alone
from paramcalc.families.registry import family, get_family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import block


def thinker_model(c: Config, kin: str) -> Component:
    """Towers for sound, images and video, and the language model."""
    if text_alone(c):
        return section_alone(c, "audio_config", "vision_config")
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    heard, _ = tower_in(c, "audio_config")
    seen, v = tower_in(c, "vision_config")
    text = get_family(c.section_schema("text_config").kind)
    reading = text.schema._replace(fixed={**text.schema.fixed, "tie_word_embeddings": c.tie_word_embeddings})
    language = text.recipe(c.section("text_config", reading, family=text.name))
    merger = qwen2_5_merger(v) if kin == "qwen2_5_omni" else qwen3_merger(v, deep=True)
    return assemble_multimodal(language, audio_tower=heard, vision_tower=seen, projector=merger)


@family("qwen2_5_omni_thinker", kin="qwen2_5_omni")
@family("qwen3_omni_moe_thinker", kin="qwen3_omni_moe")
def omni_thinker(c: Config) -> Component:
    """Encoders of sound, images and video, mergers, Qwen (Qwen2.5-Omni, 2503.20215; Qwen2_5OmniThinker...)."""
    return thinker_model(c, c.kin)


@family("qwen2_5_omni", kin="qwen2_5_omni", vocoder="token2wav")
@family("qwen3_omni_moe", kin="qwen3_omni_moe", vocoder="code2wav")
def omni(c: Config) -> Component:
    """The thinker, and where sound is made a talker and a vocoder (Qwen2_5OmniForConditionalGeneration)."""
    whole = thinker_model(c.section("thinker_config"), c.kin)
    if not c.enable_audio_output:
        c.raw("talker_config"), c.raw(f"{c.vocoder}_config")
        return whole
    talker, _ = tower_in(c, "talker_config")
    vocoder, _ = tower_in(c, f"{c.vocoder}_config")
    return block(**whole.parts(), talker=talker, vocoder=vocoder)
