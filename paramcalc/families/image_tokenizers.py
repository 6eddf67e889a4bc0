"""Models that read images as codes, or write them: a convolutional tokenizer beside a language model."""

from __future__ import annotations

from collections.abc import Sequence

from paramcalc.components import Conv2d
from paramcalc.config import Config
from paramcalc.containers import Block, Run, block, stack
from paramcalc.dims import named
from paramcalc.families.attentions import equal_heads, gqa, mha
from paramcalc.families.feedforward import glu, mlp
from paramcalc.families.registry import family
from paramcalc.families.seeing import any_language_model, joined
from paramcalc.families.skeletons import decoder, layer_norm, pre_norm
from paramcalc.families.towers import tower, tower_in
from paramcalc.families.vision import patch_count, patches
from paramcalc.leaves import Embedding, Linear, Norm
from paramcalc.spec import Component

# -- VQGAN (2012.09841) ------------------------------------------------------------------------------------------


def conv(d_in: int, d_out: int, *, kernel: int = 3) -> Conv2d:
    """A convolution from one number of channels to another."""
    return Conv2d(channels=d_out, kernel=kernel, per_group=d_in)


def resnet(d_in: int, d_out: int) -> Block:
    """Two convolutions behind norms, and one past them where widths differ."""
    return block(
        norm_1=Norm(width=d_in, bias=True),
        conv_1=conv(d_in, d_out),
        norm_2=Norm(width=d_out, bias=True),
        conv_2=conv(d_out, d_out),
        shortcut=conv(d_in, d_out, kernel=1) if d_in != d_out else None,
    )


def looks(width: int) -> Block:
    """Attention between all places, by convolutions of one place each."""
    return block(norm=Norm(width=width, bias=True), **dict.fromkeys("qkvo", conv(width, width, kernel=1)))


def levels(v: Config) -> list[int]:
    """Channels of each level, the image's own first."""
    stated = v.listed("channel_multiplier")
    factors = [1, 1, 2, 2, 4] if stated is None else [v.whole("channel_multiplier", factor) for factor in stated]
    return [v.base_channels * factor for factor in factors]


def through(d: int, widths: Sequence[int], attends: Sequence[bool], *, blocks: int) -> dict[str, Component]:
    """So many residual blocks in each level, perhaps with attention, and a convolution between levels."""
    parts: dict[str, Component] = {}
    for i, (d_out, attending) in enumerate(zip(widths, attends, strict=True)):
        for j in range(blocks):
            parts[f"level_{i}_{j}"] = resnet(d, d_out)
            d = d_out
            if attending:
                parts[f"attn_{i}_{j}"] = looks(d)
        if i < len(widths) - 1:
            parts[f"resize_{i}"] = conv(d, d)
    return parts


def middle(d: int, *, attends: bool = True) -> Block:
    """Two residual blocks around attention."""
    return block(first=resnet(d, d), attn=looks(d) if attends else None, second=resnet(d, d))


def coder(v: Config, attends: Sequence[bool], *, middle_attends: bool = True) -> dict[str, Component]:
    """From an image to the nearest of many codes, and to what a decoder takes."""
    widths, d, latent = levels(v), v.base_channels, v.latent_channels
    last = widths[-1]
    encoder = block(
        conv_in=conv(v.in_channels, d),
        **through(d, widths, attends, blocks=v.num_res_blocks),
        middle=middle(last, attends=middle_attends),
        norm=Norm(width=last, bias=True),
        conv_out=conv(last, 2 * latent if v.double_latent else latent),
    )
    return {
        "encoder": encoder,
        "quant_conv": conv(latent, v.embed_dim, kernel=1),
        "codes": Embedding(rows=v.num_embeddings, width=v.embed_dim),
        "post_quant_conv": conv(v.embed_dim, latent, kernel=1),
    }


@tower("chameleon_vqgan")
def chameleon_vqgan(v: Config) -> Block:
    """An encoder with attention at stated resolutions; nothing that draws (ChameleonVQVAE)."""
    v.require(v.attn_type in ("vanilla", "none"), f"attn_type {v.attn_type!r} is not known")
    vanilla, sides = v.attn_type == "vanilla", v.numbers("attn_resolutions")
    attends = [vanilla and v.resolution // 2**i in sides for i in range(len(levels(v)))]
    return block("vision", **coder(v, attends, middle_attends=vanilla))


@tower("janus_vqgan")
def janus_vqgan(v: Config) -> Block:
    """An encoder and a decoder, with attention in the narrowest level (JanusVQVAE)."""
    widths = levels(v)
    attends = [i == len(widths) - 1 for i in range(len(widths))]
    up = through(widths[-1], widths[::-1], attends[::-1], blocks=v.num_res_blocks + 1)
    draws = block(
        conv_in=conv(v.latent_channels, widths[-1]),
        middle=middle(widths[-1]),
        **up,
        norm=Norm(width=widths[0], bias=True),
        conv_out=conv(widths[0], v.out_channels),
    )
    return block("vision", **coder(v, attends), decoder=draws)


@family("chameleon")
def chameleon(c: Config) -> Component:
    """Llama with a norm for each query and key head, over tokens of images too (Chameleon, 2405.09818)."""
    seen, _ = tower_in(c, "vq_config")
    c.raw("vocabulary_map")
    d_h = equal_heads(c)
    q_norm, k_norm = (Norm(width=d_h, count=n, bias=True) for n in (c.num_attention_heads, c.num_key_value_heads))
    attn = gqa(c, bias=c.attention_bias, q_norm=q_norm, k_norm=k_norm)
    return joined(decoder(c, attn, glu(c, bias=c.mlp_bias)), vision_tower=seen)


# -- Janus -------------------------------------------------------------------------------------------------------


@tower("janus_vision_model")
def janus_vision(v: Config) -> Block:
    """SigLIP, perhaps with norms over all queries and keys (JanusVisionModel)."""
    norm = layer_norm(v) if v.use_qk_norm else None
    hidden = named("d_ff", int(v.hidden_size * v.mlp_ratio), origin="hidden_size x mlp_ratio")
    layer = pre_norm(layer_norm(v), mha(v, qkv_bias=v.attention_bias, qk_norm=norm), mlp(v, hidden))
    return block(
        "vision",
        patches=patches(v),
        positions=Embedding(rows=patch_count(v), width=v.hidden_size),
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
        norm=layer_norm(v),
    )


def aligner(d_in: int, d_out: int, depth: int) -> Block:
    """So many layers, all but the first of one width."""
    same = Linear(d_in=d_out, d_out=d_out, bias=True)
    more = {f"linear_{i}": same for i in range(2, depth + 1)}
    return block("projector", linear_1=Linear(d_in=d_in, d_out=d_out, bias=True), **more)


@family("janus", ties="above")
def janus(c: Config) -> Component:
    """SigLIP to see, a tokenizer to draw, Llama (Janus, 2410.13848; JanusForConditionalGeneration)."""
    seen, v = tower_in(c, "vision_config")
    drawn, q = tower_in(c, "vq_config")
    draws = block(
        "vision",
        codes=Embedding(rows=q.num_embeddings, width=q.embed_dim),
        aligner=aligner(q.embed_dim, q.projection_dim, q.num_hidden_layers),
        proj=Linear(d_in=q.image_token_embed_dim, d_out=q.projection_dim, bias=True),
        head=Linear(d_in=q.projection_dim, d_out=q.num_embeddings, bias=True),
    )
    language, _ = any_language_model(c)
    projector = aligner(v.hidden_size, v.projection_dim, v.depth)
    return joined(language, vision_tower=seen, projector=projector, image_tokenizer=drawn, image_head=draws)
