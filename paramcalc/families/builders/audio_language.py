"""Parts of audio-language models: Whisper's encoder as a tower, and the language model behind it."""

from __future__ import annotations

from collections.abc import Callable

from paramcalc.config.view import Config
from paramcalc.families.builders.encoder_decoder import BartLayout, spectrogram_encoder
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import assume, tower_in
from paramcalc.families.builders.vision_language import assemble_multimodal, was_untied_in_v4
from paramcalc.families.registry import get_family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Norm

WHISPER_LAYOUT = BartLayout(spare_rows=0, embed_norm=False, pre_norm=True, key_bias=False)


def audio_tower(c: Config) -> tuple[Block, Config]:
    """Whisper's encoder, from audio_config."""
    section, declared = c.section("audio_config"), c.section_schema("audio_config")
    kind = section.raw("model_type") or declared.kind
    known = kind in (declared.kind, *declared.spellings)
    c.require(known, f"audio_config is a {kind}", "only Whisper's encoder can be counted here")
    encoder = spectrogram_encoder(section, WHISPER_LAYOUT._replace(norms=None), role="audio")
    tower = block("other", **encoder.items)
    assume(c, "audio_config", kind, tower)
    return tower, section


def audio_text_model(c: Config, *, tied: bool, completes: bool = False) -> tuple[Component, int]:
    """The language model of text_config and its width.

    If there is no section, the declared kind and sizes hold; if the class `completes` a section, the sizes also replace
    omitted fields. An explicit null is kept if the language model has a rule for it.
    """
    if c.head not in ("seq2seq_lm", "token_classification", "none"):
        raise unknown_head(c)
    declared = c.section_schema("text_config")
    stated = c.section_kind("text_config")
    text = get_family(stated)
    defaults, view = dict(text.schema.defaults), c.section("text_config", text.schema)
    if completes or c.raw("text_config") is None:
        defaults |= {key: value for key, value in declared.defaults.items() if defaults.get(key) or not view.has(key)}
    fixed = {**text.schema.fixed, "tie_word_embeddings": tied and not was_untied_in_v4(c, view)}
    reading = text.schema._replace(defaults=defaults, fixed=fixed)
    section = c.section("text_config", reading, family=stated)
    return text.recipe(section), section.hidden_size


def two_matrices(d_in: int, d: int, *, bias: bool, norm: bool = False) -> Block:
    """A projector of two matrices and an optional norm."""
    after = Norm(width=d, bias=True) if norm else None
    return block("projector", **two_layers(d_in, d, d, bias=bias), norm=after)


def audio_language_model(
    c: Config, projector: Callable[[Config, int], Component], *, completes: bool = False
) -> Component:
    """A tower of one kind, the projector of the class, and any language model.

    `completes`: the class adds its own sizes to a text_config that omits them.
    """
    tower, v = tower_in(c, "audio_config")
    language, width = audio_text_model(c, tied=c.tie_word_embeddings, completes=completes)
    return assemble_multimodal(language, audio_tower=tower, projector=projector(v, width))
