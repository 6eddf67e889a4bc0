"""Audio codecs: convolutional networks between a waveform and discrete codes."""

from __future__ import annotations

from math import ceil, prod

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa
from paramcalc.families.builders.audio import tower_norm
from paramcalc.families.builders.decoder import layer_scaled
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.towers import tower
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Conv1d, Param


def codec_conv(v: Config, d_in: int, d_out: int, kernel: int, *, back: bool = False) -> Block:
    """A convolution; in EnCodec with weight norm (one scale for each entry of the first axis) or a norm of its outputs.

    `back`: transposed; its weights have the inputs on the first axis.
    """
    one = Conv1d(channels=d_out, kernel=kernel, per_group=d_in, per="tower")
    scale = Param(shape=(d_in if back else d_out,)) if v.norm_type == "weight_norm" else None
    norm = tower_norm(d_out) if v.norm_type == "time_group_norm" else None
    return block(conv=one, scale=scale, norm=norm)


def codec_residual(v: Config, d: int) -> Block:
    """Two convolutions through a narrower width, and an optional shortcut."""
    narrow = symbolic("width", d // v.compress, origin="width / compress")
    return block(
        conv_1=codec_conv(v, d, narrow, v.residual_kernel_size),
        conv_2=codec_conv(v, narrow, d, 1),
        shortcut=codec_conv(v, d, d, 1) if v.use_conv_shortcut else None,
    )


def lstm(width: int, depth: int) -> Block:
    """LSTM layers of four gates, each with weights and biases for the input and for the state (torch.nn.LSTM)."""
    matrix, bias = Param(shape=(4 * width, width)), Param(shape=(4 * width,))
    one = block(input=matrix, state=matrix, input_bias=bias, state_bias=bias)
    return block(**{f"layer_{i}": one for i in range(depth)})


def hop_ratios(v: Config, default: list[int]) -> list[int]:
    """The number of samples that each level merges, the last level of the encoder first."""
    stated = v.list_of("upsampling_ratios")
    return default if stated is None else [v.size("upsampling_ratios", ratio) for ratio in stated]


def seanet(v: Config, ratios: list[int], inner: Component | None = None) -> tuple[Block, Block]:
    """An encoder that doubles its width at each step, and its mirror (SEANet, 2009.02095).

    `inner`: a network where both are widest.
    """
    narrow, blocks = v.num_filters, v.num_residual_layers
    wide = narrow * 2 ** len(ratios)
    down: dict[str, Component | None] = {"conv_in": codec_conv(v, v.audio_channels, narrow, v.kernel_size)}
    up: dict[str, Component | None] = {"conv_in": codec_conv(v, v.hidden_size, wide, v.kernel_size), "inner": inner}
    d = narrow
    for i, ratio in enumerate(reversed(ratios)):
        down |= {f"residual_{i}_{j}": codec_residual(v, d) for j in range(blocks)}
        down[f"down_{i}"] = codec_conv(v, d, 2 * d, 2 * ratio)
        d = 2 * d
    for i, ratio in enumerate(ratios):
        up[f"up_{i}"] = codec_conv(v, d, d // 2, 2 * ratio, back=True)
        d = d // 2
        up |= {f"residual_{i}_{j}": codec_residual(v, d) for j in range(blocks)}
    down |= {"inner": inner, "conv_out": codec_conv(v, wide, v.hidden_size, v.last_kernel_size)}
    up["conv_out"] = codec_conv(v, narrow, v.audio_channels, v.last_kernel_size)
    return block(**down), block(**up)


@tower("encodec")
def encodec(v: Config) -> Block:
    """An encoder, codebooks in buffers, and a decoder (EnCodec, 2210.13438; EncodecModel)."""
    v.require(v.norm_type in ("weight_norm", "time_group_norm"), f"norm_type {v.norm_type!r} is not known")
    ratios = hop_ratios(v, [8, 5, 4, 2])
    encoder, decoder = seanet(v, ratios, lstm(v.num_filters * 2 ** len(ratios), v.num_lstm_layers))
    return block("other", encoder=encoder, books=codebooks(v, prod(ratios)), decoder=decoder)


def codebooks(v: Config, hop: int) -> Block:
    """Codebooks for the widest bandwidth."""
    rates = v.list_of("target_bandwidths") or [1.5, 3.0, 6.0, 12.0, 24.0]
    rows, width = v.codebook_size, v.codebook_dim or v.hidden_size
    v.require(rows & (rows - 1) == 0, f"codebook_size ({rows}) is not a power of two")
    bits = int(rows).bit_length() - 1
    count = symbolic("books", int(1000 * rates[-1] // (ceil(v.sampling_rate / hop) * bits)), origin="widest bandwidth")
    return averaged_codebooks(count, rows, width)


def averaged_codebooks(count: int, rows: int, width: int) -> Block:
    """Codebooks with running averages, all buffers: codes, averages, counts, and a flag for the initialisation."""
    return block(
        codes=Param(shape=(count, 2, rows, width), buffer=True),
        counts=Param(shape=(count, rows), buffer=True),
        started=Param(shape=(count,), buffer=True),
    )


@tower("wavtokenizer_encoder")
def wavtokenizer(v: Config) -> Block:
    """EnCodec's encoder and one codebook (WavTokenizer, 2408.16532; WavTokenizerEncoderModel)."""
    width, ratios = v.codebook_dim, hop_ratios(v, [6, 5, 5, 4])
    v.require(v.norm_type in ("weight_norm", "time_group_norm"), f"norm_type {v.norm_type!r} is not known")
    v.require(width == v.hidden_size, f"codebook_dim ({width}) is not hidden_size ({v.hidden_size})")
    encoder, _ = seanet(v, ratios, lstm(v.num_filters * 2 ** len(ratios), v.num_lstm_layers))
    return block("other", encoder=encoder, book=averaged_codebooks(1, v.codebook_size, width))


# -- Mimi ------------------------------------------------------------------------------------------------------------


@tower("mimi")
def mimi(v: Config) -> Block:
    """EnCodec's networks with attention for the LSTM, semantic and acoustic codebooks (Mimi, 2410.00037; MimiModel)."""
    d, halves = v.hidden_size, (has_half(v, "encoder_config"), has_half(v, "decoder_config"))
    ratios = hop_ratios(v, usual := [8, 6, 5, 4]) or usual
    v.require(any(halves), "encoder_config and decoder_config are null", "one of the two must be there")
    equal_heads(v)
    down, up = seanet(v, ratios)
    layer = layer_scaled(tower_norm(d), gqa(v, bias=v.attention_bias), mlp(v, v.intermediate_size, bias=False))
    layers, stride, groups = Run(v.num_hidden_layers, layer), frame_stride(v, prod(ratios)), v.upsample_groups
    v.require(not stride or d % groups == 0, f"hidden_size ({d}) is not divisible by upsample_groups ({groups})")
    down_conv = up_conv = None
    if stride:
        down_conv = Conv1d(channels=d, kernel=2 * stride, per_group=d, bias=False, per="tower")
        up_conv = down_conv.replace(per_group=symbolic("d_g", d // groups, origin="d / upsample_groups"))
    return block(
        "other",
        encoder=block(convolutions=down, layers=stack("audio", layers), downsample=down_conv) if halves[0] else None,
        books=split_codebooks(v),
        decoder=block(upsample=up_conv, layers=stack("audio decoder", layers), convolutions=up) if halves[1] else None,
    )


def has_half(v: Config, name: str) -> bool:
    """True if a half of the codec is present: an explicit null drops it, and no other value is allowed."""
    v.require(v.raw(name) is None, f"{name} may only be null", "it follows from the other fields")
    return not v.has(name)


def frame_stride(v: Config, hop: int) -> int:
    """The number of frames merged after the layers: two, unless frame_rate is present."""
    frames = ceil(v.sampling_rate / hop)
    rate = v.frame_rate or v.sampling_rate / (2 * hop)
    v.require(frames >= rate, f"frame_rate is above the {frames} of the convolutions")
    return 0 if frames == rate else symbolic("stride", int(frames / rate), origin="frames / frame_rate")


def split_codebooks(v: Config) -> Block:
    """Codebooks, all buffers, and projections into and out of their width, for semantic and acoustic codes."""
    d, width, rows, count, words = (
        *(v.hidden_size, v.vector_quantization_hidden_dimension, v.codebook_size),
        *(v.num_quantizers, v.num_semantic_quantizers),
    )
    v.require(rows & (rows - 1) == 0, f"codebook_size ({rows}) is not a power of two")
    v.require(words < count, f"num_semantic_quantizers ({words}) must be below num_quantizers ({count})")
    into = Conv1d(channels=width, kernel=1, per_group=d, bias=False, per="tower")
    kind = block(into=into, out_of=Conv1d(channels=d, kernel=1, per_group=width, bias=False, per="tower"))
    return block(
        semantic=kind if width != d else None,
        acoustic=kind if width != d else None,
        codes=Param(shape=(count, rows, v.codebook_dim), buffer=True),
        counts=Param(shape=(count, rows), buffer=True),
        started=Param(shape=(count,), buffer=True),
    )
