"""Codecs: convolutional networks that turn sound into codes and back, beside the language models that write codes."""

from __future__ import annotations

from math import ceil, prod

from paramcalc.config import Config
from paramcalc.config_reading import Reading
from paramcalc.containers import Block, Run, Stack, block, stack
from paramcalc.dims import named
from paramcalc.families.audio_encoders import tower_norm
from paramcalc.families.registry import family, get
from paramcalc.families.seeing import joined
from paramcalc.families.towers import tower, tower_in
from paramcalc.leaves import Conv1d, Linear, Norm, Param
from paramcalc.spec import Component


def conv(v: Config, d_in: int, d_out: int, kernel: int, *, back: bool = False) -> Block:
    """A convolution with a norm of its weights (one scale for each of their first axis) or of its outputs.

    `back`: transposed, whose weights have the inputs first.
    """
    weights = v.norm_type == "weight_norm"
    one = Conv1d(channels=d_out, kernel=kernel, per_group=d_in, per="tower")
    scale = Param(shape=(d_in if back else d_out,)) if weights else None
    return block(conv=one, scale=scale, norm=None if weights else tower_norm(d_out))


def residual(v: Config, d: int) -> Block:
    """Two convolutions through a narrower width, and perhaps one past them."""
    narrow = named("width", d // v.compress, origin="width / compress")
    return block(
        conv_1=conv(v, d, narrow, v.residual_kernel_size),
        conv_2=conv(v, narrow, d, 1),
        shortcut=conv(v, d, d, 1) if v.use_conv_shortcut else None,
    )


def lstm(width: int, depth: int) -> Block:
    """So many layers of four gates, each with weights and biases for the input and for the state (torch.nn.LSTM)."""
    matrix, bias = Param(shape=(4 * width, width)), Param(shape=(4 * width,))
    one = block(input=matrix, state=matrix, input_bias=bias, state_bias=bias)
    return block(**{f"layer_{i}": one for i in range(depth)})


@tower("encodec")
def encodec(v: Config) -> Block:
    """An encoder, books of codes that are buffers, and a decoder (EnCodec, 2210.13438; EncodecModel)."""
    v.require(v.norm_type in ("weight_norm", "time_group_norm"), f"norm_type {v.norm_type!r} is not known")
    stated = v.listed("upsampling_ratios")
    ratios = [8, 5, 4, 2] if stated is None else [v.whole("upsampling_ratios", ratio) for ratio in stated]
    narrow, blocks = v.num_filters, v.num_residual_layers
    wide = narrow * 2 ** len(ratios)
    down: dict[str, Component] = {"conv_in": conv(v, v.audio_channels, narrow, v.kernel_size)}
    gates = lstm(wide, v.num_lstm_layers)
    up: dict[str, Component] = {"conv_in": conv(v, v.hidden_size, wide, v.kernel_size), "lstm": gates}
    d = narrow
    for i, ratio in enumerate(reversed(ratios)):
        down |= {f"residual_{i}_{j}": residual(v, d) for j in range(blocks)}
        down[f"down_{i}"] = conv(v, d, 2 * d, 2 * ratio)
        d = 2 * d
    for i, ratio in enumerate(ratios):
        up[f"up_{i}"] = conv(v, d, d // 2, 2 * ratio, back=True)
        d = d // 2
        up |= {f"residual_{i}_{j}": residual(v, d) for j in range(blocks)}
    down |= {"lstm": gates, "conv_out": conv(v, wide, v.hidden_size, v.last_kernel_size)}
    up["conv_out"] = conv(v, narrow, v.audio_channels, v.last_kernel_size)
    return block("other", encoder=block(**down), books=books(v, prod(ratios)), decoder=block(**up))


def books(v: Config, hop: int) -> Block:
    """As many books of codes as the widest bandwidth has room for; of each the codes, their averages and counts."""
    rates = v.listed("target_bandwidths") or [1.5, 3.0, 6.0, 12.0, 24.0]
    rows, width = v.codebook_size, v.codebook_dim or v.hidden_size
    v.require(rows & (rows - 1) == 0, f"codebook_size ({rows}) is no power of two")
    bits = int(rows).bit_length() - 1
    count = named("books", int(1000 * rates[-1] // (ceil(v.sampling_rate / hop) * bits)), origin="widest bandwidth")
    return block(
        codes=Param(shape=(count, 2, rows, width), buffer=True),
        counts=Param(shape=(count, rows), buffer=True),
        started=Param(shape=(count,), buffer=True),
    )


# -- MusicGen ----------------------------------------------------------------------------------------------------

READERS = {"t5": "encoder", "mt5": "encoder", "umt5": "encoder", "bert": "none", "roberta": "none"}


def as_tower(part: Component, seen: dict[int, Component] | None = None) -> Component:
    """The same model as a tower, which is counted as a whole: its norms too."""
    seen = {} if seen is None else seen
    if isinstance(part, Norm):
        return part.but(category=None)
    if isinstance(part, Block):
        return part.but(items={name: as_tower(one, seen) for name, one in part.items.items()})
    if isinstance(part, Stack):
        for run in part.runs:  # equal layers stay one
            if id(run.layer) not in seen:
                seen[id(run.layer)] = as_tower(run.layer, seen)
        return part.but(runs=tuple(run._replace(layer=seen[id(run.layer)]) for run in part.runs))
    return part


@family("musicgen", "musicgen_melody")
def musicgen(c: Config) -> Component:
    """A reader of the description, EnCodec, and a decoder of codes (MusicGen, 2306.05284; Musicgen...Generation)."""
    kind = c.section("text_encoder", Reading({})).raw("model_type") or c.declared("text_encoder").kind
    c.require(kind in READERS, f"text_encoder is a {kind}, which cannot be counted", f"known: {', '.join(READERS)}")
    text = c.section("text_encoder", get(kind).reading, family=kind, head=READERS[kind])
    reads = Block(category="other", items=dict(as_tower(get(kind).recipe(text)).parts()))
    codec, _ = tower_in(c, "audio_encoder")
    own = f"{c.family}_decoder"
    view = c.section("decoder", get(own).reading, family=own)
    d, melody = view.hidden_size, c.family == "musicgen_melody"
    bridged = text.hidden_size != d and (melody or view.raw("cross_attention_hidden_size") is None)
    tunes = melody and c.num_chroma != d
    projector = block(
        "projector",
        proj=Linear(d_in=text.hidden_size, d_out=d, bias=True) if bridged else None,
        melody_proj=Linear(d_in=c.num_chroma, d_out=d, bias=True) if tunes else None,
    )
    language = get(own).recipe(view)
    if melody:
        language = conditioned(language, c.chroma_length)
    return joined(language, text_encoder=reads, audio_encoder=codec, projector=projector if bridged or tunes else None)


STANDS_BEFORE = "text and melody pass through the layers before the tokens; that is not counted"


def conditioned(decoder: Component, melody: int) -> Component:
    """The decoder when a melody of so many frames, and a text, stand before the tokens: it keeps their keys too."""
    parts = decoder.parts()
    one = next(decoder.stacks()).runs[0]
    items = one.layer.parts()
    attn = items["attn"].but(prefix=melody, prompted=True)
    layer = Block(items={**items, "attn": attn}, inexact=STANDS_BEFORE)
    return block(**{**parts, "layers": stack("decoder", Run(one.repeat, layer))})
