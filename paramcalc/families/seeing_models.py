"""More models that see, each with a tower of its own before a language model of its own."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Conv2d
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.schema import ConfigSchema
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, qk_norm_per_head, sized_attention
from paramcalc.families.builders.decoder import ignored_fields, layer_norm, pre_norm, rms
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.layer_types import FULL, mixer_types
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision import height_and_width, patches, patches_per_merge, video_patches, vit_layer
from paramcalc.families.builders.vision_language import (
    assemble_multimodal,
    own_language_model,
    section_alone,
    text_alone,
    vision_language_model,
    wrap_any_language_model,
)
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param

# -- Molmo 2 -----------------------------------------------------------------------------------------------------


@tower("molmo2_vision")
def molmo2_vision(v: Config) -> Block:
    """A ViT with heads of any width and no norm at its end (Molmo2VisionModel)."""
    height, width = height_and_width(v, "image_size") if v.raw("image_size") is not None else (378, 378)
    made = (height // v.patch_size) * (width // v.patch_size)
    rows = v.num_position_embeddings or symbolic("patches", made, origin="image_size / patch_size")
    layer = pre_norm(layer_norm(v), gqa(v, bias=v.attention_bias), mlp(v, v.intermediate_size))
    return block(
        "vision",
        patches=patches(v),
        positions=Param(shape=(rows, v.hidden_size)),
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
    )


@family("molmo2", ties="above")
def molmo2(c: Config) -> Component:
    """A ViT of which some layers are pooled by attention, a gated projection, Qwen3 or OLMo (Molmo 2)."""
    a = c.section("adapter_config")
    taps = a.layer_indices("vision_feature_layer") or [24, 18]
    if text_alone(c):
        c.raw("vision_config")
        return section_alone(c, "vit_config")
    if c.raw("vision_config") is None and c.raw("vit_config") is not None:  # older files keep layers that are not built
        depth = c.section("vit_config", ConfigSchema({"num_hidden_layers": 25})).num_hidden_layers
        last = symbolic("depth", max(tap % depth for tap in taps) + 1, origin="last layer in vit_layers")
        seen, _ = tower_in(c, "vit_config", num_hidden_layers=last)
    else:
        seen, _ = tower_in(c, "vision_config")
    language, _ = own_language_model(c)
    d, bias, out = a.hidden_size, a.attention_bias, a.text_hidden_size
    options = dict(kv_heads=a.num_key_value_heads, bias=bias, source="cross", out_width=d)
    up = Linear(d_in=d, d_out=a.intermediate_size, bias=a.mlp_bias)
    projector = block(
        "projector",
        pooling=sized_attention(d * len(taps), a.num_attention_heads, a.head_dim, **options),
        gate=up,
        up=up,
        down=Linear(d_in=a.intermediate_size, d_out=out),
    )
    return assemble_multimodal(language, vision_tower=seen, projector=projector)


# -- Hunyuan -----------------------------------------------------------------------------------------------------


@tower("hunyuan_vl_vision", "hy_v4_vl_vision")
def hunyuan_vision(v: Config) -> Block:
    """A ViT with positions for the largest image (HunYuanVLVisionTransformer)."""
    side = symbolic("side", v.max_image_size // v.patch_size, origin="max_image_size / patch_size")
    return block(
        "vision",
        patches=patches(v),
        positions=Embedding(rows=side * side + 1, width=v.hidden_size),
        layers=stack("vision", Run(v.num_hidden_layers, vit_layer(v))),
    )


@family("hunyuan_vl", ties="either")
def hunyuan_vl(c: Config) -> Component:
    """A ViT, convolutions over neighbouring patches, Hunyuan's dense decoder; older files are flat (HunYuanVL...)."""
    if c.raw("text_config") is None:
        ignored_fields(c, tie_word_embeddings=True)

    def projector(v: Config, d: int) -> Block:
        dv, mark = v.hidden_size, Param(shape=(d,))
        return block(
            "projector",
            norm=rms(v),
            conv_1=Conv2d(channels=2 * dv, kernel=v.spatial_merge_size, per_group=dv),
            conv_2=Conv2d(channels=4 * dv, kernel=1, per_group=2 * dv),
            newline=Param(shape=(4 * dv,)),
            proj=Linear(d_in=4 * dv, d_out=d, bias=True),
            begin=mark,
            end=mark,
            separator=mark,
            out_norm=Norm(width=d),
        )

    return vision_language_model(c, projector, flat=True)


