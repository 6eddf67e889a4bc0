"""Vision towers with a layout of their own: Segment Anything, Pix2Struct, Swin."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Conv2d, Mlp
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, mha, sized_attention
from paramcalc.families.builders.decoder import layer_norm, pre_norm, rms
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import height_and_width, patches
from paramcalc.families.towers.vision import patch_grid
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@tower("got_ocr2_vision", "pp_chart2table_vision", "pp_formulanet_vision", "sam_vision_model")
def segment_anything(v: Config) -> Block:
    """ViTDet: windows in most layers, relative positions, a neck (Segment Anything, 2304.02643)."""
    side = symbolic("side", v.image_size // v.patch_size, origin="image_size / patch_size")
    hidden = v.intermediate_size or symbolic("d_ff", int(v.hidden_size * v.mlp_ratio), origin="hidden_size x mlp_ratio")

    def layer(reach: int) -> Block:
        distances = Param(shape=(2 * reach - 1, equal_heads(v)))
        relative = block(height=distances, width=distances) if v.use_rel_pos else None
        return pre_norm(layer_norm(v), mha(v, qkv_bias=v.qkv_bias, inner=relative), mlp(v, hidden))

    stated = v.raw("global_attn_indexes") is not None
    everywhere = v.layer_indices("global_attn_indexes") if stated else [2, 5, 8, 11]
    windowed, whole = layer(v.window_size or side), layer(side)
    return block(
        "vision",
        patches=patches(v),
        positions=Param(shape=(side, side, v.hidden_size)) if v.use_abs_pos else None,
        layers=stack("vision", [whole if i in everywhere else windowed for i in range(v.num_hidden_layers)]),
        neck=sam_neck(v),
    )


def sam_neck(v: Config) -> Block:
    """Two convolutions with norms, from the tower's width to a narrower one."""
    d, out = v.hidden_size, v.output_channels
    norm = Norm(width=out, bias=True)
    return block(
        conv_1=Conv2d(channels=out, kernel=1, per_group=d, bias=False),
        norm_1=norm,
        conv_2=Conv2d(channels=out, kernel=3, per_group=out, bias=False),
        norm_2=norm,
    )


@tower("pix2struct_vision_model", "kosmos_2_5_vision_model")
def pix2struct_vision(v: Config) -> Block:
    """Llama's layer with heads of any width, and tables for rows and columns of patches (Pix2StructVisionModel)."""
    places = Embedding(rows=v.seq_len, width=v.hidden_size, sharded=False)
    layer = pre_norm(rms(v), sized_attention(v.hidden_size, v.num_attention_heads, v.head_dim), glu(v))
    return block(
        "vision",
        patches=PatchEmbedding(width=v.hidden_size, channels=v.patch_embed_hidden_size, patch=(1, 1)),
        rows=places,
        columns=places,
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
        norm=rms(v),
    )


# -- Swin ------------------------------------------------------------------------------------------------------------


@tower("swin", "donut-swin")
def swin(v: Config) -> Block:
    """Windowed attention; neighbouring vectors are merged between stages (Swin Transformer, 2103.14030; SwinModel)."""
    depths, heads = v.size_list("depths"), v.size_list("num_heads")
    v.require(0 < len(depths) <= len(heads), f"num_heads has {len(heads)} entries, depths {len(depths)}")
    d, donut, places = v.embed_dim, v.family == "donut-swin", patch_grid(v)
    rows = places[0] * places[1] + (1 if donut else 0)
    stages = []
    for i, depth in enumerate(depths):
        width, last = d * 2**i, i == len(depths) - 1
        stages.append(
            block(
                layers=stack("vision", Run(depth, swin_layer(v, width, heads[i], stored=donut))),
                join_norm=None if last else Norm(width=4 * width, bias=True),
                join=None if last else Linear(d_in=4 * width, d_out=2 * width),
            )
        )
    return block(
        "vision",
        patches=PatchEmbedding(width=d, channels=v.num_channels, patch=height_and_width(v, "patch_size")),
        positions=Param(shape=(1, rows, d)) if v.use_absolute_embeddings else None,
        patch_norm=Norm(width=d, bias=True),
        stages=stack("vision", stages),
        norm=None if donut else Norm(width=swin_width(v), bias=True),
    )


def swin_width(v: Config) -> int:
    """Channels of the last stage."""
    return symbolic("d", v.embed_dim * 2 ** (len(v.list_of("depths") or []) - 1), origin="embed_dim x 2^(stages - 1)")


def swin_layer(v: Config, width: int, heads: int, *, stored: bool) -> Block:
    """Attention with a bias for each distance in a window, and an FFN. `stored`: the distance index is a buffer."""
    v.require(width % heads == 0, f"a stage of {width} channels is not divisible by its {heads} heads")
    reach, places = 2 * v.window_size - 1, v.window_size * v.window_size
    index = Param(shape=(places, places), buffer=True) if stored else None
    inner = block(distances=Param(shape=(reach * reach, heads)), index=index)
    norm, hidden = Norm(width=width, bias=True), symbolic("d_ff", int(v.mlp_ratio * width), origin="mlp_ratio x width")
    d_h = symbolic("d_h", width // heads, origin="width / heads")
    attn = sized_attention(width, heads, d_h, bias=True, qkv_bias=v.qkv_bias, inner=inner)
    return pre_norm(norm, attn, Mlp(width=width, hidden=hidden, gated=False, bias=True))
