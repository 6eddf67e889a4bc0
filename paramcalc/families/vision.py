"""Towers that see: the vision transformers inside multimodal models, by the `model_type` of their own section."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Mlp
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.schema import ConfigSchema
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import head_layout, mha, sized_attention
from paramcalc.families.builders.decoder import ignored_fields, layer_norm, layer_scaled, pre_norm, rms
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param

# Those that a class may name freely: complete models, with no merger to follow.
STANDALONE_TOWERS = (
    *("clip_vision_model", "idefics3_vision", "internvl_vision", "pixtral"),
    *("siglip2_vision_model", "siglip_vision_model", "smolvlm_vision"),
)


def vision_tower(c: Config, *, any_kind: bool = False) -> tuple[Block, Config]:
    """The tower in vision_config, and the view of that section.

    `any_kind` where the class builds whatever model_type the section names; else it is always the declared one.
    """
    kind = c.section_schema("vision_config").kind
    if any_kind:
        kind = c.section("vision_config", ConfigSchema(dict(model_type=kind))).model_type
        c.require(
            kind in STANDALONE_TOWERS,
            f"vision_config is a {kind}, which cannot be counted",
            f"known: {', '.join(STANDALONE_TOWERS)}",
        )
    return tower_in(c, "vision_config", kind=kind)


# -- parts -------------------------------------------------------------------------------------------------------


def patches(v: Config, *, bias: bool = True) -> PatchEmbedding:
    """One vector for each square patch."""
    p = v.patch_size
    return PatchEmbedding(width=v.hidden_size, channels=v.num_channels, patch=(p, p), bias=bias)


def video_patches(v: Config, width: int | None = None, *, bias: bool = True) -> PatchEmbedding:
    """One vector for each square patch of a few frames."""
    p, frames, d = v.patch_size, v.temporal_patch_size, width or v.hidden_size
    return PatchEmbedding(width=d, channels=v.in_channels, patch=(p, p), frames=frames, bias=bias)


def patch_count(v: Config) -> int:
    """The patches of a square image."""
    side: int = symbolic("side", v.image_size // v.patch_size, origin="image_size / patch_size")
    return side * side


def vit_layer(v: Config) -> Block:
    """ViT's layer: norms with a bias, attention and a plain FFN with biases everywhere."""
    return pre_norm(layer_norm(v), mha(v), mlp(v, v.intermediate_size))


def patches_per_merge(v: Config) -> int:
    """Vectors that a merger joins into one."""
    side: int = v.spatial_merge_size
    return side * side


def two_layers(d_in: int, hidden: int, d_out: int, *, bias: bool = True) -> dict[str, Component]:
    """From one width to another through a third."""
    up, down = Linear(d_in=d_in, d_out=hidden, bias=bias), Linear(d_in=hidden, d_out=d_out, bias=bias)
    return {"linear_1": up, "linear_2": down}


# -- SigLIP, CLIP and their kin ----------------------------------------------------------------------------------


@tower("siglip_vision_model", "idefics2_vision", "idefics3_vision", "smolvlm_vision")
@tower("granite_docling_vision")
def siglip(v: Config) -> Block:
    """A ViT without a class token, and perhaps an attention pooling head (SigLIP, 2303.15343; SiglipVisionModel)."""
    return siglip_tower(v, patch_count(v))


@tower("siglip2_vision_model", "cosmos3_edge_vision")
def siglip2(v: Config) -> Block:
    """SigLIP over images of any shape, its positions stretched to each (SigLIP 2, 2502.14786; Siglip2VisionModel)."""
    return siglip_tower(v, v.num_patches)


def siglip_tower(v: Config, positions: int) -> Block:
    """SigLIP with so many positions."""
    d = v.hidden_size
    probe = Param(shape=(1, 1, d))
    pooling = block(probe=probe, attn=mha(v), norm=layer_norm(v), ffn=mlp(v, v.intermediate_size))
    return block(
        "vision",
        patches=patches(v),
        positions=Embedding(rows=positions, width=d),
        layers=stack("vision", Run(v.num_hidden_layers, vit_layer(v))),
        norm=layer_norm(v),
        pooling=pooling if v.vision_use_head else None,
    )


def gemma3_projector(v: Config, d_out: int) -> Block:
    """Gemma 3's projector: patches are averaged, normalised and projected (Gemma3MultiModalProjector)."""
    return block("projector", norm=rms(v), weight=Param(shape=(v.hidden_size, d_out)))


