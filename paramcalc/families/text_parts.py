"""Models that see, hear or speak of which the language model alone is counted: it exactly, the rest marked."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.families.registry import family
from paramcalc.families.seeing import only_text, own_language_model, section_alone, text_alone
from paramcalc.spec import Component

SEES, HEARS = ("vision_config",), ("audio_config",)
BOTH = (*SEES, *HEARS)


@family("inkling_mm_model", towers=BOTH, ties="above")
def own_text_part(c: Config) -> Component:
    """A language model of one kind with its head, beside towers that are not counted (Molmo2...Generation)."""
    if text_alone(c):
        return section_alone(c, *c.towers)
    only_text(c, *c.towers)
    return own_language_model(c)[0]
