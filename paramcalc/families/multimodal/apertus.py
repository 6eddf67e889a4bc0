"""Apertus 1.5: a language model over image and audio codes."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.towers import tower_in
from paramcalc.families.builders.vision_language import (
    assemble_multimodal,
    own_language_model,
    section_alone,
    text_alone,
)
from paramcalc.families.registry import family
from paramcalc.tree.component import Component


@family("apertus1p5", ties="above")
def apertus1p5(c: Config) -> Component:
    """Apertus over image and audio codes, with both tokenizers (Apertus1p5ForConditionalGeneration)."""
    if text_alone(c):
        return section_alone(c, "vision_config", "audio_config")
    (images, _), (audio, _) = tower_in(c, "vision_config"), tower_in(c, "audio_config")
    return assemble_multimodal(own_language_model(c)[0], image_tokenizer=images, audio_tokenizer=audio)
