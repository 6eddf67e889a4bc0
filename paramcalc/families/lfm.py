"""LFM: short convolutions in most layers, attention in a few."""

from __future__ import annotations

from paramcalc.components import ShortConv
from paramcalc.config import Config
from paramcalc.dims import named
from paramcalc.families.normed import normed
from paramcalc.families.patterns import first_dense, mixers
from paramcalc.families.registry import family
from paramcalc.families.skeletons import DENSE, FULL, SLIDING, SPARSE, causal_lm, glu, interleaved, moe, rms
from paramcalc.spec import Block, Component, Linear, block

CONV = "conv"


def short_conv(c: Config) -> ShortConv:
    """LFM2's convolution of conv_L_cache tokens."""
    return ShortConv(width=c.hidden_size, kernel=c.conv_L_cache, bias=c.conv_bias)


def lfm2_mixers(c: Config) -> dict[str, Component]:
    """Attention with norms on query and key heads, and short convolutions."""
    return {FULL: normed(c), CONV: short_conv(c)}


@family("lfm2")
def lfm2(c: Config) -> Block:
    """Short convolutions and attention; the stated FFN width is cut to 2/3 and rounded up (Lfm2ForCausalLM)."""
    hidden, multiple, factor = c.block_ff_dim or c.intermediate_size, c.block_multiple_of, c.block_ffn_dim_multiplier
    if c.block_auto_adjust_ff_dim:
        rounded = -(-int(factor * (2 * hidden // 3)) // multiple) * multiple
        hidden = named("d_ff", rounded, origin="2/3 of the stated width, adjusted")
    full = set(c.numbers("full_attn_idxs")) if c.raw("full_attn_idxs") is not None else range(c.num_hidden_layers)
    words = mixers(c, [FULL if i in full else CONV for i in range(c.num_hidden_layers)], (FULL, CONV))
    layers = interleaved(c, lfm2_mixers(c), words, {DENSE: glu(c, hidden)}, [DENSE] * len(words))
    return causal_lm(c, layers, norm=rms(c))


@family("lfm2_moe")
def lfm2_moe(c: Config) -> Block:
    """LFM2 with experts after the first num_dense_layers layers (Lfm2MoeForCausalLM)."""
    c.require(c.says("layer_types"), "layer_types is required and missing", "the class has no default for it")
    experts = moe(c, c.moe_intermediate_size, experts=c.num_experts, correction=c.use_expert_bias)
    ffn, ffn_words = {DENSE: glu(c), SPARSE: experts}, first_dense(c, c.num_dense_layers)
    layers = interleaved(c, lfm2_mixers(c), mixers(c, [], (FULL, CONV)), ffn, ffn_words)
    return causal_lm(c, layers, norm=rms(c))


@family("lfm3")
def lfm3(c: Config) -> Block:
    """LFM2 with sliding attention too, a gate per head, and norms on both sides of each part (Lfm3ForCausalLM)."""
    after = rms(c) if c.use_sandwich_norm else None
    gate = Linear(d_in=c.hidden_size, d_out=c.num_attention_heads) if c.use_attention_gate else None

    def attention(window: int | None) -> Component:
        return normed(c, bias=c.attention_bias, inner=gate, window=window)

    mixer = {FULL: attention(None), SLIDING: attention(c.sliding_window), CONV: short_conv(c)}
    layers = {
        word: block(
            input_norm=rms(c), attn=part, post_attn_norm=after, pre_ffn_norm=rms(c), ffn=glu(c), post_norm=after
        )
        for word, part in mixer.items()
    }
    default = [FULL if i % 4 == 2 else SLIDING if i % 4 == 0 and i else CONV for i in range(c.num_hidden_layers)]
    return causal_lm(c, [layers[word] for word in mixers(c, default, tuple(mixer))], norm=rms(c))
