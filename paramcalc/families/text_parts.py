"""Models that see, hear or speak of which the language model alone is counted: it exactly, the rest marked."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.families.registry import family
from paramcalc.families.seeing import any_language_model, only_text
from paramcalc.spec import Component

SEES, HEARS = ("vision_config",), ("audio_config",)


@family("deepseek_vl_hybrid", towers=(*SEES, "high_res_vision_config"), ties="above")
@family("fun_asr_nano", towers=(*HEARS, "adaptor_config"), ties="above")
@family("idefics2", towers=(*SEES, "perceiver_config"), ties="above")
@family("janus", towers=(*SEES, "vq_config"), ties="above")
@family("lfm3_vl", towers=SEES, ties="above")
@family("minicpm_ocr", "minicpmv4_6", "minicpmv4_7", towers=SEES, ties="above")
@family(
    "vibevoice",
    towers=(*HEARS, "semantic_model_config", "diffusion_head_config"),
    ties="section",
)
def text_part(c: Config) -> Component:
    """A language model with a head, beside what sees, hears or speaks: these are not counted (Janus...Generation)."""
    only_text(c, *c.towers)
    return any_language_model(c)[0]
