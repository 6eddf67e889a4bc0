"""Florence 2: attention between places and between channels in turn, before BART."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Conv2d, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import sized_attention
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision_language import any_language_model, assemble_multimodal
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param

STAGE_DEFAULTS: dict[str, list[int]] = {
    "embed_dim": [128, 256, 512, 1024],
    "depths": [1, 1, 9, 1],
    "patch_size": [7, 3, 3, 3],
    "num_heads": [4, 8, 16, 32],
    "num_groups": [4, 8, 16, 32],
}


def stage_values(v: Config, name: str) -> list[int]:
    """One number for each stage of the tower."""
    stated = v.list_of(name)
    return STAGE_DEFAULTS[name] if stated is None else [v.size(name, number) for number in stated]


@tower("florence_vision")
def davit(v: Config) -> Block:
    """Stages of windowed attention and attention between channels (DaViT, 2204.03645; Florence2VisionBackbone)."""
    first = v.list_of("patch_prenorm")
    norms_first = [False, True, True, True] if first is None else [bool(one) for one in first]
    parts: dict[str, Component] = {}
    seen = v.in_channels
    stages = zip(*(stage_values(v, name) for name in STAGE_DEFAULTS), norms_first, strict=True)
    for i, (d, depth, side, heads, groups, norm_first) in enumerate(stages):
        parts[f"conv_{i}"] = Conv2d(channels=d, kernel=side, per_group=seen)
        parts[f"norm_{i}"] = Norm(width=seen if norm_first else d, bias=True)
        both = block(places=davit_block(v, d, heads), channels=davit_block(v, d, groups))
        parts[f"stage_{i}"] = stack("vision", Run(depth, both))
        seen = d
    return block("vision", **parts)


def davit_block(v: Config, d: int, heads: int) -> Block:
    """Attention and FFN, each behind a depthwise convolution and a norm."""
    norm, conv = Norm(width=d, bias=True), Conv2d(channels=d, kernel=3)
    if d % heads:  # projections keep the width whatever it is cut into
        v.notes.append(f"{v.family}: {heads} heads or groups do not divide a width of {d}: the class builds that only")
        heads = 1
    attn = sized_attention(
        d, heads, symbolic("d_h", d // heads, origin="width / heads"), bias=True, qkv_bias=v.qkv_bias
    )
    hidden = symbolic("d_ff", int(d * v.mlp_ratio), origin="width x mlp_ratio")
    ffn = Mlp(width=d, hidden=hidden, gated=False, bias=True)
    return block(conv_1=conv, attn_norm=norm, attn=attn, conv_2=conv, ffn_norm=norm, ffn=ffn)


@family("florence2", ties="above")
def florence2(c: Config) -> Component:
    """DaViT, a layer with positions, BART (Florence-2, 2311.06242; Florence2ForConditionalGeneration)."""
    seen, v = tower_in(c, "vision_config")
    language, _ = any_language_model(c)
    last, out = stage_values(v, "embed_dim")[-1], v.projection_dim
    half = symbolic("half", last // 2, origin="last width / 2")
    projector = block(
        "projector",
        rows=Embedding(rows=v.max_position_embeddings, width=half),
        columns=Embedding(rows=v.max_position_embeddings, width=last - half),
        frames=Param(shape=(v.max_temporal_embeddings, last), buffer=True),
        proj=Linear(d_in=last, d_out=out),
        norm=Norm(width=out, bias=True),
    )
    return assemble_multimodal(language, vision_tower=seen, projector=projector)
