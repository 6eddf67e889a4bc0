"""Parts of audio towers: convolutions over spectrograms, conformer layers, vocoders.

All their weights are in the category `other`, norms included: a tower is counted as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Attention, Conv2d
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, mha
from paramcalc.families.builders.decoder import pre_norm
from paramcalc.families.builders.ffn import mlp
from paramcalc.tree.component import Component, without_none
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Conv1d, Linear, Norm, Param


def tower_norm(width: int, *, bias: bool = True) -> Norm:
    """A norm with the category of the tower that contains it."""
    return Norm(width=width, bias=bias, category=None)


def mel_convolutions(v: Config) -> dict[str, Component]:
    """Whisper's two convolutions over mel channels."""
    d = v.hidden_size
    return {
        "conv1": Conv1d(channels=d, kernel=3, per_group=v.num_mel_bins),
        "conv2": Conv1d(channels=d, kernel=3, per_group=d),
    }


def whisper_attention(v: Config) -> Attention:
    """Whisper's attention: biases on all projections but the keys'."""
    return gqa(v, qkv_bias=True, out_bias=True, k_bias=False)


def chunked_spectrogram_encoder(v: Config) -> dict[str, Component]:
    """Three strided convolutions over a spectrogram, a projection of the remaining channels, ViT's layers."""
    d, c, norm = v.hidden_size, v.downsample_hidden_size, tower_norm(v.hidden_size)
    left = v.num_mel_bins
    for _ in range(3):
        left = (left + 1) // 2
    left = symbolic("f", left, origin="num_mel_bins halved three times, rounded up")
    conv = Conv2d(channels=c, kernel=3, per_group=c)
    layer = pre_norm(norm, mha(v), mlp(v, v.intermediate_size))
    return dict(
        conv1=Conv2d(channels=c, kernel=3),
        conv2=conv,
        conv3=conv,
        conv_out=Linear(d_in=c * left, d_out=d),
        layers=stack("audio", Run(v.num_hidden_layers, layer)),
        norm=norm,
    )


def conformer_layer(
    d: int,
    ffn: Component,
    attn: Mapping[str, Component],
    *,
    inner: int,
    kernel: int,
    between: Component,
    bias: bool = True,
    depth_bias: bool = False,
) -> Block:
    """Two half FFNs around attention and a convolution `inner` channels wide; `between` follows its depthwise part."""
    norm = tower_norm(d)
    convolution = block(
        norm=norm,
        up_conv=Conv1d(channels=2 * inner, kernel=1, per_group=d, bias=bias),
        depth_conv=Conv1d(channels=inner, kernel=kernel, bias=depth_bias),
        between=between,
        down_conv=Conv1d(channels=d, kernel=1, per_group=inner, bias=bias),
    )
    half = block(norm=norm, ffn=ffn)
    return block(ffn_1=half, attn_norm=norm, **attn, conv=convolution, ffn_2=half, norm=norm)


# -- vocoders: from a spectrogram, or units of speech, to a waveform -------------------------------------------------


def conv_over_time(d_in: int, d_out: int, kernel: int, *, bias: bool = True) -> Conv1d:
    """A convolution over time, or a transposed one: both have the same weights."""
    return Conv1d(channels=d_out, kernel=kernel, per_group=d_in, bias=bias, per="tower")


def snake(width: int) -> Param:
    """A periodic activation, with a frequency and a magnitude for each channel (Snake, 2006.08195)."""
    return Param(shape=(2, width))


def hifi_gan(v: Config, d_in: int, *, snakes: bool = False) -> dict[str, Component]:
    """Upsampling steps that halve the channels, with residual blocks of several kernels (HiFi-GAN, 2010.05646).

    `snakes`: with periodic activations, as in BigVGAN.
    """
    first, depth = v.upsample_initial_channel, len(v.size_list("upsample_rates"))
    kernels = v.size_list("upsample_kernel_sizes")
    blocks, dilations = v.size_list("resblock_kernel_sizes"), v.list_of("resblock_dilation_sizes") or []
    v.require(0 < depth <= len(kernels), f"upsample_rates has {depth} entries, upsample_kernel_sizes {len(kernels)}")
    v.require(all(isinstance(one, list) for one in dilations), "resblock_dilation_sizes must be lists")
    short = snakes and any(len(one) < 3 for one in dilations)
    v.require(not short, "resblock_dilation_sizes must have three entries each")
    parts: dict[str, Component | None] = {"conv_in": conv_over_time(d_in, first, 7)}
    before = first
    for i, kernel in enumerate(kernels[:depth]):
        width = symbolic(f"c_{i + 1}", first // 2 ** (i + 1), origin=f"upsample_initial_channel / 2^{i + 1}")
        parts[f"up_{i}"] = conv_over_time(before, width, kernel)
        for j, (size, dilated) in enumerate(zip(blocks, dilations, strict=False)):
            one = block(snake=snake(width) if snakes else None, conv=conv_over_time(width, width, size))
            parts |= {f"residual_{i}_{j}_{k}": one for k in range(6 if snakes else 2 * len(dilated))}
        before = width
    parts |= {"snake": snake(before) if snakes else None, "conv_out": conv_over_time(before, 1, 7, bias=not snakes)}
    return without_none(parts)
