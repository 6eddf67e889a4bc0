"""Attention in a few layers, and in the others linear attention, a short convolution or a linear recurrent unit."""

from __future__ import annotations

from paramcalc.components import GatedDeltaNet, KimiDeltaAttention, LightningAttention, RgLru, ShortConv
from paramcalc.config import Config, Reading
from paramcalc.dims import named
from paramcalc.families.mixers import delta_net
from paramcalc.families.registry import family
from paramcalc.families.skeletons import (
    DENSE,
    FULL,
    LINEAR,
    SLIDING,
    SPARSE,
    causal_lm,
    every,
    first_dense,
    glu,
    gqa,
    head_dim,
    interleaved,
    kv_heads,
    latent_attention,
    mixers,
    mlp_words,
    moe,
    pre_norm,
    rms,
    sparse_layers,
    unbuilt_mtp,
)
from paramcalc.spec import Block, Component, Linear, Mtp, Norm, block

CONV = "conv"
SIZES = dict(
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=None,
    layer_types=None,
)

# -- gated delta rule --------------------------------------------------------------------------------------------

QWEN3_5 = dict(
    vocab_size=248320,
    hidden_size=4096,
    num_hidden_layers=32,
    num_attention_heads=16,
    num_key_value_heads=4,
    head_dim=256,
    attention_bias=False,
    layer_types=None,
    full_attention_interval=4,
    linear_conv_kernel_dim=4,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    linear_num_key_heads=16,
    linear_num_value_heads=32,
)
QWEN3_5_MOE = QWEN3_5 | dict(
    hidden_size=2048,
    num_hidden_layers=40,
    num_key_value_heads=2,
    num_experts=256,
    num_experts_per_tok=8,
    moe_intermediate_size=512,
    shared_expert_intermediate_size=512,
)
QWEN_MTP = dict(mtp_num_hidden_layers=None, mtp_use_dedicated_embeddings=False)
# In published files; the class has its gates, and experts in every layer or none, whatever they say.
QWEN_UNUSED = ["attn_output_gate", "mlp_only_layers"]


def qwen_mixers(c: Config) -> tuple[dict[str, Component], list[str]]:
    """Attention with a gate on every channel, the gated delta rule, and which layer has which."""
    bias, norm = c.attention_bias, Norm(width=head_dim(c))
    gate = Linear(d_in=c.hidden_size, d_out=c.num_attention_heads * head_dim(c), bias=bias)
    attn = gqa(c, qkv_bias=bias, out_bias=bias, q_norm=norm, k_norm=norm, inner=gate)
    default = every(c.full_attention_interval, FULL, otherwise=LINEAR, layers=c.num_hidden_layers)
    return {FULL: attn, LINEAR: delta_net(c)}, mixers(c, default)


def gated_experts(c: Config) -> Component:
    """Routed experts beside a shared one with a gate."""
    shared = c.shared_expert_intermediate_size
    return moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared, shared_gate=True)


@family(
    "qwen3_next",
    "Qwen3NextForCausalLM",
    defaults=QWEN3_5_MOE
    | dict(
        vocab_size=151936,
        intermediate_size=5632,
        num_hidden_layers=48,
        num_experts=512,
        num_experts_per_tok=10,
        decoder_sparse_step=1,
        mlp_only_layers=None,
    ),
)
def qwen3_next(c: Config) -> Block:
    """Three gated DeltaNets to each gated attention; experts in the sparse layers (Qwen3NextForCausalLM)."""
    ffn_words = [SPARSE if sparse else DENSE for sparse in sparse_layers(c)]
    layers = interleaved(c, *qwen_mixers(c), {DENSE: glu(c), SPARSE: gated_experts(c)}, ffn_words)
    return causal_lm(c, layers, norm=rms(c))


