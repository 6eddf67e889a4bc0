"""Vision transformers (ViT) that several families use."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha
from paramcalc.families.builders.decoder import ignored_fields, layer_norm, layer_scaled, pre_norm, rms
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import height_and_width, patch_count, patches, video_patches, vit_layer
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param

# -- SigLIP, CLIP and ViT --------------------------------------------------------------------------------------------


@tower("siglip_vision_model", "idefics2_vision", "idefics3_vision", "smolvlm_vision")
@tower("granite_docling_vision")
def siglip(v: Config) -> Block:
    """A ViT without a class token, with an optional attention pooling head (SigLIP, 2303.15343; SiglipVisionModel)."""
    return siglip_tower(v, patch_count(v))


@tower("siglip2_vision_model", "cosmos3_edge_vision")
def siglip2(v: Config) -> Block:
    """SigLIP for images of any shape, with interpolated positions (SigLIP 2, 2502.14786; Siglip2VisionModel)."""
    return siglip_tower(v, v.num_patches)


def siglip_tower(v: Config, positions: int) -> Block:
    """SigLIP with this number of positions."""
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


@tower("vit", "deit")
def vit(v: Config) -> Block:
    """The first ViT, with a class token and a pooler; DeiT adds a distillation token (2010.11929; ViTModel)."""
    d, token = v.hidden_size, Param(shape=(1, 1, v.hidden_size))
    layer = pre_norm(layer_norm(v), mha(v, qkv_bias=v.qkv_bias), mlp(v, v.intermediate_size))
    return block(
        "vision",
        class_token=token,
        teacher_token=token if v.distilled else None,
        patches=patches(v),
        positions=Param(shape=(1, patch_count(v) + (2 if v.distilled else 1), d)),
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
        norm=layer_norm(v),
        pooler=Linear(d_in=d, d_out=v.pooler_output_size or d, bias=True),
    )


@tower("beit")
def beit(v: Config) -> Block:
    """A ViT with optional relative positions, per layer or shared, and LayerScale (2106.08254; BeitModel)."""
    d, heads, norm, places = v.hidden_size, v.num_attention_heads, layer_norm(v), patch_grid(v)
    distances = Param(shape=((2 * places[0] - 1) * (2 * places[1] - 1) + 3, heads))
    started = v.raw("layer_scale_init_value")
    v.require(started is None or isinstance(started, int | float), "layer_scale_init_value must be a number")
    join = layer_scaled if started is None or started > 0 else pre_norm
    attn = mha(v, k_bias=False, inner=distances if v.use_relative_position_bias else None)
    layer = join(norm, attn, mlp(v, v.intermediate_size))
    token, rows = Param(shape=(1, 1, d)), places[0] * places[1] + 1
    return block(
        "vision",
        class_token=token,
        mask_token=token if v.use_mask_token else None,
        patches=patches(v),
        positions=Param(shape=(1, rows, d)) if v.use_absolute_position_embeddings else None,
        distances=distances if v.use_shared_relative_position_bias else None,
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
        norm=norm,  # after the mean, if the layers are averaged
    )


def patch_grid(v: Config) -> tuple[int, int]:
    """The number of patches of an image, vertically and horizontally."""
    (height, width), (tall, wide) = height_and_width(v, "image_size"), height_and_width(v, "patch_size")
    return height // tall, width // wide


# -- Pixtral, InternVL and Qwen --------------------------------------------------------------------------------------


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


@tower("internvl_vision", "qianfan_ocr_vision", "intern_vit_6b")
def internvl_vision(v: Config) -> Block:
    """A ViT with a class token and LayerScale (InternVLVisionModel)."""
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


@tower("qwen2_5_vl_vision", "qwen2_5_omni_vision_encoder")
def qwen2_5_vision(v: Config) -> Block:
    """Llama's layer with biases, most layers with windowed attention (Qwen2.5-VL, 2502.13923)."""
    ignored_fields(v, in_chans=v.in_channels)
    layer = pre_norm(rms(v), mha(v), glu(v, bias=True))
    return block(
        "vision", patches=video_patches(v, bias=False), layers=stack("vision", Run(v.num_hidden_layers, layer))
    )


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
