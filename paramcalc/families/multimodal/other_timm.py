"""Vision-language models whose tower is a network of timm."""

from __future__ import annotations

from collections.abc import Callable

from paramcalc.config.view import Config
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower_in, tower_schema
from paramcalc.families.builders.vision_language import any_language_model, assemble_multimodal, only_text
from paramcalc.families.registry import family
from paramcalc.families.towers.timm import FASTVIT_SIZES, PERCEPTION_ENCODERS
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block


def timm_vision_language_model(c: Config, projector: Callable[[Config, int], Component]) -> Component:
    """Any language model behind a timm network and a projector, both marked as omitted if the network is unknown."""
    language, d = any_language_model(c)
    declared, given = c.section_schema("vision_config"), c.raw("vision_config") is not None
    kind, read = c.section_kind("vision_config"), tower_schema("timm_wrapper")
    v = c.section("vision_config", read if given else read._replace(defaults={**read.defaults, **declared.defaults}))
    if kind != "timm_wrapper" or v.network not in (*PERCEPTION_ENCODERS, *FASTVIT_SIZES):
        only_text(c, "vision_config")
        return language
    network, v = tower_in(c, "vision_config", given=given)
    return assemble_multimodal(language, vision_tower=network, projector=projector(v, d))


@family("fast_vlm", ties="either")
def fast_vlm(c: Config) -> Component:
    """A convolutional network, two layers, any language model (FastVLM, 2412.13303; FastVlm...Generation)."""

    def projector(v: Config, d: int) -> Block:
        return block("projector", **two_layers(v.required("hidden_size"), d, d, bias=c.multimodal_projector_bias))

    return timm_vision_language_model(c, projector)


@family("perception_lm", ties="first")
def perception_lm(c: Config) -> Component:
    """A Perception Encoder, two layers, any language model (2504.13180; PerceptionLMForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        (a,) = v.sections()
        width = a.raw("embed_dim")
        c.require(
            width is not None, "vision_config.model_args has no embed_dim", "the projector's width follows from it"
        )
        return block("projector", **two_layers(a.size("embed_dim", width), d, d))

    return timm_vision_language_model(c, projector)