def qwen3_5_lm(c: Config, ffn: Component) -> Block:
    """Qwen3-Next's mixers with one kind of FFN, and the module for multi-token prediction that is shipped beside."""
    mixer, words = qwen_mixers(c)
    layers = {word: pre_norm(rms(c), part, ffn) for word, part in mixer.items()}
    extra = c.mtp_num_hidden_layers or 0
    if c.mtp_use_dedicated_embeddings:
        c.doubts.append(f"{c.family}: the embeddings of the multi-token-prediction module are not counted with it")
    mtp = Mtp(
        count=min(extra, 1),
        items={
            "embed_norm": rms(c),
            "hidden_norm": rms(c),
            "proj": Linear(d_in=2 * c.hidden_size, d_out=c.hidden_size, category="other"),
            **{f"layer_{i}": layers[FULL] for i in range(extra)},
            "norm": rms(c),
        },
    )
    return causal_lm(c, [layers[word] for word in words], norm=rms(c), mtp=mtp)


@family(
    "qwen3_5_text",
    "Qwen3_5ForCausalLM",
    defaults=QWEN3_5 | QWEN_MTP | dict(intermediate_size=12288),
    unused=QWEN_UNUSED,
)
def qwen3_5_text(c: Config) -> Block:
    """Qwen3-Next's mixers with a plain gated FFN in every layer (Qwen3_5ForCausalLM)."""
    return qwen3_5_lm(c, glu(c))


@family("qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", defaults=QWEN3_5_MOE | QWEN_MTP, unused=QWEN_UNUSED)
def qwen3_5_moe_text(c: Config) -> Block:
    """Qwen3-Next with experts in every layer (Qwen3_5MoeForCausalLM)."""
    return qwen3_5_lm(c, gated_experts(c))


@family(
    "olmo_hybrid",
    "OlmoHybridForCausalLM",
    defaults=SIZES
    | dict(
        vocab_size=100352,
        hidden_size=3840,
        intermediate_size=11008,
        num_attention_heads=30,
        num_key_value_heads=None,
        attention_bias=False,
        linear_num_key_heads=None,
        linear_num_value_heads=None,
        linear_key_head_dim=None,
        linear_value_head_dim=None,
        linear_conv_kernel_dim=4,
    ),
)
def olmo_hybrid(c: Config) -> Block:
    """OLMo 2's attention with norms behind, after three gated DeltaNets with norms before (OlmoHybridForCausalLM)."""
    bias, d_h = c.attention_bias, head_dim(c)
    q_norm, k_norm = Norm(width=c.num_attention_heads * d_h), Norm(width=kv_heads(c) * d_h)
    attn = gqa(c, qkv_bias=bias, out_bias=bias, q_norm=q_norm, k_norm=k_norm)
    key_heads = c.linear_num_key_heads or c.num_attention_heads
    derived = named("d_k", int(0.75 * c.hidden_size / key_heads), origin="3/4 d / heads, rounded down")
    key_dim = c.linear_key_head_dim or derived
    delta = GatedDeltaNet(
        width=c.hidden_size,
        key_heads=key_heads,
        value_heads=c.linear_num_value_heads or c.num_attention_heads,
        key_dim=key_dim,
        value_dim=c.linear_value_head_dim or 2 * key_dim,
        kernel=c.linear_conv_kernel_dim,
    )
    layers = {
        FULL: block(attn=attn, post_attn_norm=rms(c), ffn=glu(c), post_ffn_norm=rms(c)),
        LINEAR: pre_norm(rms(c), delta, glu(c)),
    }
    default = every(4, FULL, otherwise=LINEAR, layers=c.num_hidden_layers)
    words = mixers(c, default if FULL in default else [*default[:-1], FULL])
    c.require(set(words) == {FULL, LINEAR}, "layer_types needs layers of both kinds")
    return causal_lm(c, [layers[word] for word in words], norm=rms(c))


# -- Kimi delta attention ----------------------------------------------------------------------------------------

