"""VibeVoice: convolutional encoders of audio, a language model, and speech by diffusion."""

from __future__ import annotations

from paramcalc.components import Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.audio import tower_norm
from paramcalc.families.builders.audio_language import audio_text_model
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision_language import any_language_model, assemble_multimodal
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Conv1d, Linear, Norm, Param


@tower("vibevoice_acoustic_tokenizer_encoder")
def vibevoice_tokenizer_encoder(v: Config) -> Block:
    """ConvNeXt's layers over a waveform, doubling the width at each step (VibeVoice, 2508.19205, section 2.1)."""
    ratios, depths = downsampling_plan(v)
    stages: dict[str, Component] = {}
    for i, depth in enumerate(depths[: len(ratios) + 1]):
        width = v.num_filters * 2**i
        before, kernel = (v.num_filters * 2 ** (i - 1), 2 * ratios[i - 1]) if i else (v.channels, v.kernel_size)
        stages[f"stage_{i}"] = convnext_stage(v, before, width, kernel=kernel, depth=depth)
    last = v.num_filters * 2 ** len(ratios)
    return block("other", **stages, head=Conv1d(channels=v.hidden_size, kernel=v.kernel_size, per_group=last))


@tower("vibevoice_acoustic_tokenizer")
def vibevoice_tokenizer(v: Config) -> Block:
    """The tokenizer's encoder and its mirror, the decoder (VibeVoiceAcousticTokenizerModel)."""
    ratios, depths = downsampling_plan(v)
    stages: dict[str, Component] = {}
    before, kernels = v.hidden_size, [v.kernel_size, *(2 * ratio for ratio in reversed(ratios))]
    for i, (kernel, depth) in enumerate(zip(kernels, reversed(depths), strict=False)):
        width = v.num_filters * 2 ** (len(depths) - 1 - i)
        stages[f"stage_{i}"] = convnext_stage(v, before, width, kernel=kernel, depth=depth)
        before = width
    head = Conv1d(channels=v.channels, kernel=v.kernel_size, per_group=v.num_filters)
    return block("other", encoder=vibevoice_tokenizer_encoder(v), decoder=block(**stages, head=head))


def downsampling_plan(v: Config) -> tuple[list[int], list[int]]:
    """The ratio of each downsampling step, and the number of layers before the first step and after each."""
    ratios, depths = v.size_list("downsampling_ratios"), v.size_list("depths")
    v.require(len(depths) > len(ratios), f"depths has {len(depths)} entries, fewer than {len(ratios) + 1}")
    return ratios, depths


def convnext_stage(v: Config, before: int, width: int, *, kernel: int, depth: int) -> Block:
    """A convolution from one width to another, and layers of the second."""
    conv = Conv1d(channels=width, kernel=kernel, per_group=before)
    return block(conv=conv, layers=stack("audio", Run(depth, convnext_layer(v, width))))


def convnext_layer(v: Config, width: int) -> Block:
    """A depthwise convolution and an FFN, each behind a norm and scaled by channel (2201.03545)."""
    norm, scale = tower_norm(width, bias=False), Param(shape=(width,))
    return block(
        norm=norm,
        mixer=Conv1d(channels=width, kernel=v.kernel_size),
        scale=scale,
        ffn_norm=norm,
        ffn=Mlp(width=width, hidden=width * v.ffn_expansion, gated=False, bias=True),
        ffn_scale=scale,
    )


def speech_connector(d_in: int, d: int) -> Block:
    """Two layers around a norm, from audio to the language model."""
    first, second = Linear(d_in=d_in, d_out=d, bias=True), Linear(d_in=d, d_out=d, bias=True)
    return block("projector", linear_1=first, norm=Norm(width=d), linear_2=second)


@family("vibevoice_asr")
def vibevoice_asr(c: Config) -> Component:
    """Two encoders of a waveform, a projector for each, Qwen2 (VibeVoiceAsrForConditionalGeneration)."""
    language, d = audio_text_model(c, tied=False)
    readers, _ = speech_towers(c, "acoustic_tokenizer_encoder_config", "semantic_tokenizer_encoder_config", d)
    return assemble_multimodal(language, **readers)


def speech_towers(c: Config, sound: str, sense: str, width: int) -> tuple[dict[str, Component], int]:
    """The acoustic and the semantic encoder with their projectors; and the channels of the former."""
    (acoustic, one), (semantic, two) = tower_in(c, sound), tower_in(c, sense)
    readers: dict[str, Component] = dict(
        acoustic_tower=acoustic,
        acoustic_projector=speech_connector(one.hidden_size, width),
        semantic_tower=semantic,
        semantic_projector=speech_connector(two.hidden_size, width),
    )
    return readers, one.hidden_size


@tower("vibevoice_diffusion")
def vibevoice_diffusion_head(v: Config) -> Block:
    """Gated FFNs conditioned on text and time, from noise to an audio frame (VibeVoiceDiffusionHead)."""
    d, latent = v.hidden_size, v.latent_size
    layer = block(ffn=glu(v, bias=v.mlp_bias), norm=tower_norm(d, bias=False), steer=Linear(d_in=d, d_out=3 * d))
    return block(
        "other",
        noise_proj=Linear(d_in=latent, d_out=d),
        condition_proj=Linear(d_in=d, d_out=d),
        time_1=Linear(d_in=v.frequency_embedding_size, d_out=d),
        time_2=Linear(d_in=d, d_out=d),
        layers=stack("diffusion", Run(v.num_hidden_layers, layer)),
        steer=Linear(d_in=d, d_out=2 * d),
        out=Linear(d_in=d, d_out=latent),
    )


@family("vibevoice", ties="section")
def vibevoice(c: Config) -> Component:
    """Two audio encoders, any language model, and a diffusion head for speech (VibeVoiceFor...Generation)."""
    language, d = any_language_model(c)
    readers, latent = speech_towers(c, "audio_config", "semantic_model_config", d)
    head, _ = tower_in(c, "diffusion_head_config", hidden_size=d, latent_size=latent)
    return assemble_multimodal(
        language,
        **readers,
        diffusion_head=head,
        latent_scale=Param(shape=(2,)),
    )
