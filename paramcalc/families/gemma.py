"""Gemma: wide heads, large tied vocabularies, and from the second on norms on both sides of each part."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.families.registry import family
from paramcalc.families.skeletons import FULL, SLIDING, causal_lm, every, glu, gqa, head_dim, kinds, pre_norm, rms
from paramcalc.spec import Block, Norm, Run, block

GEMMA = dict(
    vocab_size=256000,
    hidden_size=3072,
    intermediate_size=24576,
    num_hidden_layers=28,
    num_attention_heads=16,
    num_key_value_heads=16,
    head_dim=256,
    attention_bias=False,
    tie_word_embeddings=True,
)
GEMMA2 = GEMMA | dict(
    hidden_size=2304,
    intermediate_size=9216,
    num_hidden_layers=26,
    num_attention_heads=8,
    num_key_value_heads=4,
    sliding_window=4096,
    layer_types=None,
)


@family("gemma", "GemmaForCausalLM", defaults=GEMMA)
def gemma(c: Config) -> Block:
    """Llama's layer with wide heads and a tied head (GemmaForCausalLM)."""
    bias = c.attention_bias
    layer = pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias), glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


def sandwich(c: Config, *, window: int | None, qk_norm: Norm | None) -> Block:
    """Gemma 2's layer: a norm before and after attention, and before and after the FFN."""
    bias, norm = c.attention_bias, rms(c)
    attn = gqa(c, qkv_bias=bias, out_bias=bias, q_norm=qk_norm, k_norm=qk_norm, window=window)
    return block(input_norm=norm, attn=attn, post_attn_norm=norm, pre_ffn_norm=norm, ffn=glu(c), post_ffn_norm=norm)


@family("gemma2", "Gemma2ForCausalLM", defaults=GEMMA2)
def gemma2(c: Config) -> Block:
    """Four norms a layer; sliding and full attention in turn, sliding first (Gemma2ForCausalLM)."""
    layers = {FULL: sandwich(c, window=None, qk_norm=None), SLIDING: sandwich(c, window=c.sliding_window, qk_norm=None)}
    words = kinds(c, every(2, FULL, otherwise=SLIDING, layers=c.num_hidden_layers))
    return causal_lm(c, [layers[word] for word in words], norm=rms(c))


@family("gemma3_text", "Gemma3ForCausalLM", defaults=GEMMA2 | dict(vocab_size=262208, sliding_window_pattern=6))
def gemma3_text(c: Config) -> Block:
    """Gemma 2 with norms on query and key heads; full attention in every sixth layer (Gemma3ForCausalLM)."""
    norm = Norm(width=head_dim(c))
    layers = {FULL: sandwich(c, window=None, qk_norm=norm), SLIDING: sandwich(c, window=c.sliding_window, qk_norm=norm)}
    words = kinds(c, every(c.sliding_window_pattern, FULL, otherwise=SLIDING, layers=c.num_hidden_layers))
    return causal_lm(c, [layers[word] for word in words], norm=rms(c))