KIMI = dict(
    vocab_size=163840,
    hidden_size=2304,
    intermediate_size=9216,
    moe_intermediate_size=1024,
    num_hidden_layers=27,
    num_attention_heads=32,
    q_lora_rank=None,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    attention_bias=False,
    num_local_experts=256,
    num_experts_per_tok=8,
    n_shared_experts=1,
    first_k_dense_replace=1,
    layer_types=None,
    mlp_layer_types=None,
)
KIMI_NAMES = dict(
    max_position_embeddings="model_max_length",
    norm_topk_prob="moe_renormalize",
    n_group="num_expert_group",
    num_local_experts="num_experts",
    num_experts_per_tok="num_experts_per_token",
    n_shared_experts="num_shared_experts",
)
# The class does not look at them, or (qk_head_dim) derives them.
KIMI_UNUSED = ["num_key_value_heads", "qk_head_dim", "mla_use_nope", "moe_router_activation_func", "use_grouped_topk"]
KIMI_LINEAR = Reading(
    defaults=dict(head_dim=None, num_heads=None, short_conv_kernel_size=None, full_attn_layers=None, kda_layers=None)
)


def delta_and_latent(
    c: Config, delta: KimiDeltaAttention, default: list[str], *, gate: Component | None = None
) -> Block:
    """Kimi's decoder: delta attention and latent attention, a few dense layers first, then experts."""
    attn = latent_attention(c).but(inner=gate)
    experts = moe(
        c,
        c.moe_intermediate_size,
        experts=c.num_local_experts,
        shared=c.n_shared_experts * c.moe_intermediate_size,
        shared_count=c.n_shared_experts,
        correction=True,
    )
    ffn_words = mlp_words(c, first_dense(c, c.first_k_dense_replace))
    if c.raw("moe_layer_freq") not in (None, 1):
        c.doubts.append(f"{c.family}: moe_layer_freq is not 1; {c.architecture} ignores it and so does this count")
    unbuilt_mtp(c)
    ffn = {DENSE: glu(c), SPARSE: experts}
    return causal_lm(c, interleaved(c, {FULL: attn, LINEAR: delta}, mixers(c, default), ffn, ffn_words), norm=rms(c))


@family(
    "kimi_linear",
    "KimiLinearForCausalLM",
    names=KIMI_NAMES,
    fixed=dict(tie_word_embeddings=False),  # the class does not tie, whatever the file says
    defaults=KIMI | dict(linear_attn_config=None, linear_head_dim=128, linear_num_heads=32, linear_conv_kernel_dim=4),
    nullable=["q_lora_rank"],
    unused=[*KIMI_UNUSED, "head_dim"],
)
def kimi_linear(c: Config) -> Block:
    """Three Kimi delta attentions to each latent attention; experts beside a shared one (KimiLinearForCausalLM)."""
    linear, depth = c.section("linear_attn_config", KIMI_LINEAR), c.num_hidden_layers
    head_dim = linear.head_dim or c.linear_head_dim
    delta = KimiDeltaAttention(
        width=c.hidden_size,
        heads=linear.num_heads or c.linear_num_heads,
        head_dim=head_dim,
        kernel=linear.short_conv_kernel_size or c.linear_conv_kernel_dim,
        gate_rank=head_dim,
    )
    default = [FULL if i and i % 4 == 0 else LINEAR for i in range(depth)]
    if linear.says("full_attn_layers") and linear.says("kda_layers"):
        full, kda = linear.numbers("full_attn_layers"), linear.numbers("kda_layers")  # counted from 1
        c.require(
            sorted(full + kda) == list(range(1, depth + 1)) or c.says("layer_types"),
            f"full_attn_layers and kda_layers do not name each of {depth} layers once",
        )
        default = [FULL if i + 1 in full else LINEAR for i in range(depth)]
    return delta_and_latent(c, delta, default)


