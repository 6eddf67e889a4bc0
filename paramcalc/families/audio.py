"""What models that hear share: Whisper's encoder as a tower, and the language model behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcalc.config import Config, Reading
from paramcalc.families.heads import unknown_head
from paramcalc.families.registry import get
from paramcalc.families.sides import Form, spectrogram_encoder
from paramcalc.spec import Block, Component, Linear, Norm, block

WHISPER = Form(spare_rows=0, embed_norm=False, pre_norm=True, key_bias=False)
AUDIO = dict(hidden_size=1280, encoder_layers=32, encoder_attention_heads=20, encoder_ffn_dim=5120) | dict(
    num_mel_bins=128, max_source_positions=1500
)
AUDIO_NAMES = dict(d_model="hidden_size", encoder_layers="num_hidden_layers") | dict(
    encoder_attention_heads="num_attention_heads", encoder_ffn_dim="intermediate_size"
)


def audio_tower(c: Config, names: Mapping[str, str], *kinds: str, **ours: int) -> tuple[Block, Config]:
    """Whisper's encoder, from audio_config; `kinds`: the model types it may have."""
    section = c.section("audio_config", Reading(AUDIO | ours, names=names, unused=["vocab_size"]))
    kind = section.raw("model_type") or kinds[0]
    c.require(kind in kinds, f"audio_config is a {kind}", "only Whisper's encoder can be counted here")
    return block("other", **spectrogram_encoder(section, WHISPER._replace(norms=None), role="audio").items), section


def text_model(
    c: Config, kind: str, ours: Mapping[str, Any], *, tied: bool, completes: bool = False
) -> tuple[Component, int]:
    """The language model of text_config and its width.

    `kind` and `ours` hold where there is no section; `ours` also for what a section omits where the class
    `completes` it.
    """
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    stated = c.section("text_config", Reading({})).raw("model_type") or kind
    text = get(stated)
    defaults = dict(text.reading.defaults)
    if completes or not c.says("text_config"):
        defaults |= ours
    reading = text.reading._replace(defaults=defaults, fixed={**text.reading.fixed, "tie_word_embeddings": tied})
    section = c.section("text_config", reading, family=stated)
    return text.recipe(section), section.hidden_size


def two_matrices(d_in: int, d: int, *, bias: bool, norm: bool = False) -> Block:
    """A projector of two matrices, perhaps normalised."""
    return block(
        "projector",
        linear_1=Linear(d_in=d_in, d_out=d, bias=bias),
        linear_2=Linear(d_in=d, d_out=d, bias=bias),
        norm=Norm(width=d, bias=True) if norm else None,
    )
