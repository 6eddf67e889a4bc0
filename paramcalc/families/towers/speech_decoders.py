"""Speech decoders of Qwen's omni models: talkers, which predict audio codes, and vocoders."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, head_dim, sized_attention
from paramcalc.families.builders.audio import conv_over_time, hifi_gan, snake, tower_norm
from paramcalc.families.builders.decoder import layer_scaled, pre_norm
from paramcalc.families.builders.ffn import glu, mlp, moe
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Conv1d, Embedding, Linear, Param

# -- Qwen2.5-Omni (2503.20215, section 2.3) --------------------------------------------------------------------------


@tower("qwen2_5_omni_talker")
def qwen2_5_talker(t: Config) -> Block:
    """Qwen2 over the thinker's states and audio codes (Qwen2_5OmniTalkerForConditionalGeneration)."""
    d, norm = t.hidden_size, tower_norm(t.hidden_size, bias=False)
    layer = pre_norm(norm, gqa(t, qkv_bias=True), glu(t))
    return block(
        "other",
        embed_tokens=Embedding(rows=t.vocab_size, width=t.embedding_size),
        proj=Linear(d_in=t.embedding_size, d_out=d, bias=True),
        layers=stack("talker", Run(t.num_hidden_layers, layer)),
        norm=norm,
        head=Linear(d_in=d, d_out=t.vocab_size),
    )


@tower("qwen2_5_omni_token2wav")
def token2wav(t: Config) -> Block:
    """A diffusion transformer from codes to a spectrogram, then BigVGAN (Qwen2_5OmniToken2WavModel)."""
    dit, _ = tower_in(t, "dit_config")
    voice, _ = tower_in(t, "bigvgan_config")
    return block("other", dit=dit, vocoder=voice)


@tower("qwen2_5_omni_dit")
def speech_dit(v: Config) -> Block:
    """Layers conditioned on time, over a spectrogram, codes and a speaker (DiT, 2212.09748)."""
    d, mel, spoken = v.hidden_size, v.mel_dim, v.emb_dim
    attn = sized_attention(d, v.num_attention_heads, v.head_dim, bias=True)
    layer = block(steer=Linear(d_in=d, d_out=6 * d, bias=True), attn=attn, ffn=mlp(v, d * v.ff_mult))
    return block(
        "other",
        time=block(**two_layers(256, d, d)),
        codes=Embedding(rows=v.num_embeds + 1, width=spoken),
        speaker=speaker_encoder(v),
        input=Linear(d_in=mel + v.enc_dim + v.enc_emb_dim + spoken, d_out=d, bias=True),
        layers=stack("diffusion", Run(v.num_hidden_layers, layer)),
        steer=Linear(d_in=d, d_out=2 * d, bias=True),
        out=Linear(d_in=d, d_out=mel, bias=True),
    )