@family(
    "bailing_hybrid",
    "BailingHybridForCausalLM",
    names=KIMI_NAMES,
    fixed=dict(tie_word_embeddings=False),  # the class does not tie, whatever the file says
    defaults=KIMI
    | dict(
        vocab_size=157184,
        hidden_size=2560,
        intermediate_size=6144,
        moe_intermediate_size=768,
        num_hidden_layers=42,
        num_local_experts=512,
        first_k_dense_replace=2,
        layer_group_size=6,
        head_dim=128,
        short_conv_kernel_size=4,
        linear_head_dim=None,
        linear_num_heads=None,
        linear_conv_kernel_dim=None,
    ),
    nullable=["q_lora_rank"],
    unused=KIMI_UNUSED,
)
def bailing_hybrid(c: Config) -> Block:
    """Kimi Linear with full-rank gates, and a gate per head on latent attention (BailingHybridForCausalLM)."""
    d, h = c.hidden_size, c.num_attention_heads
    delta = KimiDeltaAttention(
        width=d,
        # The class derives the linear_ fields from the others, unless the file has them too.
        heads=c.linear_num_heads or h,
        head_dim=c.linear_head_dim or c.head_dim,
        kernel=c.linear_conv_kernel_dim or c.short_conv_kernel_size,
    )
    default = every(c.layer_group_size, FULL, otherwise=LINEAR, layers=c.num_hidden_layers)
    return delta_and_latent(c, delta, default, gate=Linear(d_in=d, d_out=h))


# -- lightning attention -----------------------------------------------------------------------------------------


@family(
    "minimax",
    "MiniMaxForCausalLM",
    names=dict(num_experts="num_local_experts"),
    defaults=SIZES | dict(sliding_window=None, num_experts=8, num_experts_per_tok=2, block_size=256),
)
def minimax(c: Config) -> Block:
    """Full and lightning attention in turn, experts in every layer (MiniMaxForCausalLM)."""
    lightning = LightningAttention(
        width=c.hidden_size, heads=c.num_attention_heads, head_dim=head_dim(c), block_size=c.block_size
    )
    attn = {FULL: gqa(c, window=c.sliding_window), LINEAR: lightning}
    experts = moe(c, c.intermediate_size, experts=c.num_experts)
    layers = {word: pre_norm(rms(c), mixer, experts) for word, mixer in attn.items()}
    words = mixers(c, every(2, LINEAR, otherwise=FULL, layers=c.num_hidden_layers))
    return causal_lm(c, [layers[word] for word in words], norm=rms(c))


# -- short convolutions ------------------------------------------------------------------------------------------

LFM2 = SIZES | dict(
    vocab_size=65536,
    hidden_size=2560,
    intermediate_size=12288,
    conv_bias=False,
    conv_L_cache=3,
    tie_word_embeddings=True,
)
LFM2_NAMES = dict(tie_embedding="tie_word_embeddings")  # as published files spell it
# In published files: what hidden_size says too, and what the class fixes. Without a head nothing is tied.
LFM2_UNUSED = [
    "block_dim",
    "conv_dim",
    "conv_dim_out",
    "block_use_swiglu",
    "use_pos_enc",
    "theta",
    "num_heads",
    "tie_embedding",
]


def short_conv(c: Config) -> ShortConv:
    """LFM2's convolution of conv_L_cache tokens."""
    return ShortConv(width=c.hidden_size, kernel=c.conv_L_cache, bias=c.conv_bias)


def lfm2_mixers(c: Config) -> dict[str, Component]:
    """Attention with norms on query and key heads, and short convolutions."""
    norm = Norm(width=head_dim(c))
    return {FULL: gqa(c, q_norm=norm, k_norm=norm), CONV: short_conv(c)}


@family(
    "lfm2",
    "Lfm2ForCausalLM",
    names=LFM2_NAMES,
    unused=LFM2_UNUSED,
    defaults=LFM2
    | dict(
        full_attn_idxs=None,
        block_ff_dim=None,
        block_auto_adjust_ff_dim=True,
        block_ffn_dim_multiplier=1.0,
        block_multiple_of=256,
    ),
)
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


@family(
    "lfm2_moe",
    "Lfm2MoeForCausalLM",
    names=LFM2_NAMES,
    unused=LFM2_UNUSED,
    defaults=LFM2
    | dict(
        hidden_size=2048,
        intermediate_size=7168,
        moe_intermediate_size=1792,
        num_dense_layers=2,
        num_experts=32,
        num_experts_per_tok=4,
        use_expert_bias=True,
    ),
)
def lfm2_moe(c: Config) -> Block:
    """LFM2 with experts after the first num_dense_layers layers (Lfm2MoeForCausalLM)."""
    c.require(c.says("layer_types"), "layer_types is required and missing", "the class has no default for it")
    experts = moe(c, c.moe_intermediate_size, experts=c.num_experts, correction=c.use_expert_bias)
    ffn, ffn_words = {DENSE: glu(c), SPARSE: experts}, first_dense(c, c.num_dense_layers)
    layers = interleaved(c, lfm2_mixers(c), mixers(c, [], (FULL, CONV)), ffn, ffn_words)
    return causal_lm(c, layers, norm=rms(c))


