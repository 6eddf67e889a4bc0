"""Towers that see: the vision transformers inside multimodal models, by the `model_type` of their own section."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Mlp
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import head_layout, mha, sized_attention
from paramcalc.families.builders.decoder import ignored_fields, layer_norm, pre_norm, rms
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.projectors import patch_merger
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import patch_count, patches, patches_per_merge, video_patches, vit_layer
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param

# -- parts -------------------------------------------------------------------------------------------------------


# -- SigLIP, CLIP and their kin ----------------------------------------------------------------------------------


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
