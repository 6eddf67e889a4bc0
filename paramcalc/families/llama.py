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

# A family's defaults name just the fields that its recipe reads: a field that only its relatives read is foreign to it.
SIZES = dict(
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=None,
    head_dim=None,
)
LLAMA = SIZES | dict(attention_bias=False, mlp_bias=False)
MISTRAL = SIZES | dict(intermediate_size=14336, num_key_value_heads=8, sliding_window=4096)
QWEN = SIZES | dict(vocab_size=151936, intermediate_size=22016, num_key_value_heads=32)
QWEN_WINDOW = dict(use_sliding_window=False, sliding_window=4096, max_window_layers=28)
QWEN_NULLABLE = ["sliding_window", "num_key_value_heads"]
OLMO = SIZES | dict(vocab_size=50304, attention_bias=False)
PLAIN = {name: size for name, size in SIZES.items() if size is not None}  # a class without groups and head sizes
NO_BIASES = dict(attention_bias=False, mlp_bias=False)
NO_GROUPS = dict(num_key_value_heads=None, head_dim=None)


@family("llama", "LlamaForCausalLM", defaults=LLAMA)
@family("granite", "GraniteForCausalLM", defaults=LLAMA)
@family(
    "emu3_text_model",
    "Emu3ForCausalLM",
    defaults=LLAMA | dict(vocab_size=184622, intermediate_size=14336, num_key_value_heads=8),
)
@family(
    "exaone",
    "LlamaForCausalLM",
    names=dict(num_layers="num_hidden_layers"),
    defaults=LLAMA | dict(vocab_size=102400, intermediate_size=14336, num_key_value_heads=8),
    nullable=["num_key_value_heads"],
)
@family(
    "internlm3",
    "LlamaForCausalLM",
    names=dict(qkv_bias="attention_bias", bias="mlp_bias"),
    defaults=LLAMA
    | dict(vocab_size=128512, intermediate_size=10240, num_hidden_layers=48, num_key_value_heads=2, head_dim=128),
    nullable=["num_key_value_heads", "head_dim"],
)
@family("baichuan", "BaichuanForCausalLM", defaults=PLAIN | dict(vocab_size=64000), fixed=NO_BIASES | NO_GROUPS)
@family(
    "Yi",
    "YiForCausalLM",
    defaults=PLAIN | dict(vocab_size=64000, num_key_value_heads=4),
    fixed=NO_BIASES | dict(head_dim=None),
)
@family(
    "internlm2",
    "InternLM2ForCausalLM",
    names=dict(attention_bias="bias"),
    defaults=PLAIN | dict(vocab_size=103168, num_key_value_heads=None, attention_bias=True),
    fixed=dict(mlp_bias=False, head_dim=None),
)
@family(
    "iquestcoder",
    "LlamaForCausalLM",
    defaults=LLAMA
    | dict(
        vocab_size=76800,
        hidden_size=5120,
        intermediate_size=27648,
        num_hidden_layers=80,
        num_attention_heads=40,
        num_key_value_heads=8,
        head_dim=128,
    ),
    nullable=["num_key_value_heads", "head_dim"],
)
def llama(c: Config) -> Block:
    """Pre-norm decoder: rotary positions, grouped-query attention, gated FFN (LlamaForCausalLM)."""
    bias = c.attention_bias
    layer = pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias), glu(c, bias=c.mlp_bias))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("mistral", "MistralForCausalLM", defaults=MISTRAL, nullable=["sliding_window"])
