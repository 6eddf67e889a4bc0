"""Cosmos 3: Omni and Edge."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.projectors import qwen3_merger, two_layers
from paramcalc.families.builders.vision import patches_per_merge
from paramcalc.families.builders.vision_language import vision_language_model, wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block


@family("cosmos3_omni", ties="above")
def cosmos3_omni(c: Config) -> Component:
    """Qwen3-VL's tower and mergers, and any language model (Cosmos3OmniForConditionalGeneration)."""
    return wrap_any_language_model(c, lambda v, _: qwen3_merger(v, deep=True), any_tower=False)


@family("cosmos3_edge", ties="above")
def cosmos3_edge(c: Config) -> Component:
    """SigLIP 2, two layers over neighbouring patches, Cosmos 3 (Cosmos3EdgeForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        layers = two_layers(v.hidden_size * patches_per_merge(v), c.projector_hidden_size, d)
        return block("projector", norm=layer_norm(v), **layers)

    return vision_language_model(c, projector)
