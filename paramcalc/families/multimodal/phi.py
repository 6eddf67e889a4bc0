"""Phi with images or speech."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.audio import tower_norm
from paramcalc.families.builders.decoder import decoder
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import assume, tower_in
from paramcalc.families.builders.vision_language import assemble_multimodal
from paramcalc.families.registry import family, get_family
from paramcalc.families.towers.vision import siglip
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Conv1d, Embedding, Linear, Param


@family("phi3_v")
def phi3_v(c: Config) -> Component:
    """CLIP, two by two merged patches, separators, two layers, Phi-3 (Phi3VForCausalLM)."""
    processor, layers = c.section("img_processor"), c.section("embd_layer")
    vision, v = tower_in(c, "vision_config")
    c.assumed.clear()  # in no file: the class contains CLIP's sizes
    c.require(
        processor.name == "clip_vision_model" and processor.image_dim_out == v.hidden_size,
        "img_processor is not the CLIP that the class has within",
    )
    c.require(
        layers.projection_cls == "mlp" and layers.use_hd_transform and layers.with_learnable_separator,
        "embd_layer: only two layers behind joined patches and separators are counted",
    )
    d_in, d = 4 * v.hidden_size, c.hidden_size
    separator = Param(shape=(1, 1, d_in))
    projector = block("projector", between=separator, around=separator, **two_layers(d_in, d, d))
    return assemble_multimodal(get_family("phi3").recipe(c), vision_tower=vision, projector=projector)


# -- Phi-4 multimodal ------------------------------------------------------------------------------------------------


@family("phi4_multimodal")
def phi4_multimodal(c: Config) -> Component:
    """Phi-3 with embedded images and speech (Phi4MultimodalForCausalLM)."""
    vision, audio = c.section("vision_config"), c.section("audio_config")
    text = decoder(c, gqa(c, window=c.sliding_window), glu(c))
    image, speech = phi4_images(c, vision), phi4_speech(c, audio)
    assume(c, "vision_config", "phi4_multimodal_vision", image.items["tower"])
    assume(c, "audio_config", "phi4_multimodal_audio", speech.items["tower"])
    return assemble_multimodal(text, image=image, speech=speech)


def phi4_projection_layers(c: Config, d_in: int) -> dict[str, Linear]:
    """Two layers from a tower's width to the decoder's."""
    d = c.hidden_size
    return {"up": Linear(d_in=d_in, d_out=d, bias=True), "down": Linear(d_in=d, d_out=d, bias=True)}


def phi4_images(c: Config, v: Config) -> Block:
    """A SigLIP tower with its attention pooling head, two learned separators, and the projection."""
    d = v.hidden_size
    separator = Param(shape=(1, 1, d))
    projector = block("projector", image_end=separator, row_end=separator, **phi4_projection_layers(c, d))
    return block(tower=siglip(v), projector=projector)


def phi4_speech(c: Config, a: Config) -> Block:
    """A conformer behind strided convolutions, with one projection for speech alone and one for speech with images."""
    d, channels, halvings = a.hidden_size, a.nemo_conv_channels, a.time_reduction.bit_length() - 1
    bins = a.input_size
    for _ in range(halvings):
        bins = (bins + 1) // 2
    bins = a.nemo_final_size or bins  # if present, it overrides the value from input_size and time_reduction
    # A 3 x 3 convolution has as many weights as one of nine taps.
    first, point = Conv1d(channels=channels, kernel=9), Linear(d_in=channels, d_out=channels, bias=True)
    spatial = {f"conv_{i}": block(depth=first, point=point if i else None) for i in range(halvings)}
    distances = a.bias_max_distance if a.bias_symmetric else 2 * a.bias_max_distance
    statistics = Param(shape=(a.input_size,), buffer=True)
    tower = block(
        "other",
        mean=statistics,
        inverse_deviation=statistics,
        **spatial,
        out=Linear(d_in=channels * bins, d_out=d, bias=True),
        position_bias=Embedding(rows=distances, width=a.num_attention_heads),
        layers=stack("audio", Run(a.num_blocks, phi4_conformer_layer(a))),
    )
    width = d * a.downsample_rate
    projector = block(
        "projector", alone=block(**phi4_projection_layers(c, width)), beside=block(**phi4_projection_layers(c, width))
    )
    return block(tower=tower, projector=projector)


def phi4_conformer_layer(a: Config) -> Block:
    """Half an FFN, attention, a gated convolution, half an FFN (Gulati et al. 2020, 2005.08100)."""
    d, ext = a.hidden_size, a.ext_pw_out_channel
    deep, out = d * a.depthwise_multiplier, a.depthwise_separable_out_channel
    gate_bias = Param(shape=(1, ext, 1))
    convolution = block(
        norm=tower_norm(a.hidden_size),
        gate=Linear(d_in=d, d_out=2 * ext, bias=True),
        gate_bias_1=gate_bias,
        gate_bias_2=gate_bias,
        depth=Conv1d(channels=deep, kernel=a.kernel_size),
        point=Linear(d_in=deep, d_out=out, bias=True),
        out=Linear(d_in=d, d_out=ext, bias=True),
    )
    half = block(norm=tower_norm(a.hidden_size), ffn=glu(a, bias=True))
    attn = gqa(a, qkv_bias=True, out_bias=True)
    return block(
        ffn_in=half,
        attn_norm=tower_norm(a.hidden_size),
        attn=attn,
        conv=convolution,
        ffn_out=half,
        norm=tower_norm(a.hidden_size),
    )
