"""Models that see or hear: a language model in a section of the config, beside towers and projectors."""

from __future__ import annotations

from typing import Any

from paramcalc.config import Config
from paramcalc.families.registry import family, get
from paramcalc.spec import Component


def language_model(c: Config, section: str, model_type: str, **fixed: Any) -> Component:
    """The language model of a nested config, by the recipe of its own family.

    `fixed` are fields that the whole file decides and the section cannot: who ties the head, most often.
    """
    text = get(model_type)
    reading = text.reading._replace(fixed={**text.reading.fixed, **fixed})
    return text.recipe(c.section(section, reading, family=model_type))


def only_text(c: Config, *towers: str) -> None:
    """Mark a count that leaves out the towers described in these sections."""
    for tower in towers:
        c.raw(tower)
    c.doubts.append(f"{c.family}: the language model is counted; towers and projectors are not")


@family("gemma3", "Gemma3ForConditionalGeneration", defaults=dict(tie_word_embeddings=True))
def gemma3(c: Config) -> Component:
    """Gemma 3 with a vision tower: the language model is counted (Gemma3ForConditionalGeneration)."""
    only_text(c, "vision_config")
    return language_model(c, "text_config", "gemma3_text", tie_word_embeddings=c.tie_word_embeddings)
