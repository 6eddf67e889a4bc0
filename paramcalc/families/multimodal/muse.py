"""Muse: a ViT, in Spark an audio encoder too, and a language model."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.view import Config
from paramcalc.families.builders.audio import tower_norm
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision import vit_layer
from paramcalc.families.builders.vision_language import (
    assemble_multimodal,
    own_language_model,
    section_alone,
    text_alone,
)
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Conv1d, Embedding, Linear


@tower("muse_glimmer_vision", "muse_spark_vision")
def muse_vision(v: Config) -> Block:
    """A ViT over patches of a few frames, with a norm before and after its layers (MuseGlimmerVisionModel)."""
    d, side = v.hidden_size, v.patch_size
    return block(
        "vision",
        patches=PatchEmbedding(width=d, channels=3, patch=(side, side), frames=v.patch_temporal, bias=False),
        positions=Embedding(rows=v.pos_emb_height * v.pos_emb_width, width=d),
        pre_norm=layer_norm(v),
        layers=stack("vision", Run(v.num_hidden_layers, vit_layer(v))),
        norm=layer_norm(v),
    )


@tower("muse_spark_audio")
def muse_spark_audio(v: Config) -> Block:
    """Convolutions and FFNs over audio patches of growing length (MuseSparkAudioModel)."""
    sides, widths, depths = (muse_audio_sizes(v, name) for name in ("patch_sizes", "hidden_sizes", "depths"))
    layers, d_in = [], 1
    for side, d, depth in zip(sides, widths, depths, strict=True):
        norm, hidden = tower_norm(d, bias=False), symbolic("d_ff", int(d * v.mlp_ratio), origin="width x mlp_ratio")
        conv = Conv1d(channels=d, kernel=v.conv_kernel_size, per="tower")
        one = block(conv=conv, norm=norm, **two_layers(d, hidden, d))
        patches = Linear(d_in=d_in * side, d_out=d, bias=True)
        layers.append(block(patches=patches, norm=norm, **{f"block_{i}": one for i in range(depth)}))
        d_in = d
    out = v.out_hidden_size
    return block(
        "other",
        layers=stack("audio", layers),
        norm=tower_norm(d_in, bias=False),
        proj=Linear(d_in=d_in, d_out=out, bias=True),
        out_norm=tower_norm(out, bias=False),
    )


MUSE_AUDIO_SIZES = {"patch_sizes": [16, 6, 5, 4], "hidden_sizes": [256, 512, 1024, 2048], "depths": [2, 2, 2, 2]}


def muse_audio_sizes(v: Config, name: str) -> list[int]:
    """One number for each layer of the audio encoder."""
    stated = v.list_of(name)
    found = MUSE_AUDIO_SIZES[name] if stated is None else [v.size(name, size) for size in stated]
    v.require(len(found) >= v.num_hidden_layers, f"{name} has {len(found)} entries for {v.num_hidden_layers} layers")
    return found[: v.num_hidden_layers]


@family("muse_glimmer", "muse_spark", ties="above")
def muse(c: Config) -> Component:
    """A ViT, a three-layer projector, in Spark an audio encoder, Muse (MuseGlimmerForConditionalGeneration)."""
    has_audio = c.family == "muse_spark"
    if text_alone(c):
        return section_alone(c, "vision_config", *(["audio_config"] if has_audio else []))
    vision, _ = tower_in(c, "vision_config")
    audio = tower_in(c, "audio_config")[0] if has_audio else None
    language, d = own_language_model(c)
    between = c.projector_hidden_size
    layers = two_layers(c.out_hidden_size, between, between, bias=False)
    projector = block("projector", **layers, proj=Linear(d_in=between, d_out=d))
    return assemble_multimodal(language, vision_tower=vision, audio_tower=audio, projector=projector)
