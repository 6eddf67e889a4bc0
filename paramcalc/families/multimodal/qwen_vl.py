"""Qwen's vision-language models."""

from __future__ import annotations

from paramcalc.components import Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import head_layout, sized_attention
from paramcalc.families.builders.decoder import ignored_fields, pre_norm
from paramcalc.families.builders.projectors import patch_merger, qwen2_5_merger, qwen3_merger
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import patches_per_merge, video_patches
from paramcalc.families.builders.vision_language import vision_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Norm


@tower("qwen2_vl_vision")
def qwen2_vision(v: Config) -> Block:
    """A ViT with rotary positions; hidden_size is the language model's (Qwen2-VL, 2409.12191)."""
    ignored_fields(v, in_chans=v.in_channels)
    d = v.embed_dim
    heads, channels = head_layout(v, d)
    attn = sized_attention(d, heads, channels, bias=True)
    layer = pre_norm(Norm(width=d, bias=True), attn, Mlp(width=d, hidden=d * v.mlp_ratio, gated=False, bias=True))
    return block(
        "vision", patches=video_patches(v, d, bias=False), layers=stack("vision", Run(v.num_hidden_layers, layer))
    )


def qwen2_merger(v: Config) -> Block:
    """Qwen2-VL's merger: neighbouring vectors are joined and projected."""
    d = v.embed_dim
    return patch_merger(Norm(width=d, bias=True), d * patches_per_merge(v), v.hidden_size)


@family("qwen2_vl", ties="either")
def qwen2_vl(c: Config) -> Component:
    """A ViT over images and video, a merger, Qwen2 (Qwen2VLForConditionalGeneration)."""
    return vision_language_model(c, lambda v, _: qwen2_merger(v), flat=True)


@family("qwen2_5_vl", ties="either")
def qwen2_5_vl(c: Config) -> Component:
    """A tower with windowed attention, a merger, Qwen2 (Qwen2_5_VLForConditionalGeneration)."""
    return vision_language_model(c, lambda v, _: qwen2_5_merger(v), flat=True)


@family("qwen3_vl", "qwen3_vl_moe", "cohere_compass", ties="above")
def qwen3_vl(c: Config) -> Component:
    """A ViT, mergers for several of its layers, Qwen3 (Qwen3VLForConditionalGeneration)."""
    return vision_language_model(c, lambda v, _: qwen3_merger(v, deep=True))


@family("qwen3_5", "qwen3_5_moe", "qwen4_exp", ties="above")
def qwen3_5(c: Config) -> Component:
    """A ViT, a merger, Qwen 3.5 or 4 (Qwen3_5ForConditionalGeneration)."""
    return vision_language_model(c, lambda v, _: qwen3_merger(v, deep=False))
