"""Towers that hear: encoders of spectrograms and waveforms other than Whisper's, by the `model_type` of their section.

Everything in them counts as `other`, norms too: a tower is counted as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Attention, Conv2d
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, mha
from paramcalc.families.builders.audio_language import audio_text_model
from paramcalc.families.builders.decoder import ignored_fields, pre_norm
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision_language import assemble_multimodal
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Conv1d, Linear, Norm


def audio_language_model(
    c: Config, projector: Callable[[Config, int], Component], *, completes: bool = False
) -> Component:
    """A tower of one kind, what the class puts behind it, and a language model of any.

    `completes`: the class adds the sizes to a text_config that omits them.
    """
    tower, v = tower_in(c, "audio_config")
    language, width = audio_text_model(c, tied=c.tie_word_embeddings, completes=completes)
    return assemble_multimodal(language, audio_tower=tower, projector=projector(v, width))


def tower_norm(width: int, *, bias: bool = True) -> Norm:
    """A norm that counts as the tower it is in."""
    return Norm(width=width, bias=bias, category=None)


def mel_convolutions(v: Config) -> dict[str, Component]:
    """Whisper's two convolutions over mel channels."""
    d = v.hidden_size
    return {
        "conv1": Conv1d(channels=d, kernel=3, per_group=v.num_mel_bins),
        "conv2": Conv1d(channels=d, kernel=3, per_group=d),
    }


def whisper_attention(v: Config) -> Attention:
    """Whisper's attention: biases on all but the keys."""
    return gqa(v, qkv_bias=True, out_bias=True, k_bias=False)


@tower("glmasr_encoder")
def glmasr_encoder(v: Config) -> Block:
    """Whisper's layer with rotary positions (GlmAsrEncoder)."""
    norm = tower_norm(v.hidden_size)
    layer = pre_norm(norm, whisper_attention(v), mlp(v, v.intermediate_size))
    return block("other", **mel_convolutions(v), layers=stack("audio", Run(v.num_hidden_layers, layer)), norm=norm)


@tower("voxtral_realtime_encoder")
def voxtral_realtime_encoder(v: Config) -> Block:
    """A causal spectrogram encoder of Llama's shape, with a few biases (VoxtralRealtimeEncoder)."""
    ignored_fields(v, num_key_value_heads=v.num_attention_heads)
    d, hidden, norm = v.hidden_size, v.intermediate_size, tower_norm(v.hidden_size, bias=False)
    up, down = Linear(d_in=d, d_out=hidden), Linear(d_in=hidden, d_out=d, bias=True)
    layer = pre_norm(norm, whisper_attention(v), block(gate_proj=up, up_proj=up, down_proj=down))
    return block("other", **mel_convolutions(v), layers=stack("audio", Run(v.num_hidden_layers, layer)), norm=norm)


def chunked_spectrogram_encoder(v: Config) -> dict[str, Component]:
    """Three strided convolutions over a spectrogram, a projection of what is left of its channels, ViT's layers."""
    d, c, norm = v.hidden_size, v.downsample_hidden_size, tower_norm(v.hidden_size)
    left = v.num_mel_bins
    for _ in range(3):
        left = (left + 1) // 2
    left = symbolic("f", left, origin="num_mel_bins halved three times, rounded up")
    again = Conv2d(channels=c, kernel=3, per_group=c)
    layer = pre_norm(norm, mha(v), mlp(v, v.intermediate_size))
    return dict(
        conv1=Conv2d(channels=c, kernel=3),
        conv2=again,
        conv3=again,
        conv_out=Linear(d_in=c * left, d_out=d),
        layers=stack("audio", Run(v.num_hidden_layers, layer)),
        norm=norm,
    )


@tower("qwen3_asr_encoder")
def qwen3_asr_encoder(v: Config) -> Block:
    """A spectrogram encoder over chunks (Qwen3ASREncoder); what follows is its projector's."""
    return block("other", **chunked_spectrogram_encoder(v))


@tower("omniasr_audio")
def omniasr_audio(v: Config) -> Block:
    """wav2vec 2.0 with norms in all its convolutions and before each part (2006.11477; OmniASRAudioModel)."""
    d, norm = v.hidden_size, tower_norm(v.hidden_size)
    equal_heads(v)
    channels = [v.size("conv_dim", size) for size in v.list_of("conv_dim") or [512] * 7]
    kernels = [v.size("conv_kernel", size) for size in v.list_of("conv_kernel") or [10, 3, 3, 3, 3, 2, 2]]
    v.require(bool(channels), "conv_dim is empty")
    v.require(len(channels) == len(kernels), "conv_dim and conv_kernel are not equally long")
    convolutions = {
        f"conv{i}": block(
            conv=Conv1d(channels=n, kernel=kernel, per_group=before, bias=v.conv_bias), norm=tower_norm(n)
        )
        for i, (before, n, kernel) in enumerate(zip([1, *channels], channels, kernels, strict=False))
    }
    groups = v.num_conv_pos_embedding_groups
    v.require(d % groups == 0, f"hidden_size ({d}) is not divisible by num_conv_pos_embedding_groups ({groups})")
    per_group = symbolic("d_g", d // groups, origin="d / num_conv_pos_embedding_groups")
    layer = pre_norm(norm, mha(v), mlp(v, v.intermediate_size))
    return block(
        "other",
        **convolutions,
        conv_norm=tower_norm(channels[-1]),
        conv_proj=Linear(d_in=channels[-1], d_out=d, bias=True),
        positions=Conv1d(channels=d, kernel=v.num_conv_pos_embeddings, per_group=per_group),
        layers=stack("audio", Run(v.num_hidden_layers, layer)),
        norm=norm,
    )


# -- conformers (2005.08100) -------------------------------------------------------------------------------------


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
    """Two half FFNs around attention and a convolution, which is `inner` channels wide; `between` follows its depth."""
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
