"""Recent dense decoders: Llama's layer with other norms, feed-forward networks, gates, or windows in some layers."""

from __future__ import annotations

from paramcalc.components import Mlp
from paramcalc.config import Config
from paramcalc.families.heads import decoder_head, labels
from paramcalc.families.registry import family
from paramcalc.families.skeletons import (
    FULL,
    SLIDING,
    causal_lm,
    every,
    glu,
    gqa,
    head_dim,
    kinds,
    kv_heads,
    latent_attention,
    layer_norm,
    llama_like,
    mha,
    mlp,
    norms_around,
    pre_norm,
    rms,
    sizes,
    windowed,
)
from paramcalc.spec import Block, Component, Embedding, Linear, Norm, Param, Run, block, stack

BIASES = dict(attention_bias=False, mlp_bias=False)
WINDOW = dict(sliding_window=4096, layer_types=None)


def stated(c: Config, name: str) -> None:
    """Refuse a config that leaves out a field for which the reference class has no default that works."""
    if getattr(c, name) is None:
        raise c.missing(name)


# -- the same layer throughout -----------------------------------------------------------------------------------


@family("arcee", "ArceeForCausalLM", defaults=sizes(32000, 2560, 18432, 32, 32) | BIASES)
def arcee(c: Config) -> Block:
    """Llama with a plain FFN (ArceeForCausalLM)."""
    bias = c.attention_bias
    return llama_like(c, gqa(c, qkv_bias=bias, out_bias=bias), mlp(c, c.intermediate_size, bias=c.mlp_bias))


@family(
    "ernie4_5",
    "Ernie4_5ForCausalLM",
    defaults=sizes(103424, 1024, 3072, 18, 16, 2, 128, use_bias=False, tie_word_embeddings=True),
    nullable=["num_key_value_heads", "head_dim"],
)
def ernie4_5(c: Config) -> Block:
    """Llama with one flag for all biases (Ernie4_5ForCausalLM)."""
    bias = c.use_bias
    return llama_like(c, gqa(c, qkv_bias=bias, out_bias=bias), glu(c, bias=bias))


GLM = sizes(151552, 4096, 13696, 40, 32, 2, 128, attention_bias=True)


@family("glm", "GlmForCausalLM", defaults=GLM)
def glm(c: Config) -> Block:
    """Llama with biases on q, k and v (GlmForCausalLM)."""
    return llama_like(c, gqa(c, qkv_bias=c.attention_bias), glu(c))