def speaker_encoder(v: Config) -> Block:
    """Convolutions that encode a speaker's voice (ECAPA-TDNN, 2005.07143)."""
    widths, kernels, dilations = (v.size_list(f"enc_{name}") for name in ("channels", "kernel_sizes", "dilations"))
    equal = 0 < len(widths) == len(kernels) == len(dilations)
    v.require(equal, "enc_channels, enc_kernel_sizes and enc_dilations are not equally long")
    scale, last, narrow = v.enc_res2net_scale, widths[-1], v.enc_attention_channels
    blocks: dict[str, Component] = {"block_0": conv_over_time(v.mel_dim, widths[0], kernels[0])}
    for i in range(1, len(widths) - 1):
        before, width = widths[i - 1], widths[i]
        part = symbolic("width", width // scale, origin="enc_channels / enc_res2net_scale")
        blocks[f"block_{i}"] = block(
            conv_in=conv_over_time(before, width, 1),
            **{f"scale_{j}": conv_over_time(part, part, kernels[i]) for j in range(1, scale)},
            conv_out=conv_over_time(width, width, 1),
            squeeze=conv_over_time(width, v.enc_se_channels, 1),
            excite=conv_over_time(v.enc_se_channels, width, 1),
        )
    return block(
        **blocks,
        joined=conv_over_time(last, last, kernels[-1]),
        attend=conv_over_time(3 * last, narrow, 1),
        pool=conv_over_time(narrow, last, 1),
        out=conv_over_time(2 * last, v.enc_dim, 1),
    )


@tower("qwen2_5_omni_bigvgan")
def bigvgan(v: Config) -> Block:
    """A vocoder from a spectrogram to a waveform, with periodic activations (BigVGAN, 2206.04658)."""
    return block("other", **hifi_gan(v, v.mel_dim, snakes=True))


# -- Qwen3-Omni (2509.17765, section 2.4) ----------------------------------------------------------------------------


@tower("qwen3_omni_moe_talker")
def qwen3_talker(t: Config) -> Block:
    """Qwen3-MoE over audio codes, and a smaller model for the further codes of each frame.

    Qwen3OmniMoeTalkerForConditionalGeneration.
    """
    decoder, q = tower_in(t, "text_config")
    predictor, p = tower_in(t, "code_predictor_config")
    t.require(
        not p.tie_word_embeddings, "tie_word_embeddings of code_predictor_config is true", "it has no one embedding"
    )
    into = block(**two_layers(t.thinker_hidden_size, q.intermediate_size, q.hidden_size))
    parts = dict(decoder.items)
    if t.tie_word_embeddings:
        parts["head"] = parts["head"].replace(tied_to="talker.embed_codes")
    return block("other", text_proj=into, hidden_proj=into, **parts, code_predictor=predictor)


def tower_qk_norm_attention(q: Config) -> Component:
    """Attention with QK norms in the category of their tower."""
    return gqa(q, bias=q.attention_bias, qk_norm=tower_norm(head_dim(q), bias=False))


@tower("qwen3_omni_moe_talker_text")
def qwen3_talker_text(q: Config) -> Block:
    """The decoder of the first codes (Qwen3OmniMoeTalkerModel)."""
    d, norm, shared = (
        q.hidden_size,
        tower_norm(q.hidden_size, bias=False),
        q.required("shared_expert_intermediate_size"),
    )
    ffn = moe(q, q.moe_intermediate_size, experts=q.num_experts, shared=shared, shared_gate=True)
    return block(
        "other",
        embed_codes=Embedding(rows=q.vocab_size, width=d),
        layers=stack("talker", Run(q.num_hidden_layers, pre_norm(norm, tower_qk_norm_attention(q), ffn))),
        norm=norm,
        head=Linear(d_in=d, d_out=q.vocab_size),
    )


@tower("qwen3_omni_moe_talker_code_predictor")
def code_predictor(q: Config) -> Block:
    """The decoder of the further codes, with a table and a head for each of them."""
    d, norm, more = q.hidden_size, tower_norm(q.hidden_size, bias=False), q.num_code_groups - 1
    layer = pre_norm(norm, tower_qk_norm_attention(q), glu(q))
    return block(
        "other",
        embed_codes=Embedding(rows=more * q.vocab_size, width=d),
        layers=stack("code predictor", Run(q.num_hidden_layers, layer)),
        norm=norm,
        heads=Linear(d_in=d, d_out=more * q.vocab_size),
    )


@tower("qwen3_omni_moe_code2wav")
def code2wav(v: Config) -> Block:
    """A vocoder from codes: layers, ConvNeXt, convolutions with periodic activations (Qwen3OmniMoeCode2Wav)."""
    d, norm, scale = v.hidden_size, tower_norm(v.hidden_size, bias=False), Param(shape=(v.hidden_size,))
    layer = layer_scaled(norm, gqa(v, bias=v.attention_bias), glu(v))
    next_layer = block(conv=Conv1d(channels=d, kernel=7), norm=tower_norm(d), ffn=mlp(v, 4 * d), scale=scale)
    parts: dict[str, Component] = {}
    for i, factor in enumerate(v.size_list("upsampling_ratios")):
        parts[f"resize_{i}"] = block(conv=conv_over_time(d, d, factor), convnext=next_layer)
    before = v.decoder_dim
    parts["conv_in"] = conv_over_time(d, before, 7)
    for i, rate in enumerate(v.size_list("upsample_rates")):
        width = symbolic(f"c_{i + 1}", v.decoder_dim // 2 ** (i + 1), origin=f"decoder_dim / 2^{i + 1}")
        periodic = snake(width)
        one = block(
            snake_1=periodic,
            conv_1=conv_over_time(width, width, 7),
            snake_2=periodic,
            conv_2=conv_over_time(width, width, 1),
        )
        parts[f"up_{i}"] = block(snake=snake(before), conv=conv_over_time(before, width, 2 * rate))
        parts |= {f"residual_{i}_{j}": one for j in range(3)}
        before = width
    return block(
        "other",
        codes=Embedding(rows=v.num_quantizers * v.codebook_size, width=d),
        layers=stack("vocoder", Run(v.num_hidden_layers, layer)),
        norm=norm,
        **parts,
        snake=snake(before),
        conv_out=conv_over_time(before, 1, 7),
    )
