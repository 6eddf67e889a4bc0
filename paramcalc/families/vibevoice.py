"""VibeVoice: convolutional encoders of sound and of what is said, and a language model."""

from __future__ import annotations

from paramcalc.components import Mlp
from paramcalc.config import Config
from paramcalc.containers import Block, Run, block, stack
from paramcalc.families.audio import text_model
from paramcalc.families.audio_encoders import tower_norm
from paramcalc.families.registry import family
from paramcalc.families.seeing import joined
from paramcalc.families.towers import tower, tower_in
from paramcalc.leaves import Conv1d, Linear, Norm, Param
from paramcalc.spec import Component


@tower("vibevoice_acoustic_tokenizer_encoder")
def tokenizer_encoder(v: Config) -> Block:
    """ConvNeXt's layers over a waveform, twice as wide at each step down (VibeVoice, 2508.19205, section 2.1)."""
    ratios = [v.whole("downsampling_ratios", ratio) for ratio in v.listed("downsampling_ratios") or [2, 2, 4, 5, 5, 8]]
    depths = [v.whole("depths", depth) for depth in v.listed("depths") or [3, 3, 3, 3, 3, 3, 8]]
    v.require(len(depths) > len(ratios), f"depths has {len(depths)} entries, fewer than {len(ratios) + 1}")
    stages: dict[str, Component] = {}
    for i, depth in enumerate(depths[: len(ratios) + 1]):
        width = v.num_filters * 2**i
        before, kernel = (v.num_filters * 2 ** (i - 1), 2 * ratios[i - 1]) if i else (v.channels, v.kernel_size)
        stages[f"stage_{i}"] = block(
            conv=Conv1d(channels=width, kernel=kernel, per_group=before),
            layers=stack("audio", Run(depth, convnext(v, width))),
        )
    last = v.num_filters * 2 ** len(ratios)
    return block("other", **stages, head=Conv1d(channels=v.hidden_size, kernel=v.kernel_size, per_group=last))


def convnext(v: Config, width: int) -> Block:
    """A depthwise convolution and an FFN, each behind a norm and scaled channel by channel (2201.03545)."""
    norm, scale = tower_norm(width, bias=False), Param(shape=(width,))
    return block(
        norm=norm,
        mixer=Conv1d(channels=width, kernel=v.kernel_size),
        scale=scale,
        ffn_norm=norm,
        ffn=Mlp(width=width, hidden=width * v.ffn_expansion, gated=False, bias=True),
        ffn_scale=scale,
    )


@family("vibevoice_asr")
def vibevoice_asr(c: Config) -> Component:
    """Two encoders of a waveform, two layers behind each, Qwen2 (VibeVoiceAsrForConditionalGeneration)."""
    sound, one = tower_in(c, "acoustic_tokenizer_encoder_config")
    sense, two = tower_in(c, "semantic_tokenizer_encoder_config")
    language, d = text_model(c, tied=False)

    def projector(d_in: int) -> Block:
        first, second = Linear(d_in=d_in, d_out=d, bias=True), Linear(d_in=d, d_out=d, bias=True)
        return block("projector", linear_1=first, norm=Norm(width=d), linear_2=second)

    return joined(
        language,
        acoustic_tower=sound,
        acoustic_projector=projector(one.hidden_size),
        semantic_tower=sense,
        semantic_projector=projector(two.hidden_size),
    )