@family("glm4", "Glm4ForCausalLM", defaults=GLM)
def glm4(c: Config) -> Block:
    """GLM with norms on both sides of each part (Glm4ForCausalLM)."""
    layer = norms_around(rms(c), gqa(c, qkv_bias=c.attention_bias), glu(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family(
    "hyperclovax",
    "HyperCLOVAXForCausalLM",
    defaults=sizes(32000, 4096, 11008, 32, 32, use_post_norm=True) | BIASES,
)
def hyperclovax(c: Config) -> Block:
    """Llama with a norm after each part too, if asked for (HyperCLOVAXForCausalLM)."""
    bias, layout = c.attention_bias, norms_around if c.use_post_norm else pre_norm
    layer = layout(rms(c), gqa(c, qkv_bias=bias, out_bias=bias), glu(c, bias=c.mlp_bias))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family("helium", "HeliumForCausalLM", defaults=sizes(48000, 2560, 7040, 24, 20, 20, 128) | BIASES)
def helium(c: Config) -> Block:
    """Llama whose output projection is always square and without a bias (HeliumForCausalLM)."""
    return llama_like(c, gqa(c, qkv_bias=c.attention_bias, out_in=c.hidden_size), glu(c, bias=c.mlp_bias))


@family(
    "seed_oss",
    "SeedOssForCausalLM",
    defaults=sizes(155136, 4096, 27648, 64, 80, 8, 128)
    | dict(attention_bias=True, mlp_bias=False, attention_out_bias=False),
    nullable=["num_key_value_heads", "head_dim"],
)
def seed_oss(c: Config) -> Block:
    """Llama with separate flags for the biases of q, k, v and of the output (SeedOssForCausalLM)."""
    attn = gqa(c, qkv_bias=c.attention_bias, out_bias=c.attention_out_bias)
    return llama_like(c, attn, glu(c, bias=c.mlp_bias))


@family(
    "hunyuan_v1_dense",
    "HunYuanDenseV1ForCausalLM",
    defaults=sizes(290943, 4096, 11008, 32, 32, attention_bias=False),
)
def hunyuan_v1_dense(c: Config) -> Block:
    """Llama with RMS norms on each query and key head (HunYuanDenseV1ForCausalLM)."""
    stated(c, "head_dim")
    bias, norm = c.attention_bias, Norm(width=head_dim(c))
    return llama_like(c, gqa(c, qkv_bias=bias, out_bias=bias, q_norm=norm, k_norm=norm), glu(c))


APERTUS = sizes(131072, 4096, 14336, 32, 32, attention_bias=False, hidden_act="xielu")


@family(
    "apertus",
    "ApertusForCausalLM",
    defaults=APERTUS,
    fixed=dict(output_vocab_size=None),
    unused=["mlp_bias", "post_norm", "qk_norm"],  # stand in published files, fixed in the class
)
@family(
    "apertus1p5_text", "Apertus1p5TextForCausalLM", defaults=APERTUS | dict(vocab_size=266752, output_vocab_size=None)
)
def apertus(c: Config) -> Block:
    """Llama with QK norms and a plain FFN whose activation has two learned slopes (ApertusForCausalLM).

    xIELU (2411.13010) also keeps two constants as buffers.
    """
    bias, norm = c.attention_bias, Norm(width=head_dim(c))
    slope, constant = Param(shape=(1,)), Param(shape=(), buffer=True)
    xielu = block(alpha_p=slope, alpha_n=slope, beta=constant, eps=constant) if c.hidden_act == "xielu" else None
    ffn = Mlp(width=c.hidden_size, hidden=c.intermediate_size, gated=False, inner=xielu)
    layer = pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias, q_norm=norm, k_norm=norm), ffn)
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c), head_rows=c.output_vocab_size)


@family(
    "bitnet",
    "BitNetForCausalLM",
    defaults=sizes(128256, 2560, 6912, 30, 20, 5, attention_bias=False),
    nullable=["num_key_value_heads"],
)
def bitnet(c: Config) -> Block:
    """Llama with a norm before each output projection (BitNetForCausalLM)."""
    bias = c.attention_bias
    ffn = Mlp(width=c.hidden_size, hidden=c.intermediate_size, gated=True, inner=Norm(width=c.intermediate_size))
    return llama_like(c, gqa(c, qkv_bias=bias, out_bias=bias, inner=rms(c)), ffn)


@family("diffllama", "DiffLlamaForCausalLM", defaults=sizes(32000, 2048, 8192, 16, 32, attention_bias=False))
def diffllama(c: Config) -> Block:
    """Llama whose attention is the difference of two maps, weighed by four learned vectors (DiffLlamaForCausalLM)."""
    bias, vector = c.attention_bias, Param(shape=(head_dim(c),))
    c.require(
        kv_heads(c) % 2 == 0, f"num_key_value_heads ({kv_heads(c)}) is odd", "the values are split between two maps"
    )
    weights = block(lambda_q1=vector, lambda_k1=vector, lambda_q2=vector, lambda_k2=vector)
    return llama_like(c, gqa(c, qkv_bias=bias, out_bias=bias, inner=weights), glu(c))


