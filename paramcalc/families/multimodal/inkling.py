"""Inkling with images and audio."""

from __future__ import annotations

from itertools import accumulate, pairwise
from math import isqrt, log
from operator import mul

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.audio import tower_norm
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower, tower_in, tower_schema
from paramcalc.families.builders.vision import layer_scaled_vit, patches, patches_per_merge
from paramcalc.families.builders.vision_language import (
    assemble_multimodal,
    only_text,
    own_language_model,
    section_alone,
    text_alone,
    vision_language_model,
)
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param

# -- Inkling ---------------------------------------------------------------------------------------------------------


@tower("inkling_audio")
def inkling_audio(v: Config) -> Block:
    """A table for each spectrogram bin, indexed by its code (InklingAudioModel)."""
    d = v.text_hidden_size
    table = Embedding(rows=v.num_codebooks * v.codebook_size, width=d)
    return block("other", embed_tokens=table, norm=tower_norm(d, bias=False))


@tower("inkling_vision")
def inkling_vision(v: Config) -> Block:
    """Linear layers that merge a patch of a few frames step by step into one vector (InklingVisionModel)."""
    steps, d = fold_steps(v), v.text_hidden_size
    parts: dict[str, Component] = {}
    for i, ((t, h, channels), (t_next, h_next, wide)) in enumerate(pairwise(steps)):
        last = i == len(steps) - 2
        folded = (t_next // t) * (h_next // h) ** 2
        width = d if last else symbolic(f"c_{i + 1}", wide, origin="the step's channels")
        proj = Linear(d_in=symbolic("folded", channels * folded, origin="channels x places joined"), d_out=width)
        parts[f"layer_{i}"] = block(proj=proj, norm=None if last else Norm(width=width))
    return block("vision", **parts, norm=Norm(width=d))


def fold_scales(v: Config) -> list[tuple[int, int, int]]:
    """Frames, sides and channels from one pixel to a whole patch, one prime factor at a time, sides first."""
    v.require(v.patch_size > 1 and v.temporal_patch_size > 1, "patch_size and temporal_patch_size must be at least 2")
    sides, frames = (list(accumulate(prime_factors(size)[::-1], mul)) for size in (v.patch_size, v.temporal_patch_size))
    areas = [(1, side, -(-side * side * v.num_channels // 64) * 64) for side in sides]
    return [(1, 1, v.num_channels), *areas, *((t, sides[-1], sides[-1] ** 2 * v.num_channels * t * 64) for t in frames)]


def fold_steps(v: Config) -> list[tuple[int, int, int]]:
    """The scale after each layer: the one closest to equal steps of the logarithm of the merged size."""
    known, depth = fold_scales(v), v.num_hidden_layers
    sizes = [log(t * side * side) for t, side, _ in known]
    whole = log(v.patch_size**2 * v.temporal_patch_size * v.num_channels)
    chosen = [0]
    for i in range(1, depth):
        costs = [abs(whole * i / depth - size) for size in sizes]
        best, second = sorted(costs)[:2]
        if second - best < 1e-4:
            v.doubts.append(f"{v.family}: layer {i} of the tower is as close to one scale as to another")
        chosen.append(costs.index(best))
    return [known[i] for i in (*chosen, len(known) - 1)]


def prime_factors(number: int) -> list[int]:
    """The prime factors of a number, the smallest first."""
    factor = next((n for n in range(2, isqrt(number) + 1) if number % n == 0), number)
    return [factor, *prime_factors(number // factor)] if number > 1 else []


@family("inkling_mm_model", ties="above")
def inkling_mm(c: Config) -> Component:
    """Linear layers over patches, a table for audio, Inkling (InklingForConditionalGeneration).

    A tower with fewer layers than scales is not counted: the class assigns them with a solver.
    """
    if text_alone(c):
        return section_alone(c, "vision_config", "audio_config")
    language, d = own_language_model(c)
    kind = c.section_schema("vision_config").kind
    v = c.section("vision_config", tower_schema(kind), family=kind)
    c.raw("mtp_config")
    if v.num_hidden_layers < len(fold_scales(v)):
        only_text(c, "vision_config", "audio_config")
        return language
    audio, _ = tower_in(c, "audio_config", text_hidden_size=d)
    vision, _ = tower_in(c, "vision_config", text_hidden_size=d)
    return assemble_multimodal(language, vision_tower=vision, audio_tower=audio)


# -- Inkling 2 -------------------------------------------------------------------------------------------------------


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