@tower("clip_vision_model", "git_vision_model", "kosmos_2_vision_model", "idefics_vision")
def clip(v: Config) -> Block:
    """A ViT with a class token and a norm before its layers (CLIP, 2103.00020; CLIPVisionModel)."""
    return block(
        "vision",
        class_token=Param(shape=(v.hidden_size,)),
        patches=patches(v, bias=False),
        positions=Embedding(rows=patch_count(v) + 1, width=v.hidden_size),
        pre_norm=layer_norm(v),
        layers=stack("vision", Run(v.num_hidden_layers, vit_layer(v))),
        norm=layer_norm(v),
    )


@tower("pixtral")
def pixtral(v: Config) -> Block:
    """Llama's layer with rotary positions in two dimensions (Pixtral, 2410.07073; PixtralVisionModel)."""
    layer = pre_norm(rms(v), mha(v, qkv_bias=False, out_bias=False), glu(v))
    return block(
        "vision",
        patches=patches(v, bias=False),
        pre_norm=rms(v),
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
    )


# -- Llama -------------------------------------------------------------------------------------------------------


@tower("llama4_vision_model")
def llama4_vision(v: Config) -> Block:
    """A ViT with a class token behind the others, and a pixel-shuffling MLP (Llama4VisionModel)."""
    d, out = v.hidden_size, v.projector_output_dim
    adapter = block(up=Linear(d_in=v.intermediate_size, d_out=v.projector_input_dim), down=Linear(d_in=out, d_out=out))
    return block(
        "vision",
        patches=patches(v, bias=False),
        class_token=Param(shape=(d,)),
        positions=Param(shape=(patch_count(v) + 1, d)),
        pre_norm=layer_norm(v),
        layers=stack("vision", Run(v.num_hidden_layers, vit_layer(v))),
        norm=layer_norm(v),
        adapter=adapter,
    )


@tower("mllama_vision_model")
def mllama_vision(v: Config) -> Block:
    """A ViT over tiles of an image, then gated layers over all tiles (MllamaVisionModel)."""
    d, tiles, tokens = v.hidden_size, v.max_num_tiles, patch_count(v) + 1
    shapes = v.list_of("supported_aspect_ratios")
    c_shapes = symbolic("aspects", 8 if shapes is None else len(shapes), origin="length of supported_aspect_ratios")
    v.require(shapes is not None or tiles == 4, "max_num_tiles must be 4 where supported_aspect_ratios is not stated")
    gate, kinds = Param(shape=(1,)), c_shapes + 1
    attn = mha(v, qkv_bias=False, out_bias=False)
    layer = pre_norm(layer_norm(v), attn, mlp(v, v.intermediate_size))
    tile_table = block(table=Embedding(rows=kinds, width=tiles * d), gate=gate)
    return block(
        "vision",
        patches=patches(v, bias=False),
        pre_tiles=tile_table,
        class_token=Param(shape=(d,)),
        positions=block(
            gate=gate, table=Param(shape=(tokens, d)), tiles=Embedding(rows=kinds, width=tiles * tokens * d)
        ),
        pre_norm=layer_norm(v),
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
        norm=layer_norm(v),
        post_tiles=tile_table,
        global_layers=stack(
            "global vision", Run(v.num_global_layers, block(**layer.items, attn_gate=gate, ffn_gate=gate))
        ),
    )


# -- Qwen and GLM: a merger follows, which is the projector's -----------------------------------------------------


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
    """Joins neighbouring vectors and projects them."""
    d = v.embed_dim
    return patch_merger(Norm(width=d, bias=True), d * patches_per_merge(v), v.hidden_size)


@tower("qwen2_5_vl_vision", "qwen2_5_omni_vision_encoder")
def qwen2_5_vision(v: Config) -> Block:
    """Llama's layer with biases, most of them within windows (Qwen2.5-VL, 2502.13923)."""
    ignored_fields(v, in_chans=v.in_channels)
    layer = pre_norm(rms(v), mha(v), glu(v, bias=True))
    return block(
        "vision", patches=video_patches(v, bias=False), layers=stack("vision", Run(v.num_hidden_layers, layer))
    )


def qwen2_5_merger(v: Config) -> Block:
    """Joins neighbouring vectors and projects them."""
    return patch_merger(rms(v), v.hidden_size * patches_per_merge(v), v.out_hidden_size)


