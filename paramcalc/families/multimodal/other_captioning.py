"""Captioning models: an image encoder and a decoder, of their own kind or any."""

from __future__ import annotations

from collections.abc import Mapping

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Conv2d, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha, sized_attention
from paramcalc.families.builders.decoder import causal_lm, layer_norm, pre_norm
from paramcalc.families.builders.encoder import embeddings, encoder, encoder_layer
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import decoder_head, unknown_head
from paramcalc.families.builders.towers import tower, tower_in, vision_tower
from paramcalc.families.builders.vision_language import any_language_model, assemble_multimodal, only_text, own_text
from paramcalc.families.registry import family, get_family
from paramcalc.families.towers.vision_special import swin_width
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("git")
def git(c: Config) -> Component:
    """CLIP, one layer, and BERT's layers over image and caption (GIT, 2205.14100; GitForCausalLM)."""
    vision, v = vision_tower(c)
    frames = c.num_image_with_embedding
    projector = block(
        "projector",
        frames=None if frames is None else Param(shape=(frames, v.hidden_size)),
        proj=Linear(d_in=v.hidden_size, d_out=c.hidden_size, bias=True),
        norm=layer_norm(c),
    )
    head = decoder_head(c, c.hidden_size, bias=True)
    text = encoder(c, embeddings(c, c.hidden_size, types=False), encoder_layer(c), head)
    return assemble_multimodal(text, vision_tower=vision, projector=projector)


KNOWN_IMAGE_ENCODERS = ("vit", "deit", "beit", "swin", "donut-swin", "clip_vision_model", "siglip_vision_model")


@family("vision-encoder-decoder")
def vision_encoder_decoder(c: Config) -> Component:
    """Any decoder with cross attention to an image encoder (VisionEncoderDecoderModel).

    Unknown encoders are not counted.
    """
    kind = c.section_kind("decoder")
    text = get_family(kind)
    ours = {} if c.has("decoder") else {"is_decoder": True, "add_cross_attention": True}
    reading = text.schema._replace(defaults={**text.schema.defaults, **ours})
    view = c.section("decoder", reading, family=kind, head="lm")
    stated = c.raw("encoder")
    encoder = stated.get("model_type") if isinstance(stated, Mapping) else None
    if encoder not in (None, *KNOWN_IMAGE_ENCODERS):
        only_text(c, "encoder")
        return text.recipe(view)
    vision, v = tower_in(c, "encoder", kind=encoder)
    width = swin_width(v) if encoder in ("swin", "donut-swin") else v.hidden_size
    bridged = width != view.hidden_size and view.raw("cross_attention_hidden_size") is None
    bridge = Linear(d_in=width, d_out=view.hidden_size, bias=True, category="projector") if bridged else None
    return assemble_multimodal(text.recipe(view), vision_tower=vision, projector=bridge)


@family("kosmos-2", ties="either")
@family("kosmos-2.5", ties="section")
def kosmos_2(c: Config) -> Component:
    """A ViT, queries that attend to it, a decoder with norms within its sublayers (Kosmos-2, 2306.14824; Kosmos2...).

    Its positions are not stored.
    """
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    vision, v = tower_in(c, "vision_config")
    text, second = own_text(c), c.family == "kosmos-2"
    d = text.hidden_size
    ffn = mlp(text, text.ffn_dim).replace(inner=Norm(width=text.ffn_dim, bias=True))
    attn = mha(text, inner=layer_norm(text) if second else None)
    segments = None if second else Embedding(rows=2, width=d)
    layer = pre_norm(norm := layer_norm(text), attn, ffn)
    if second and text.add_cross_attention:
        cross = mha(text, source="cross")
        layer = block(input_norm=norm, attn=attn, cross_norm=norm, cross_attn=cross, post_norm=norm, ffn=ffn)
    layers = Run(text.num_hidden_layers, layer)
    projector = block(
        "projector",
        proj=Linear(d_in=v.hidden_size, d_out=d, bias=True),
        queries=Param(shape=(c.latent_query_num, d)),
        attn=mha(text, source="cross"),
    )
    language = causal_lm(text, layers, norm=layer_norm(text), before={"segments": segments})
    return assemble_multimodal(language, vision_tower=vision, projector=projector)


# -- Florence-2 ------------------------------------------------------------------------------------------------------


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
    """Stages of windowed attention and channel attention (DaViT, 2204.03645; Florence2VisionBackbone)."""
    first = v.list_of("patch_prenorm")
    norms_first = [False, True, True, True] if first is None else [bool(one) for one in first]
    parts: dict[str, Component] = {}
    d_in = v.in_channels
    stages = zip(*(stage_values(v, name) for name in STAGE_DEFAULTS), norms_first, strict=True)
    for i, (d, depth, side, heads, groups, norm_first) in enumerate(stages):
        parts[f"conv_{i}"] = Conv2d(channels=d, kernel=side, per_group=d_in)
        parts[f"norm_{i}"] = Norm(width=d_in if norm_first else d, bias=True)
        both = block(places=davit_block(v, d, heads), channels=davit_block(v, d, groups))
        parts[f"stage_{i}"] = stack("vision", Run(depth, both))
        d_in = d
    return block("vision", **parts)


def davit_block(v: Config, d: int, heads: int) -> Block:
    """Attention and FFN, each behind a depthwise convolution and a norm."""
    norm, conv = Norm(width=d, bias=True), Conv2d(channels=d, kernel=3)
    if d % heads:  # projections keep the width for any number of heads
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
    vision, v = tower_in(c, "vision_config")
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
    return assemble_multimodal(language, vision_tower=vision, projector=projector)