@family(
    "lfm3",
    "Lfm3ForCausalLM",
    defaults=LFM2
    | dict(
        vocab_size=128000,
        hidden_size=2048,
        intermediate_size=7680,
        num_hidden_layers=24,
        num_attention_heads=16,
        num_key_value_heads=4,
        head_dim=128,
        conv_L_cache=7,
        attention_bias=False,
        sliding_window=256,
        use_sandwich_norm=True,
        use_attention_gate=True,
    ),
    nullable=["sliding_window"],
)
def lfm3(c: Config) -> Block:
    """LFM2 with sliding attention too, a gate per head, and norms on both sides of each part (Lfm3ForCausalLM)."""
    bias, norm, after = c.attention_bias, Norm(width=head_dim(c)), rms(c) if c.use_sandwich_norm else None
    gate = Linear(d_in=c.hidden_size, d_out=c.num_attention_heads) if c.use_attention_gate else None

    def attention(window: int | None) -> Component:
        return gqa(c, qkv_bias=bias, out_bias=bias, q_norm=norm, k_norm=norm, inner=gate, window=window)

    mixer = {FULL: attention(None), SLIDING: attention(c.sliding_window), CONV: short_conv(c)}
    layers = {
        word: block(
            input_norm=rms(c), attn=part, post_attn_norm=after, pre_ffn_norm=rms(c), ffn=glu(c), post_norm=after
        )
        for word, part in mixer.items()
    }
    default = [FULL if i % 4 == 2 else SLIDING if i % 4 == 0 and i else CONV for i in range(c.num_hidden_layers)]
    return causal_lm(c, [layers[word] for word in mixers(c, default, tuple(mixer))], norm=rms(c))


# -- linear recurrent units --------------------------------------------------------------------------------------

RECURRENT, LOCAL = "recurrent", "attention"


@family(
    "recurrent_gemma",
    "RecurrentGemmaForCausalLM",
    names=dict(sliding_window="attention_window_size"),
    defaults=dict(
        vocab_size=256000,
        hidden_size=2560,
        intermediate_size=7680,
        num_hidden_layers=26,
        num_attention_heads=10,
        num_key_value_heads=None,
        head_dim=None,
        attention_bias=False,
        sliding_window=2048,
        lru_width=None,
        conv1d_width=4,
        block_types=None,
        tie_word_embeddings=True,
    ),
    unused=["_block_types"],
)
def recurrent_gemma(c: Config) -> Block:
    """Griffin: two linear recurrent units to each sliding attention (RecurrentGemmaForCausalLM)."""
    inner, heads = c.lru_width or c.hidden_size, c.num_attention_heads
    c.require(inner % heads == 0, f"lru_width ({inner}) is not divisible by num_attention_heads ({heads})")
    # The FFN is half as wide as stated.
    hidden = named("d_ff", c.intermediate_size // 2, origin=f"{c.key('intermediate_size')} / 2, rounded down")
    ffn = glu(c, hidden, bias=True)
    unit = RgLru(width=c.hidden_size, inner=inner, heads=heads, kernel=c.conv1d_width)
    attn = gqa(c, qkv_bias=c.attention_bias, out_bias=True, window=c.sliding_window)
    attending = pre_norm(rms(c), attn, ffn)
    # Whatever is not `recurrent` is attention to the class, the newer name of its recurrent layers included.
    layers = {RECURRENT: pre_norm(rms(c), unit, ffn), LOCAL: attending, SLIDING: attending, LINEAR: attending}
    words = c.words("block_types", tuple(layers), any_length=True) or [RECURRENT, RECURRENT, LOCAL]
    return causal_lm(c, [layers[words[i % len(words)]] for i in range(c.num_hidden_layers)], norm=rms(c))
