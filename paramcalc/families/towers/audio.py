"""Audio encoders other than Whisper's: over spectrograms, chunks of them, and waveforms."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, mha
from paramcalc.families.builders.audio import (
    chunked_spectrogram_encoder,
    mel_convolutions,
    tower_norm,
    whisper_attention,
)
from paramcalc.families.builders.decoder import ignored_fields, pre_norm
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.towers import tower
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Conv1d, Embedding, Linear


@tower("glmasr_encoder")
def glmasr_encoder(v: Config) -> Block:
    """Whisper's layer with rotary positions (GlmAsrEncoder)."""
    norm = tower_norm(v.hidden_size)
    layer = pre_norm(norm, whisper_attention(v), mlp(v, v.intermediate_size))
    return block("other", **mel_convolutions(v), layers=stack("audio", Run(v.num_hidden_layers, layer)), norm=norm)


@tower("voxtral_realtime_encoder")
def voxtral_realtime_encoder(v: Config) -> Block:
    """A causal spectrogram encoder with Llama's layer and a few biases (VoxtralRealtimeEncoder)."""
    ignored_fields(v, num_key_value_heads=v.num_attention_heads)
    d, hidden, norm = v.hidden_size, v.intermediate_size, tower_norm(v.hidden_size, bias=False)
    up, down = Linear(d_in=d, d_out=hidden), Linear(d_in=hidden, d_out=d, bias=True)
    layer = pre_norm(norm, whisper_attention(v), block(gate_proj=up, up_proj=up, down_proj=down))
    return block("other", **mel_convolutions(v), layers=stack("audio", Run(v.num_hidden_layers, layer)), norm=norm)


@tower("qwen3_asr_encoder")
def qwen3_asr_encoder(v: Config) -> Block:
    """A spectrogram encoder over chunks, without its projector (Qwen3ASREncoder)."""
    return block("other", **chunked_spectrogram_encoder(v))


@tower("omniasr_audio")
def omniasr_audio(v: Config) -> Block:
    """wav2vec 2.0 with norms in all its convolutions and before each sublayer (2006.11477; OmniASRAudioModel)."""
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


@tower("qwen2_5_omni_audio_encoder")
def qwen2_5_omni_audio(v: Config) -> Block:
    """Whisper's encoder without stored positions, and a projection (Qwen2_5OmniAudioEncoder)."""
    d, out, norm = v.hidden_size, v.output_dim, tower_norm(v.hidden_size)
    layer = pre_norm(norm, mha(v, k_bias=False), mlp(v, v.intermediate_size))
    return block(
        "other",
        **mel_convolutions(v),
        bounds=Embedding(rows=2, width=out),
        layers=stack("audio", Run(v.num_hidden_layers, layer)),
        norm=norm,
        proj=Linear(d_in=d, d_out=out, bias=True),
    )


@tower("qwen3_omni_moe_audio_encoder")
def qwen3_omni_moe_audio(v: Config) -> Block:
    """Qwen3-ASR's encoder with its two projector layers (Qwen3OmniMoeAudioEncoder)."""
    d = v.hidden_size
    first, second = Linear(d_in=d, d_out=d, bias=True), Linear(d_in=d, d_out=v.output_dim, bias=True)
    return block("other", **chunked_spectrogram_encoder(v), proj_1=first, proj_2=second)
