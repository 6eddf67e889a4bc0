"""Models that read images as codes, or write them: a convolutional tokenizer beside a language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Conv2d
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, mha
from paramcalc.families.builders.decoder import batch_norm, decoder, layer_norm, pre_norm
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision_language import (
    any_language_model,
    assemble_multimodal,
    own_language_model,
    section_alone,
    text_alone,
)
from paramcalc.families.registry import family
from paramcalc.families.vision import patch_count, patches
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm

# -- VQGAN (2012.09841) ------------------------------------------------------------------------------------------


def vqgan_conv(d_in: int, d_out: int, *, kernel: int = 3) -> Conv2d:
    """A convolution from one number of channels to another."""
    return Conv2d(channels=d_out, kernel=kernel, per_group=d_in)


PartOfWidth = Callable[[int], Component]  # a part of so many channels


def group_norm(width: int) -> Component:
    """A norm over groups of channels."""
    return Norm(width=width, bias=True)


def resnet_block(d_in: int, d_out: int, norm: PartOfWidth = group_norm) -> Block:
    """Two convolutions behind norms, and one past them where widths differ."""
    return block(
        norm_1=norm(d_in),
        conv_1=vqgan_conv(d_in, d_out),
        norm_2=norm(d_out),
        conv_2=vqgan_conv(d_out, d_out),
        shortcut=vqgan_conv(d_in, d_out, kernel=1) if d_in != d_out else None,
    )


def conv_attention(width: int) -> Block:
    """Attention between all places, by convolutions of one place each."""
    return block(norm=Norm(width=width, bias=True), **dict.fromkeys("qkvo", vqgan_conv(width, width, kernel=1)))


def level_widths(v: Config) -> list[int]:
    """Channels of each level, the image's own first."""
    return [v.base_channels * factor for factor in v.size_list("channel_multiplier")]


def vqgan_levels(
    d: int,
    widths: Sequence[int],
    attends: Sequence[bool],
    *,
    blocks: int,
    norm: PartOfWidth = group_norm,
    attention: PartOfWidth = conv_attention,
) -> dict[str, Component]:
    """So many residual blocks in each level, perhaps with attention, and a convolution between levels."""
    parts: dict[str, Component] = {}
    for i, (d_out, attending) in enumerate(zip(widths, attends, strict=True)):
        for j in range(blocks):
            parts[f"level_{i}_{j}"] = resnet_block(d, d_out, norm)
            d = d_out
            if attending:
                parts[f"attn_{i}_{j}"] = attention(d)
        if i < len(widths) - 1:
            parts[f"resize_{i}"] = vqgan_conv(d, d)
    return parts


def vqgan_middle(d: int, *, norm: PartOfWidth = group_norm, attention: PartOfWidth | None = conv_attention) -> Block:
    """Two residual blocks around attention."""
    attn = attention(d) if attention else None
    return block(first=resnet_block(d, d, norm), attn=attn, second=resnet_block(d, d, norm))


def vqgan_encoder(
    v: Config,
    attends: Sequence[bool],
    *,
    within: PartOfWidth = conv_attention,
    inmost: PartOfWidth | None = conv_attention,
) -> Block:
    """From an image to what the nearest of many codes is looked for; with attention in levels, and in the middle."""
    widths, d, latent = level_widths(v), v.base_channels, v.latent_channels
    last = widths[-1]
    return block(
        conv_in=vqgan_conv(v.in_channels, d),
        **vqgan_levels(d, widths, attends, blocks=v.num_res_blocks, attention=within),
        middle=vqgan_middle(last, attention=inmost),
        norm=group_norm(last),
        conv_out=vqgan_conv(last, 2 * latent if v.double_latent else latent),
    )