@tower("qwen3_vl_vision", "qwen3_vl_moe_vision", "qwen3_omni_moe_vision_encoder")
@tower("qwen3_5_vision", "qwen3_5_moe_vision", "qwen4_exp_vision", "cohere_compass_vision")
def qwen3_vision(v: Config) -> Block:
    """A ViT with learned and rotary positions (Qwen3VLVisionModel)."""
    return block(
        "vision",
        patches=video_patches(v),
        positions=Embedding(rows=v.num_position_embeddings, width=v.hidden_size),
        layers=stack("vision", Run(v.num_hidden_layers, vit_layer(v))),
    )


def qwen3_merger(v: Config, *, deep: bool) -> Block:
    """Joins neighbouring vectors and projects them; once more for each layer whose output feeds the decoder's."""
    joined = v.hidden_size * patches_per_merge(v)
    last = patch_merger(layer_norm(v), joined, v.out_hidden_size)
    if not deep:
        return last
    tapped = v.list_of("deepstack_visual_indexes")
    each = patch_merger(Norm(width=joined, bias=True), joined, v.out_hidden_size)
    return block(
        "projector", **last.items, **{f"deepstack_{i}": each for i in range(3 if tapped is None else len(tapped))}
    )


def patch_merger(norm: Norm, joined: int, d_out: int) -> Block:
    """A norm, and two layers over vectors that lie beside each other."""
    return block("projector", norm=norm, **two_layers(joined, joined, d_out))


@tower("glm4v_vision", "glm4v_moe_vision")
def glm4v_vision(v: Config) -> Block:
    """Llama's layer with learned and rotary positions; intermediate_size is the merger's (Glm4vVisionModel)."""
    attn = mha(v, qkv_bias=v.attention_bias, out_bias=False)
    return block(
        "vision",
        patches=video_patches(v),
        post_conv_norm=rms(v),
        positions=Embedding(rows=patch_count(v), width=v.hidden_size),
        layers=stack("vision", Run(v.num_hidden_layers, pre_norm(rms(v), attn, glu(v, v.out_hidden_size)))),
        norm=rms(v),
    )


def glm4v_merger(v: Config, hidden: int) -> Block:
    """A convolution over neighbouring vectors, a projection with a norm, and a gated FFN of this width."""
    out, side = v.out_hidden_size, v.spatial_merge_size
    return block(
        "projector",
        downsample=PatchEmbedding(width=out, channels=v.hidden_size, patch=(side, side)),
        proj=Linear(d_in=out, d_out=out),
        norm=Norm(width=out, bias=True),
        ffn=Mlp(width=out, hidden=hidden, gated=True),
    )


# -- InternVL ----------------------------------------------------------------------------------------------------


@tower("internvl_vision", "qianfan_ocr_vision", "intern_vit_6b")
def internvl_vision(v: Config) -> Block:
    """A ViT with a class token and a learned scale behind each part (InternVLVisionModel)."""
    d, bias = v.hidden_size, v.attention_bias
    v.require(
        v.norm_type in ("layer_norm", "rms_norm"), f"norm_type {v.norm_type!r} is neither layer_norm nor rms_norm"
    )
    norm = Norm(width=d, bias=v.norm_type == "layer_norm")
    image, patch = height_and_width(v, "image_size"), height_and_width(v, "patch_size")
    count = symbolic("patches", (image[0] // patch[0]) * (image[1] // patch[1]), origin="image_size / patch_size")
    token, qk_norm = Param(shape=(1, 1, d)), Norm(width=d) if v.use_qk_norm else None
    attn = mha(v, qkv_bias=bias, qk_norm=qk_norm)
    ffn = mlp(v, v.intermediate_size)
    layer = layer_scaled(norm, attn, ffn)
    return block(
        "vision",
        class_token=token,
        mask_token=token if v.use_mask_token else None,
        patches=PatchEmbedding(width=d, channels=v.num_channels, patch=patch),
        positions=Param(shape=(1, count + 1, d)) if v.use_absolute_position_embeddings else None,
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
        norm=None if v.use_mean_pooling else layer_norm(v),
    )


def height_and_width(v: Config, name: str) -> tuple[int, int]:
    """Height and width: a pair, or one number for both."""
    if not isinstance(v.raw(name), list):
        both = getattr(v, name)
        return both, both
    sides = [v.size(name, side) for side in v.list_of(name) or ()]
    v.require(len(sides) == 2, f"{name} has {len(sides)} entries, not height and width")
    return sides[0], sides[1]
