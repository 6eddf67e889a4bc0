"""Llama with images: Llama 4, Llama 3.2 Vision, VideoLLaMA 3."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha
from paramcalc.families.builders.decoder import layer_norm, pre_norm
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import patch_count, patches, vit_layer
from paramcalc.families.builders.vision_language import vision_language_model, wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Param

# -- Llama 4 ---------------------------------------------------------------------------------------------------------


@tower("llama4_vision_model")
def llama4_vision(v: Config) -> Block:
    """A ViT with its class token last, and an MLP with pixel shuffling (Llama4VisionModel)."""
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


@family("llama4", ties="section")
def llama4(c: Config) -> Component:
    """A ViT, one layer, Llama 4 (Llama4ForConditionalGeneration)."""
    return vision_language_model(c, lambda v, d: Linear(d_in=v.vision_output_dim, d_out=d, category="projector"))


# -- Llama 3.2 Vision ------------------------------------------------------------------------------------------------


@tower("mllama_vision_model")
def mllama_vision(v: Config) -> Block:
    """A ViT over image tiles, then gated layers over all tiles (MllamaVisionModel)."""
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


@family("mllama", ties="section")
def mllama(c: Config) -> Component:
    """A ViT over tiles, one layer, Llama with cross attention (MllamaForConditionalGeneration)."""
    return vision_language_model(
        c, lambda v, d: Linear(d_in=v.vision_output_dim, d_out=d, bias=True, category="projector")
    )


# -- VideoLLaMA 3 ----------------------------------------------------------------------------------------------------


@tower("video_llama_3_vision")
def video_llama_3_vision(v: Config) -> Block:
    """SigLIP with rotary positions instead of learned ones (VideoLlama3VisionModel)."""
    layers = stack("vision", Run(v.num_hidden_layers, vit_layer(v)))
    return block("vision", patches=patches(v), layers=layers, norm=layer_norm(v))


@family("video_llama_3", ties="either")
def video_llama_3(c: Config) -> Component:
    """SigLIP for images and video, two layers, Qwen2 (VideoLLaMA 3, 2501.13106)."""
    return wrap_any_language_model(
        c, lambda v, d: block("projector", **two_layers(v.hidden_size, d, d)), any_tower=False
    )
