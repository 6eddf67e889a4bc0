"""Convolutional image tokenizers: VQGAN (2012.09841) and its relatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paramcalc.components import Conv2d
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha
from paramcalc.families.builders.decoder import batch_norm
from paramcalc.families.builders.towers import tower
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Embedding, Linear, Norm


def vqgan_conv(d_in: int, d_out: int, *, kernel: int = 3) -> Conv2d:
    """A convolution from one number of channels to another."""
    return Conv2d(channels=d_out, kernel=kernel, per_group=d_in)


PartOfWidth = Callable[[int], Component]  # builds a part with a given number of channels


def group_norm(width: int) -> Component:
    """A norm over groups of channels."""
    return Norm(width=width, bias=True)


def resnet_block(d_in: int, d_out: int, norm: PartOfWidth = group_norm) -> Block:
    """Two convolutions behind norms, and a shortcut convolution if the widths differ."""
    return block(
        norm_1=norm(d_in),
        conv_1=vqgan_conv(d_in, d_out),
        norm_2=norm(d_out),
        conv_2=vqgan_conv(d_out, d_out),
        shortcut=vqgan_conv(d_in, d_out, kernel=1) if d_in != d_out else None,
    )


def conv_attention(width: int) -> Block:
    """Attention between all positions, by 1 x 1 convolutions."""
    return block(norm=Norm(width=width, bias=True), **dict.fromkeys("qkvo", vqgan_conv(width, width, kernel=1)))


def level_widths(v: Config) -> list[int]:
    """Channels of each level, starting with the level of the image."""
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
    """Residual blocks in each level, optionally with attention, and a convolution between levels."""
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
    """An encoder from an image to latents, with attention in some levels and in the middle."""
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
    """A decoder from latents to an image."""
    widths, blocks = level_widths(v), v.num_res_blocks + 1
    return block(
        conv_in=vqgan_conv(v.latent_channels, widths[-1]),
        middle=vqgan_middle(widths[-1], norm=norm, attention=attention),
        **vqgan_levels(widths[-1], widths[::-1], attends[::-1], blocks=blocks, norm=norm, attention=attention),
        norm=norm(widths[0]),
        conv_out=vqgan_conv(widths[0], v.out_channels),
    )


def vqgan_codebook(v: Config) -> dict[str, Component]:
    """The codebook, and the convolutions into and out of its width."""
    return {
        "quant_conv": vqgan_conv(v.latent_channels, v.embed_dim, kernel=1),
        "codes": Embedding(rows=v.num_embeddings, width=v.embed_dim),
        "post_quant_conv": vqgan_conv(v.embed_dim, v.latent_channels, kernel=1),
    }


@tower("chameleon_vqgan")
def chameleon_vqgan(v: Config) -> Block:
    """An encoder with attention at given resolutions, without a decoder (ChameleonVQVAE)."""
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


@tower("apertus1p5_vision_tokenizer")
def apertus_tokenizer(v: Config) -> Block:
    """An encoder, and codes compared by inner products (Apertus1p5VisionTokenizerModel)."""
    sides = v.list_of("attn_resolutions") or []
    attends = [v.resolution // 2**i in sides for i in range(len(level_widths(v)))]
    return block(
        "vision",
        encoder=vqgan_encoder(v, attends),
        quant_conv=vqgan_conv(v.latent_channels, v.embed_dim, kernel=1),
        codes=Linear(d_in=v.embed_dim, d_out=v.codebook_size),
    )


# -- Emu 3: images and video -----------------------------------------------------------------------------------------


def video_conv(d_in: int, d_out: int, *, frames: int, kernel: int = 3) -> Conv2d:
    """A convolution that also extends over frames."""
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
    """A video tokenizer; the norms of its decoder are conditioned on the codes (Emu3, 2409.18869; Emu3VQVAE)."""
    chosen, latent, q = v.list_of("attn_resolutions") or [], v.latent_channels, v.embed_dim
    attends = [i in chosen for i in range(len(level_widths(v)))]
    attn = mha(v)

    def conditioned_norm(width: int) -> Component:
        return block(norm=group_norm(width), scale=vqgan_conv(q, width, kernel=1), shift=vqgan_conv(q, width, kernel=1))

    def encoder_attention(width: int) -> Component:
        return block(norm=group_norm(width), attn=attn)

    def decoder_attention(width: int) -> Component:
        return block(norm=conditioned_norm(width), attn=attn)

    return block(
        "vision",
        encoder=vqgan_encoder(v, attends, within=encoder_attention, inmost=encoder_attention),
        encoder_time=block(**temporal_layers(v, 2 * latent if v.double_latent else latent, frames=4)),
        quant_conv=video_conv(latent, q, frames=3, kernel=1),
        codes=Embedding(rows=v.codebook_size, width=q),
        post_quant_conv=video_conv(q, latent, frames=3, kernel=1),
        decoder_time=block(**temporal_layers(v, latent, frames=3)),
        decoder=vqgan_decoder(v, attends, norm=conditioned_norm, attention=decoder_attention),
    )
