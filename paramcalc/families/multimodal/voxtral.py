"""Voxtral and Voxtral Realtime."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.audio_language import audio_language_model, audio_text_model, audio_tower, two_matrices
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import require_model_type
from paramcalc.families.builders.vision_language import assemble_multimodal
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block


@family("voxtral")
def voxtral(c: Config) -> Component:
    """Whisper's encoder, two matrices over groups of frames, and Llama (VoxtralForConditionalGeneration)."""
    tower, audio = audio_tower(c)
    text, width = audio_text_model(c, tied=False, completes=True)
    projector = two_matrices(audio.encoder_ffn_dim, width, bias=False)
    return assemble_multimodal(text, audio_tower=tower, projector=projector)


@family("voxtral_realtime")
def voxtral_realtime(c: Config) -> Component:
    """A causal spectrogram encoder, two layers over groups of frames, Mistral (VoxtralRealtime...Generation)."""

    def projector(v: Config, d: int) -> Block:
        return block("projector", **two_layers(v.hidden_size * c.downsample_factor, d, d, bias=False))

    require_model_type(
        c, "text_config", "voxtral_realtime_text"
    )  # the class would pass another model's config to its own layers
    return audio_language_model(c, projector, completes=True)
