"""Pre-norm decoders with rotary positions and grouped-query attention: Llama and its close relatives."""

from __future__ import annotations

from paramcalc.components import Attention
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import (
    equal_heads,
    gqa,
    qk_norm_all_heads,
    qk_norm_per_head,
    qk_norm_separate,
    sliding,
)
from paramcalc.families.builders.decoder import decoder, layer_norm, norms_after, parallel, pre_norm
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.layer_types import FULL, SLIDING, attention_types
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block
from paramcalc.tree.leaves import Norm


@family(
    "llama",
    "granite",
    "granite4_vision_text",
    "granite_docling_text",
    "emu3_text_model",
    "exaone",
    "internlm3",
    "baichuan",
    "Yi",
    "internlm2",
    "iquestcoder",
)
def llama(c: Config) -> Block:
    """Pre-norm decoder: rotary positions, grouped-query attention, gated FFN (LlamaForCausalLM)."""
    return decoder(c, gqa(c, bias=c.attention_bias), glu(c, bias=c.mlp_bias))


@family("mistral", "ministral3", "phi3")
def mistral(c: Config) -> Block:
    """Llama without biases, with a sliding window in every layer where one is stated (MistralForCausalLM)."""
    return decoder(c, gqa(c, window=c.sliding_window), glu(c))


@family("qwen2", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text")
def qwen2(c: Config) -> Block:
    """Llama with biases on q, k and v; sliding windows from max_window_layers on, if used (Qwen2ForCausalLM)."""
    return late_windows(c, gqa(c, qkv_bias=True))


@family("qwen3", "qwen3_vl_text")
def qwen3(c: Config) -> Block:
    """Llama with RMS norms on each query and key head (Qwen3ForCausalLM)."""
    return late_windows(c, qk_norm_per_head(c, bias=c.attention_bias))


def late_windows(c: Config, attn: Attention) -> Block:
    """Llama with windows from layer max_window_layers on where use_sliding_window says so, or as layer_types says."""
    window = c.sliding_window if c.use_sliding_window else None
    first = c.max_window_layers if window else c.num_hidden_layers
    words = attention_types(c, [FULL if i < first else SLIDING for i in range(c.num_hidden_layers)])
    return decoder(c, sliding(attn, window), glu(c), words)


@family("olmo")
def olmo(c: Config) -> Block:
    """Llama with norms that have no weights at all (OlmoForCausalLM)."""
    return decoder(c, gqa(c, bias=c.attention_bias), glu(c), norm=Norm(width=c.hidden_size, scale=False))


@family("olmo2")
def olmo2(c: Config) -> Block:
    """Llama with the norms after attention and FFN, and QK norms over all heads at once (Olmo2ForCausalLM)."""
    return decoder(c, qk_norm_all_heads(c, bias=c.attention_bias), glu(c), layer=norms_after)


@family("starcoder2")
def starcoder2(c: Config) -> Block:
    """Pre-norm decoder with LayerNorms, biases and a plain FFN (Starcoder2ForCausalLM)."""
    attn, ffn = gqa(c, bias=c.use_bias, window=c.sliding_window), mlp(c, c.intermediate_size, bias=c.use_bias)
    return decoder(c, attn, ffn, norm=layer_norm(c))


@family("stablelm", "stablelm_epoch")
def stablelm(c: Config) -> Block:
    """LayerNorms, gated FFN, optional q/k/v biases and one QK norm per head; parallel or not (StableLmForCausalLM)."""
    attn = (qk_norm_separate if c.qk_layernorm else gqa)(c, qkv_bias=c.use_qkv_bias)
    return decoder(c, attn, glu(c), layer=parallel if c.use_parallel_residual else pre_norm, norm=layer_norm(c))


@family("cohere")
def cohere(c: Config) -> Block:
    """Parallel attention and FFN behind one norm without bias; QK norms per head (CohereForCausalLM)."""
    attn = (qk_norm_separate if c.use_qk_norm else gqa)(c, bias=c.attention_bias)
    return decoder(c, attn, glu(c), layer=parallel)


@family("phi")
def phi(c: Config) -> Block:
    """Parallel attention and plain FFN behind one LayerNorm, biases everywhere, the head too (PhiForCausalLM)."""
    attn = gqa(c, bias=True, qk_norm=Norm(width=equal_heads(c), bias=True) if c.qk_layernorm else None)
    ffn = mlp(c, c.intermediate_size)
    return decoder(c, attn, ffn, layer=parallel, norm=layer_norm(c), head_bias=True)