@family("jais2", "Jais2ForCausalLM", defaults=sizes(150272, 3328, 26624, 32, 26, attention_bias=True, mlp_bias=True))
@family("nemotron", "NemotronForCausalLM", defaults=sizes(256000, 6144, 24576, 32, 48) | BIASES)
def nemotron(c: Config) -> Block:
    """Llama with LayerNorms and a plain FFN (NemotronForCausalLM)."""
    bias, ffn = c.attention_bias, mlp(c, c.intermediate_size, bias=c.mlp_bias)
    layer = pre_norm(layer_norm(c), gqa(c, qkv_bias=bias, out_bias=bias), ffn)
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c))


@family("nanochat", "NanoChatForCausalLM", defaults=sizes(50304, 768, 8192, 12, 6, attention_bias=False))
def nanochat(c: Config) -> Block:
    """Norms without weights, those on queries and keys too, and a plain FFN (NanoChatForCausalLM)."""
    bias, norm = c.attention_bias, Norm(width=c.hidden_size, scale=False)
    layer = pre_norm(norm, gqa(c, qkv_bias=bias, out_bias=bias), mlp(c, c.intermediate_size, bias=False))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm)


# No key/value heads, and head sizes from the qk_ and v_ fields.
LATENT = dict(qk_rope_head_dim=64, attention_bias=False, tie_word_embeddings=True)
LATENT_UNUSED = ["num_key_value_heads", "head_dim", "qk_head_dim"]


@family(
    "minicpm3",
    "MiniCPM3ForCausalLM",
    defaults=LATENT
    | dict(vocab_size=73448, hidden_size=2560, intermediate_size=6400, num_hidden_layers=62, num_attention_heads=40)
    | dict(q_lora_rank=768, kv_lora_rank=256, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=None)
    | dict(mlp_bias=False),
    nullable=["q_lora_rank"],
    unused=LATENT_UNUSED,
)
@family(
    "youtu",
    "YoutuForCausalLM",
    defaults=LATENT
    | dict(vocab_size=128256, hidden_size=2048, intermediate_size=6144, num_hidden_layers=32, num_attention_heads=16)
    | dict(q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, v_head_dim=128),
    fixed=dict(mlp_bias=False),
    nullable=["q_lora_rank"],
    unused=LATENT_UNUSED,
)
def minicpm3(c: Config) -> Block:
    """Dense decoder with latent attention (MiniCPM3ForCausalLM)."""
    return llama_like(c, latent_attention(c), glu(c, bias=c.mlp_bias))


# -- windows in some layers --------------------------------------------------------------------------------------


@family(
    "cwm",
    "CwmForCausalLM",
    defaults=sizes(128256, 6144, 21504, 64, 48, 8, 128, sliding_window=8192, layer_types=None, mlp_bias=False),
    nullable=["sliding_window", "num_key_value_heads", "head_dim"],
)
def cwm(c: Config) -> Block:
    """Llama with full attention in every fourth layer from the first on (CwmForCausalLM)."""
    words = [SLIDING if i % 4 else FULL for i in range(c.num_hidden_layers)]
    layers = windowed(c, lambda window: pre_norm(rms(c), gqa(c, window=window), glu(c, bias=c.mlp_bias)), words)
    return causal_lm(c, layers, norm=rms(c))


@family(
    "granite_swa",
    "GraniteSWAForCausalLM",
    defaults=sizes(100352, 2560, 8192, 24, 20, 4, sliding_window=128, layer_types=None, tie_word_embeddings=True)
    | BIASES,
    nullable=["sliding_window", "num_key_value_heads"],
)
def granite_swa(c: Config) -> Block:
    """Granite with a sink per head, full attention in every fourth layer from the first on (GraniteSWAForCausalLM)."""
    bias = c.attention_bias

    def layer(window: int | None) -> Block:
        attn = gqa(c, qkv_bias=bias, out_bias=bias, sinks=True, window=window)
        return pre_norm(rms(c), attn, glu(c, bias=c.mlp_bias))

    words = [SLIDING if i % 4 else FULL for i in range(c.num_hidden_layers)]
    return causal_lm(c, windowed(c, layer, words), norm=rms(c))


