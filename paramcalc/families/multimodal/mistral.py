"""Mistral with images."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.projectors import llava_projector_layers
from paramcalc.families.builders.vision_language import vision_language_model, wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear, Norm


@family("mistral3", ties="above")
def mistral3(c: Config) -> Component:
    """Pixtral, merged patches, two layers, Mistral (Mistral3ForConditionalGeneration)."""
    return wrap_any_language_model(c, lambda v, d: patch_merging_projector(c, v, d))


@family("mistral_large4", ties="above")
def mistral_large4(c: Config) -> Component:
    """Mistral 3's tower and projector, Mistral Large 4 (MistralLarge4ForConditionalGeneration)."""
    return vision_language_model(c, lambda v, d: patch_merging_projector(c, v, d), any_tower=True)


def patch_merging_projector(c: Config, v: Config, d: int) -> Block:
    """A norm, a merger of neighbouring patches, and two layers."""
    dv, side = v.hidden_size, c.spatial_merge_size
    merge = Linear(d_in=dv * side * side, d_out=dv)
    return block("projector", norm=Norm(width=dv), merge=merge, **llava_projector_layers(c, v, d))
