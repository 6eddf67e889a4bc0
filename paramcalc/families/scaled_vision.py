"""Models whose tower has a learned scale behind each part: Step 3.7 and Inkling 2."""

from __future__ import annotations

from paramcalc.components import Conv2d
from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import layer_scaled_vit, patch_count, patches, patches_per_merge
from paramcalc.families.builders.vision_language import vision_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Embedding, Linear, Param


@tower("step3p5_vision")
def step3p5_vision(v: Config) -> Block:
    """A ViT, and two convolutions that shrink the image (Step3p7VisionModel)."""
    d = v.hidden_size
    return block(
        "vision",
        patches=patches(v, bias=False),
        positions=Embedding(rows=patch_count(v), width=d),
        pre_norm=layer_norm(v),
        layers=layer_scaled_vit(v),
        conv_1=Conv2d(channels=2 * d, kernel=3, per_group=d),
        conv_2=Conv2d(channels=4 * d, kernel=3, per_group=2 * d),
    )


@family("step3p7", ties="above")
def step3p7(c: Config) -> Component:
    """A ViT, convolutions, one layer, Step 3.5 (Step3p7ForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Linear:
        return Linear(d_in=4 * v.hidden_size, d_out=d, bias=c.projector_bias, category="projector")

    return vision_language_model(c, projector)


@tower("inkling2_vision")
def inkling2_vision(v: Config) -> Block:
    """A ViT with a class token and a grid of positions (Inkling2VisionModel)."""
    token = Param(shape=(v.hidden_size,))
    return block(
        "vision",
        class_token=token,
        class_position=token,
        patches=patches(v, bias=False),
        positions=Embedding(rows=v.posemb_grid_size * v.posemb_grid_size, width=v.hidden_size),
        pre_norm=layer_norm(v),
        layers=layer_scaled_vit(v, v.intermediate_size),
    )


@family("inkling2", "inkling2_loop", ties="above")
def inkling2(c: Config) -> Component:
    """A ViT, two layers over neighbouring patches, Inkling 2 (Inkling2ForConditionalGeneration)."""

    def projector(v: Config, _: int) -> Block:
        d_in, hidden = v.hidden_size * patches_per_merge(v), v.projection_hidden_dim
        return block("projector", **two_layers(d_in, hidden, v.text_hidden_size, bias=v.projector_bias))

    return vision_language_model(c, projector)
