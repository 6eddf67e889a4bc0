"""Pre-norm decoders with rotary positions and grouped-query attention: Llama and its close relatives."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.families.registry import family
from paramcalc.families.skeletons import (
    FULL,
    SLIDING,
    causal_lm,
    equal_heads,
    glu,
    gqa,
    head_dim,
    kinds,
    kv_heads,
    layer_norm,
    mlp,
    norm_per_head,
    pre_norm,
    rms,
)
from paramcalc.spec import Block, Component, Norm, Run, block


@family("llama", "granite", "emu3_text_model", "exaone", "internlm3", "baichuan", "Yi", "internlm2", "iquestcoder")
def llama(c: Config) -> Block:
    """Pre-norm decoder: rotary positions, grouped-query attention, gated FFN (LlamaForCausalLM)."""
    bias = c.attention_bias
    layer = pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias), glu(c, bias=c.mlp_bias))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("mistral", "ministral3", "phi3")
def mistral(c: Config) -> Block:
    """Llama without biases, with a sliding window in every layer where one is stated (MistralForCausalLM)."""
    layer = pre_norm(rms(c), gqa(c, window=c.sliding_window), glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("qwen2")
def qwen2(c: Config) -> Block:
    """Llama with biases on q, k and v; sliding windows from max_window_layers on, if used (Qwen2ForCausalLM)."""
    window = c.sliding_window if c.use_sliding_window else None
    first = c.max_window_layers if window else c.num_hidden_layers
    default = [FULL if i < first else SLIDING for i in range(c.num_hidden_layers)]
    layers = {
        kind: pre_norm(rms(c), gqa(c, qkv_bias=True, window=width), glu(c))
        for kind, width in ((FULL, None), (SLIDING, window))
    }
    return causal_lm(c, [layers[kind] for kind in kinds(c, default)], norm=rms(c))


@family("qwen3")
def qwen3(c: Config) -> Block:
    """Llama with RMS norms on each query and key head (Qwen3ForCausalLM)."""
    bias, window = c.attention_bias, c.sliding_window if c.use_sliding_window else None
    first = c.max_window_layers if window else c.num_hidden_layers
    default = [FULL if i < first else SLIDING for i in range(c.num_hidden_layers)]
    norm = Norm(width=head_dim(c))
    layers = {
        kind: pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias, q_norm=norm, k_norm=norm, window=width), glu(c))
        for kind, width in ((FULL, None), (SLIDING, window))
    }
    return causal_lm(c, [layers[kind] for kind in kinds(c, default)], norm=rms(c))


@family("olmo")
def olmo(c: Config) -> Block:
    """Llama with norms that have no weights at all (OlmoForCausalLM)."""
    bias, norm = c.attention_bias, Norm(width=c.hidden_size, scale=False)
    layer = pre_norm(norm, gqa(c, qkv_bias=bias, out_bias=bias), glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm)


@family("olmo2")
def olmo2(c: Config) -> Block:
    """Llama with the norms after attention and FFN, and QK norms over all heads at once (Olmo2ForCausalLM)."""
    bias, d_h = c.attention_bias, head_dim(c)
    q_norm, k_norm = Norm(width=c.num_attention_heads * d_h), Norm(width=kv_heads(c) * d_h)
    attn = gqa(c, qkv_bias=bias, out_bias=bias, q_norm=q_norm, k_norm=k_norm)
    layer = block(attn=attn, post_attn_norm=rms(c), ffn=glu(c), post_ffn_norm=rms(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("starcoder2")
def starcoder2(c: Config) -> Block:
    """Pre-norm decoder with LayerNorms, biases and a plain FFN (Starcoder2ForCausalLM)."""
    bias = c.use_bias
    attn = gqa(c, qkv_bias=bias, out_bias=bias, window=c.sliding_window)
    layer = pre_norm(layer_norm(c), attn, mlp(c, c.intermediate_size, bias=bias))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c))


@family("stablelm_epoch", "stablelm")
def stablelm(c: Config) -> Block:
    """LayerNorms, gated FFN, optional q/k/v biases and one QK norm per head; parallel or not (StableLmForCausalLM)."""
    q_norm, k_norm = norm_per_head(c) if c.qk_layernorm else (None, None)
    attn = gqa(c, qkv_bias=c.use_qkv_bias, q_norm=q_norm, k_norm=k_norm)
    post_norm = None if c.use_parallel_residual else layer_norm(c)
    layer = block(input_norm=layer_norm(c), attn=attn, post_norm=post_norm, ffn=glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c))


@family("cohere")
def cohere(c: Config) -> Block:
    """Parallel attention and FFN behind one norm without bias; QK norms per head (CohereForCausalLM)."""
    bias, norm = c.attention_bias, rms(c)
    q_norm, k_norm = norm_per_head(c) if c.use_qk_norm else (None, None)
    attn = gqa(c, qkv_bias=bias, out_bias=bias, q_norm=q_norm, k_norm=k_norm)
    layer = block(input_norm=norm, attn=attn, ffn=glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm)


@family("phi")
def phi(c: Config) -> Block:
    """Parallel attention and plain FFN behind one LayerNorm, biases everywhere, the head too (PhiForCausalLM)."""
    norm: Component = layer_norm(c)
    qk_norm = Norm(width=equal_heads(c), bias=True) if c.qk_layernorm else None
    layer = block(
        input_norm=norm,
        attn=gqa(c, qkv_bias=True, out_bias=True, q_norm=qk_norm, k_norm=qk_norm),
        ffn=mlp(c, c.intermediate_size),
    )
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm, head_bias=True)
