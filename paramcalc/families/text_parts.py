"""Models that see, hear or speak of which the language model alone is counted: it exactly, the rest marked."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.families.registry import family
from paramcalc.families.seeing import Named, any_language_model, only_text
from paramcalc.spec import Component

SMALL_QWEN3 = Named(
    "qwen3",
    dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8),
)
SEES, HEARS = ("vision_config",), ("audio_config",)


@family("deepseek_vl_hybrid", text=Named("llama"), towers=(*SEES, "high_res_vision_config"), ties="above")
@family("fun_asr_nano", text=SMALL_QWEN3, towers=(*HEARS, "adaptor_config"), ties="above")
@family("idefics2", text=Named("mistral"), towers=(*SEES, "perceiver_config"), ties="above")
@family("janus", text=Named("llama"), towers=(*SEES, "vq_config"), ties="above")
@family("lfm3_vl", text=Named("lfm3"), towers=SEES, ties="above")
@family("minicpm_ocr", "minicpmv4_6", "minicpmv4_7", text=Named("qwen3_5_text"), towers=SEES, ties="above")
@family(
    "vibevoice",
    text=Named("qwen2"),
    towers=(*HEARS, "semantic_model_config", "diffusion_head_config"),
    ties="section",
)
def text_part(c: Config) -> Component:
    """A language model with a head, beside what sees, hears or speaks: these are not counted (Janus...Generation)."""
    only_text(c, *c.towers)
    return any_language_model(c, c.text)[0]