def vqgan_decoder(
    v: Config, attends: Sequence[bool], *, norm: PartOfWidth = group_norm, attention: PartOfWidth = conv_attention
) -> Block:
    """From what stands for codes to an image."""
    widths, blocks = level_widths(v), v.num_res_blocks + 1
    return block(
        conv_in=vqgan_conv(v.latent_channels, widths[-1]),
        middle=vqgan_middle(widths[-1], norm=norm, attention=attention),
        **vqgan_levels(widths[-1], widths[::-1], attends[::-1], blocks=blocks, norm=norm, attention=attention),
        norm=norm(widths[0]),
        conv_out=vqgan_conv(widths[0], v.out_channels),
    )


def vqgan_codebook(v: Config) -> dict[str, Component]:
    """The codes, and the way into and out of their width."""
    return {
        "quant_conv": vqgan_conv(v.latent_channels, v.embed_dim, kernel=1),
        "codes": Embedding(rows=v.num_embeddings, width=v.embed_dim),
        "post_quant_conv": vqgan_conv(v.embed_dim, v.latent_channels, kernel=1),
    }


@tower("chameleon_vqgan")
def chameleon_vqgan(v: Config) -> Block:
    """An encoder with attention at stated resolutions; nothing that draws (ChameleonVQVAE)."""
    v.require(v.attn_type in ("vanilla", "none"), f"attn_type {v.attn_type!r} is not known")
    vanilla, sides = v.attn_type == "vanilla", v.layer_indices("attn_resolutions")
    attends = [vanilla and v.resolution // 2**i in sides for i in range(len(level_widths(v)))]
    encoder = vqgan_encoder(v, attends, inmost=conv_attention if vanilla else None)
    return block("vision", encoder=encoder, **vqgan_codebook(v))


@tower("janus_vqgan")
def janus_vqgan(v: Config) -> Block:
    """An encoder and a decoder, with attention in the narrowest level (JanusVQVAE)."""
    widths = level_widths(v)
    attends = [i == len(widths) - 1 for i in range(len(widths))]
    return block("vision", encoder=vqgan_encoder(v, attends), **vqgan_codebook(v), decoder=vqgan_decoder(v, attends))


@family("chameleon")
def chameleon(c: Config) -> Component:
    """Llama with a norm for each query and key head, over tokens of images too (Chameleon, 2405.09818)."""
    seen, _ = tower_in(c, "vq_config")
    c.raw("vocabulary_map")
    d_h = equal_heads(c)
    q_norm, k_norm = (Norm(width=d_h, count=n, bias=True) for n in (c.num_attention_heads, c.num_key_value_heads))
    attn = gqa(c, bias=c.attention_bias, q_norm=q_norm, k_norm=k_norm)
    return assemble_multimodal(decoder(c, attn, glu(c, bias=c.mlp_bias)), vision_tower=seen)


# -- Emu 3 -------------------------------------------------------------------------------------------------------


def video_conv(d_in: int, d_out: int, *, frames: int, kernel: int = 3) -> Conv2d:
    """A convolution over frames too."""
    return Conv2d(channels=d_out, kernel=kernel, per_group=d_in, frames=frames)


def temporal_layers(v: Config, width: int, *, frames: int) -> dict[str, Component]:
    """Convolutions that halve or double the frames, and residual blocks over them."""
    steps = v.temporal_downsample_factor.bit_length() - 1
    norm, inner = batch_norm(width), video_conv(width, width, frames=3)
    one = block(norm_1=norm, conv_1=inner, norm_2=norm, conv_2=inner)
    parts: dict[str, Component] = {f"resize_{i}": video_conv(width, width, frames=frames) for i in range(steps)}
    return parts | {f"residual_{i}": one for i in range(v.num_res_blocks)}


@tower("emu3_vqgan")
def emu3_vqgan(v: Config) -> Block:
    """A tokenizer of videos, whose decoder's norms are steered by the codes (Emu3, 2409.18869; Emu3VQVAE)."""
    chosen, latent, q = v.list_of("attn_resolutions") or [], v.latent_channels, v.embed_dim
    attends = [i in chosen for i in range(len(level_widths(v)))]
    attn = mha(v)

    def steered(width: int) -> Component:
        return block(norm=group_norm(width), scale=vqgan_conv(q, width, kernel=1), shift=vqgan_conv(q, width, kernel=1))

    def seen(width: int) -> Component:
        return block(norm=group_norm(width), attn=attn)

    def drawn(width: int) -> Component:
        return block(norm=steered(width), attn=attn)

    return block(
        "vision",
        encoder=vqgan_encoder(v, attends, within=seen, inmost=seen),
        encoder_time=block(**temporal_layers(v, 2 * latent if v.double_latent else latent, frames=4)),
        quant_conv=video_conv(latent, q, frames=3, kernel=1),
        codes=Embedding(rows=v.codebook_size, width=q),
        post_quant_conv=video_conv(q, latent, frames=3, kernel=1),
        decoder_time=block(**temporal_layers(v, latent, frames=3)),
        decoder=vqgan_decoder(v, attends, norm=steered, attention=drawn),
    )


@family("emu3", ties="above")
def emu3(c: Config) -> Component:
    """A tokenizer of images and videos, Llama over their codes too (Emu3, 2409.18869; Emu3ForConditionalGeneration)."""
    if text_alone(c):
        return section_alone(c, "vq_config", "vocabulary_map")
    codes, _ = tower_in(c, "vq_config")
    c.raw("vocabulary_map")
    return assemble_multimodal(own_language_model(c)[0], image_tokenizer=codes)


# -- Apertus 1.5 -------------------------------------------------------------------------------------------------


@tower("apertus1p5_vision_tokenizer")
def apertus_tokenizer(v: Config) -> Block:
    """An encoder, and codes that are compared by inner products (Apertus1p5VisionTokenizerModel)."""
    sides = v.list_of("attn_resolutions") or []
    attends = [v.resolution // 2**i in sides for i in range(len(level_widths(v)))]
    return block(
        "vision",
        encoder=vqgan_encoder(v, attends),
        quant_conv=vqgan_conv(v.latent_channels, v.embed_dim, kernel=1),
        codes=Linear(d_in=v.embed_dim, d_out=v.codebook_size),
    )


@family("apertus1p5", ties="above")
def apertus1p5(c: Config) -> Component:
    """Apertus over codes of images and sound, and what makes these (Apertus1p5ForConditionalGeneration)."""
    if text_alone(c):
        return section_alone(c, "vision_config", "audio_config")
    (seen, _), (heard, _) = tower_in(c, "vision_config"), tower_in(c, "audio_config")
    return assemble_multimodal(own_language_model(c)[0], image_tokenizer=seen, audio_tokenizer=heard)


# -- Janus -------------------------------------------------------------------------------------------------------


@tower("janus_vision_model")
def janus_vision(v: Config) -> Block:
    """SigLIP, perhaps with norms over all queries and keys (JanusVisionModel)."""
    norm = layer_norm(v) if v.use_qk_norm else None
    hidden = symbolic("d_ff", int(v.hidden_size * v.mlp_ratio), origin="hidden_size x mlp_ratio")
    layer = pre_norm(layer_norm(v), mha(v, qkv_bias=v.attention_bias, qk_norm=norm), mlp(v, hidden))
    return block(
        "vision",
        patches=patches(v),
        positions=Embedding(rows=patch_count(v), width=v.hidden_size),
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
        norm=layer_norm(v),
    )


def janus_aligner(d_in: int, d_out: int, depth: int) -> Block:
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
        aligner=janus_aligner(q.embed_dim, q.projection_dim, q.num_hidden_layers),
        proj=Linear(d_in=q.image_token_embed_dim, d_out=q.projection_dim, bias=True),
        head=Linear(d_in=q.projection_dim, d_out=q.num_embeddings, bias=True),
    )
    language, _ = any_language_model(c)
    projector = janus_aligner(v.hidden_size, v.projection_dim, v.depth)
    return assemble_multimodal(
        language, vision_tower=seen, projector=projector, image_tokenizer=drawn, image_head=draws
    )