@family(
    "smollm3",
    "SmolLM3ForCausalLM",
    defaults=sizes(128256, 2048, 11008, 36, 16, 4)
    | BIASES
    | dict(use_sliding_window=False, sliding_window=None, layer_types=None, no_rope_layers=None)
    | dict(no_rope_layer_interval=4, tie_word_embeddings=True),
    nullable=["num_key_value_heads"],
)
def smollm3(c: Config) -> Block:
    """Llama; windows, if used, in the layers without rotary positions, every fourth (SmolLM3ForCausalLM)."""
    bias, window = c.attention_bias, c.sliding_window if c.use_sliding_window else None
    layers = {
        kind: pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias, window=width), glu(c, bias=c.mlp_bias))
        for kind, width in ((FULL, None), (SLIDING, window))
    }
    default = [(i + 1) % c.no_rope_layer_interval for i in range(c.num_hidden_layers)]
    ropes = c.per_layer("no_rope_layers") or default
    words = kinds(c, [SLIDING if window and not rope else FULL for rope in ropes])
    return causal_lm(c, [layers[word] for word in words], norm=rms(c))


@family(
    "ministral",
    "MinistralForCausalLM",
    defaults=sizes(32000, 4096, 14336, 32, 32, 8) | WINDOW,
    nullable=["sliding_window", "num_key_value_heads"],
)
def ministral(c: Config) -> Block:
    """Mistral with a word for each layer's attention, by default sliding (MinistralForCausalLM)."""
    stated(c, "head_dim")
    default = [SLIDING if c.sliding_window else FULL] * c.num_hidden_layers
    layers = windowed(c, lambda window: pre_norm(rms(c), gqa(c, window=window), glu(c)), default)
    return causal_lm(c, layers, norm=rms(c))


@family(
    "vaultgemma",
    "VaultGemmaForCausalLM",
    defaults=sizes(256000, 2304, 9216, 26, 8, 4, 256, attention_bias=False, tie_word_embeddings=True) | WINDOW,
    nullable=["sliding_window"],
)
def vaultgemma(c: Config) -> Block:
    """Gemma 2 without the norms after attention and FFN (VaultGemmaForCausalLM)."""
    bias = c.attention_bias
    layers = windowed(
        c,
        lambda window: pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias, window=window), glu(c)),
        every(2, FULL, otherwise=SLIDING, layers=c.num_hidden_layers),
    )
    return causal_lm(c, layers, norm=rms(c))


@family(
    "olmo3",
    "Olmo3ForCausalLM",
    defaults=sizes(50304, 4096, 11008, 32, 32, attention_bias=False) | WINDOW,
    nullable=["sliding_window"],
)
def olmo3(c: Config) -> Block:
    """OLMo 2 with full attention in every fourth layer (Olmo3ForCausalLM)."""
    bias, d_h = c.attention_bias, head_dim(c)
    q_norm, k_norm = Norm(width=c.num_attention_heads * d_h), Norm(width=kv_heads(c) * d_h)

    def layer(window: int | None) -> Block:
        attn = gqa(c, qkv_bias=bias, out_bias=bias, q_norm=q_norm, k_norm=k_norm, window=window)
        return block(attn=attn, post_attn_norm=rms(c), ffn=glu(c), post_ffn_norm=rms(c))

    words = every(4, FULL, otherwise=SLIDING, layers=c.num_hidden_layers)
    return causal_lm(c, windowed(c, layer, words), norm=rms(c))