@family("hy_v4_vl", ties="above")
def hy_v4_vl(c: Config) -> Component:
    """Hunyuan's ViT, two convolutions, HY 4 (HYV4VLForConditionalGeneration)."""

    def projector(v: Config, _: int) -> Block:
        wide, out = v.hidden_size * patches_per_merge(v), v.out_hidden_size
        return block(
            "projector",
            norm=rms(v),
            conv_1=Conv2d(channels=wide, kernel=v.spatial_merge_size, per_group=v.hidden_size),
            conv_2=Conv2d(channels=out, kernel=1, per_group=wide),
            newline=Param(shape=(out,)),
        )

    return vision_language_model(c, projector)


# -- ERNIE 4.5 ---------------------------------------------------------------------------------------------------


@tower("ernie4_5_vl_moe_vision")
def ernie4_5_vl_vision(v: Config) -> Block:
    """A ViT with rotary positions (Ernie4_5_VLMoeVisionTransformerPretrainedModel)."""
    patch = PatchEmbedding(width=v.hidden_size, channels=v.in_channels, patch=(v.patch_size, v.patch_size), bias=False)
    layers = stack("vision", Run(v.num_hidden_layers, vit_layer(v)))
    return block("vision", patches=patch, layers=layers, norm=layer_norm(v))


@family("ernie4_5_vl_moe", ties="above")
def ernie4_5_vl_moe(c: Config) -> Component:
    """A ViT, mergers of neighbouring patches and frames, ERNIE (ERNIE 4.5; Ernie4_5_VLMoe...Generation)."""

    def projector(v: Config, d: int) -> Block:
        wide = v.hidden_size * patches_per_merge(v)
        norm = Norm(width=wide, bias=True)
        return block(
            "projector",
            space=block(**two_layers(wide, wide, wide), norm=norm),
            time=block(**two_layers(wide * v.temporal_merge_size, wide, wide), norm=norm),
            proj=Linear(d_in=wide, d_out=d, bias=True),
            norm=Norm(width=d),
        )

    return vision_language_model(c, projector)


# -- LFM 3 -------------------------------------------------------------------------------------------------------


@tower("lfm3_vl_vision")
def lfm3_vl_vision(v: Config) -> Block:
    """Short convolutions over the image in most layers, attention in a few (Lfm3VlVisionModel)."""
    d, kernel = v.hidden_size, v.conv_kernel_size
    conv = block(
        in_proj=Linear(d_in=d, d_out=3 * d),
        conv=Conv2d(channels=d, kernel=kernel, bias=False),
        out_proj=Linear(d_in=d, d_out=d),
    )
    parts = {FULL: qk_norm_per_head(v), "conv": conv}
    default = ["conv" if i < 2 or i % 2 else FULL for i in range(v.num_hidden_layers)]
    layers = {word: pre_norm(rms(v), part, glu(v)) for word, part in parts.items()}
    words = mixer_types(v, default, tuple(layers))
    return block(
        "vision",
        patches=video_patches(v, bias=False),
        norm=rms(v),
        layers=stack("vision", [layers[word] for word in words]),
    )


@family("lfm3_vl", ties="above")
def lfm3_vl(c: Config) -> Component:
    """A hybrid tower, two layers over neighbouring patches, LFM3 (Lfm3VlForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        layers = two_layers(v.hidden_size * patches_per_merge(v), c.projector_hidden_size, d, bias=c.projector_bias)
        return block("projector", norm=layer_norm(v), **layers)

    return wrap_any_language_model(c, projector, any_tower=False)


# -- MiniMax M3 and Cosmos 3 -------------------------------------------------------------------------------------


@tower("minimax_m3_vl_vision")
def minimax_m3_vision(v: Config) -> Block:
    """A ViT over patches of two frames, with a norm before its layers (MiniMaxM3VLVisionModel)."""
    layers = stack("vision", Run(v.num_hidden_layers, vit_layer(v)))
    return block("vision", patches=video_patches(v, bias=False), pre_norm=layer_norm(v), layers=layers)


@family("minimax_m3_vl", ties="either")
def minimax_m3_vl(c: Config) -> Component:
    """A ViT, two layers, two more over neighbouring patches, MiniMax M3 (MiniMaxM3Sparse...Generation)."""

    def projector(v: Config, d: int) -> Block:
        hidden = c.projector_hidden_size
        one, merged = two_layers(v.hidden_size, hidden, d), two_layers(d * patches_per_merge(v), hidden, d)
        return block("projector", **one, merger=block(**merged))

    return vision_language_model(c, projector)


@family("cosmos3_edge", ties="above")
def cosmos3_edge(c: Config) -> Component:
    """SigLIP 2, two layers over neighbouring patches, Cosmos 3 (Cosmos3EdgeForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        layers = two_layers(v.hidden_size * patches_per_merge(v), c.projector_hidden_size, d)
        return block("projector", norm=layer_norm(v), **layers)

    return vision_language_model(c, projector)