@family(
    "ministral3",
    "Ministral3ForCausalLM",
    defaults=MISTRAL | dict(vocab_size=131072, num_hidden_layers=34, head_dim=128, sliding_window=None),
    nullable=["num_key_value_heads", "head_dim"],
)
@family(
    "phi3",
    "Phi3ForCausalLM",
    defaults=SIZES | dict(vocab_size=32064, hidden_size=3072, intermediate_size=8192, sliding_window=None),
)
def mistral(c: Config) -> Block:
    """Llama without biases, with a sliding window in every layer where one is stated (MistralForCausalLM)."""
    layer = pre_norm(rms(c), gqa(c, window=c.sliding_window), glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("qwen2", "Qwen2ForCausalLM", defaults=QWEN | QWEN_WINDOW | dict(layer_types=None), nullable=QWEN_NULLABLE)
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


@family(
    "qwen3",
    "Qwen3ForCausalLM",
    defaults=QWEN | QWEN_WINDOW | dict(head_dim=128, attention_bias=False, layer_types=None),
    nullable=QWEN_NULLABLE,
)
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


@family("olmo", "OlmoForCausalLM", defaults=OLMO)
def olmo(c: Config) -> Block:
    """Llama with norms that have no weights at all (OlmoForCausalLM)."""
    bias, norm = c.attention_bias, Norm(width=c.hidden_size, scale=False)
    layer = pre_norm(norm, gqa(c, qkv_bias=bias, out_bias=bias), glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm)


@family("olmo2", "Olmo2ForCausalLM", defaults=OLMO)
def olmo2(c: Config) -> Block:
    """Llama with the norms after attention and FFN, and QK norms over all heads at once (Olmo2ForCausalLM)."""
    bias, d_h = c.attention_bias, head_dim(c)
    q_norm, k_norm = Norm(width=c.num_attention_heads * d_h), Norm(width=kv_heads(c) * d_h)
    attn = gqa(c, qkv_bias=bias, out_bias=bias, q_norm=q_norm, k_norm=k_norm)
    layer = block(attn=attn, post_attn_norm=rms(c), ffn=glu(c), post_ffn_norm=rms(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family(
    "starcoder2",
    "Starcoder2ForCausalLM",
    defaults=SIZES
    | dict(
        vocab_size=49152,
        hidden_size=3072,
        intermediate_size=12288,
        num_hidden_layers=30,
        num_attention_heads=24,
        num_key_value_heads=2,
        use_bias=True,
        sliding_window=None,
        tie_word_embeddings=True,
    ),
    unused=["mlp_type", "norm_type"],  # named in published files, fixed in the class
)
def starcoder2(c: Config) -> Block:
    """Pre-norm decoder with LayerNorms, biases and a plain FFN (Starcoder2ForCausalLM)."""
    bias = c.use_bias
    attn = gqa(c, qkv_bias=bias, out_bias=bias, window=c.sliding_window)
    layer = pre_norm(layer_norm(c), attn, mlp(c, c.intermediate_size, bias=bias))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c))


@family(
    "stablelm_epoch",
    "StableLMEpochForCausalLM",
    fixed=dict(head_dim=None, qk_layernorm=False, use_parallel_residual=False),
    unused=["rotary_scaling_factor"],
    defaults=PLAIN
    | dict(
        vocab_size=50304,
        hidden_size=2560,
        intermediate_size=6912,
        num_key_value_heads=32,
        use_qkv_bias=False,
    ),
)
@family(
    "stablelm",
    "StableLmForCausalLM",
    fixed=dict(head_dim=None),
    unused=["head_dim"],
    defaults=SIZES
    | dict(
        vocab_size=50304,
        hidden_size=2560,
        intermediate_size=6912,
        num_key_value_heads=32,
        use_qkv_bias=False,
        qk_layernorm=False,
        use_parallel_residual=False,
    ),
)
def stablelm(c: Config) -> Block:
    """LayerNorms, gated FFN, optional q/k/v biases and one QK norm per head; parallel or not (StableLmForCausalLM)."""
    q_norm, k_norm = norm_per_head(c) if c.qk_layernorm else (None, None)
    attn = gqa(c, qkv_bias=c.use_qkv_bias, q_norm=q_norm, k_norm=k_norm)
    post_norm = None if c.use_parallel_residual else layer_norm(c)
    layer = block(input_norm=layer_norm(c), attn=attn, post_norm=post_norm, ffn=glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c))


@family(
    "cohere",
    "CohereForCausalLM",
    defaults=SIZES
    | dict(
        vocab_size=256000,
        hidden_size=8192,
        intermediate_size=22528,
        num_hidden_layers=40,
        num_attention_heads=64,
        attention_bias=False,
        use_qk_norm=False,
        tie_word_embeddings=True,
    ),
)
def cohere(c: Config) -> Block:
    """Parallel attention and FFN behind one norm without bias; QK norms per head (CohereForCausalLM)."""
    bias, norm = c.attention_bias, rms(c)
    q_norm, k_norm = norm_per_head(c) if c.use_qk_norm else (None, None)
    attn = gqa(c, qkv_bias=bias, out_bias=bias, q_norm=q_norm, k_norm=k_norm)
    layer = block(input_norm=norm, attn=attn, ffn=glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm)


@family(
    "phi",
    "PhiForCausalLM",
    defaults=SIZES
    | dict(
        vocab_size=51200,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=24,
        qk_layernorm=False,
    ),
)
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