@family(
    "exaone4",
    "Exaone4ForCausalLM",
    defaults=sizes(102400, 4096, 16384, 32, 32, 32, sliding_window_pattern=4) | WINDOW,
    nullable=["sliding_window"],
)
def exaone4(c: Config) -> Block:
    """Norms after attention and FFN, QK norms; full attention in every fourth layer (Exaone4ForCausalLM)."""
    norm = Norm(width=head_dim(c))

    def layer(window: int | None) -> Block:
        attn = gqa(c, q_norm=norm, k_norm=norm, window=window)
        return block(attn=attn, post_attn_norm=rms(c), ffn=glu(c), post_ffn_norm=rms(c))

    unasked = c.raw("layer_types") is not None or c.sliding_window is None
    period = 1 if unasked else c.sliding_window_pattern
    words = every(period, FULL, otherwise=SLIDING, layers=c.num_hidden_layers)
    return causal_lm(c, windowed(c, layer, words), norm=rms(c))


COHERE2 = sizes(256000, 8192, 22528, 40, 64, attention_bias=False, tie_word_embeddings=True) | WINDOW


def parallel(c: Config, default: list[str]) -> Block:
    """Attention and FFN beside each other behind one norm without bias, windows in some layers."""
    bias = c.attention_bias
    layers = windowed(
        c,
        lambda window: block(input_norm=rms(c), attn=gqa(c, qkv_bias=bias, out_bias=bias, window=window), ffn=glu(c)),
        default,
    )
    return causal_lm(c, layers, norm=rms(c))


@family("cohere2", "Cohere2ForCausalLM", defaults=COHERE2 | dict(sliding_window_pattern=4), nullable=["sliding_window"])
def cohere2(c: Config) -> Block:
    """Cohere without QK norms; full attention in every fourth layer (Cohere2ForCausalLM)."""
    return parallel(c, every(c.sliding_window_pattern, FULL, otherwise=SLIDING, layers=c.num_hidden_layers))


@family(
    "cohere_compass_text", "CohereCompassForCausalLM", defaults=COHERE2, nullable=["sliding_window"], unused=["pooling"]
)
def cohere_compass_text(c: Config) -> Block:
    """Cohere 2 with full attention in every layer unless layer_types says otherwise (CohereCompassForCausalLM)."""
    return parallel(c, [FULL] * c.num_hidden_layers)


@family(
    "modernbert-decoder",
    "ModernBertDecoderForCausalLM",
    defaults=dict(vocab_size=50368, hidden_size=768, intermediate_size=1152, num_hidden_layers=22)
    | dict(num_attention_heads=12, norm_bias=False, attention_bias=False, mlp_bias=False, decoder_bias=True)
    | dict(classifier_bias=False, local_attention=128, global_attn_every_n_layers=3, layer_types=None)
    | dict(tie_word_embeddings=True),
    unused=["classifier_activation"],
)
def modernbert_decoder(c: Config) -> Block:
    """ModernBERT that looks back only: no norm before the first attention (ModernBertDecoderForCausalLM)."""
    bias, norm, period = c.attention_bias, Norm(width=c.hidden_size, bias=c.norm_bias), c.global_attn_every_n_layers

    def layer(i: int, word: str) -> Block:
        window = c.local_attention // 2 if word == SLIDING else None
        attn = mha(c, qkv_bias=bias, out_bias=bias, window=window)
        return block(attn_norm=norm if i else None, attn=attn, ffn_norm=norm, ffn=glu(c, bias=c.mlp_bias))

    words = kinds(c, [SLIDING if i % period else FULL for i in range(c.num_hidden_layers)])
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=c.hidden_size),
        embed_norm=norm,
        layers=stack("decoder", [layer(i, word) for i, word in enumerate(words)]),
        norm=norm,
        **modernbert_head(c, norm),
    )


def modernbert_head(c: Config, norm: Norm) -> dict[str, Component]:
    """A transform and a norm before the output matrix or the classifier."""
    d, bias = c.hidden_size, c.classifier_bias
    transform = {"transform": Linear(d_in=d, d_out=d, bias=bias, category="head"), "head_norm": norm}
    match c.head:
        case "lm":
            return transform | decoder_head(c, d, bias=c.decoder_bias)
        case "sequence_classification":
            return transform | {"classifier": Linear(d_in=d, d_out=labels(c), bias=bias, category="head")}
    return decoder_head(c, d)
