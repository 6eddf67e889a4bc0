"""Relatives of DeepSeek: latent attention with indexers, gates and sinks, and residual streams with weights."""

from __future__ import annotations

import itertools
import math
from typing import Any

from paramcalc.components import (
    CompressedAttention,
    Compressor,
    GatedResidual,
    HyperConnection,
    Indexer,
    LatentAttention,
    Router,
)
from paramcalc.components.ffn import Experts
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
    ignored,
    interleaved,
    latent_attention,
    mlp_words,
    moe,
    per_layer_overrides,
    pre_norm,
    rms,
    shared_width,
    unbuilt_mtp,
)
from paramcalc.spec import Block, Component, Conv1d, Embedding, Linear, Norm, Param, Run, block

LATENT = (
    dict(vocab_size=129280, hidden_size=7168, intermediate_size=18432, num_hidden_layers=61)
    | dict(num_attention_heads=128)
    | dict(q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128)
    | dict(attention_bias=False, num_local_experts=256, num_experts_per_tok=8, n_shared_experts=1)
    | dict(moe_intermediate_size=2048, mlp_layer_types=None)
)
INDEX = dict(index_topk=2048, index_head_dim=128, index_n_heads=64)
FREQUENT = dict(first_k_dense_replace=1, moe_layer_freq=1)
NAMES = dict(num_local_experts="n_routed_experts")
# Latent attention has no key/value heads and derives its head sizes; every layer is of one type; the MLPs have no bias.
UNUSED = ["num_key_value_heads", "head_dim", "qk_head_dim", "n_group", "topk_group", "topk_method"]
INDEX_UNUSED = [*UNUSED, "layer_types", "mlp_bias"]
INDEXED, CSA, HCA = "indexed_attention", "compressed_sparse_attention", "heavily_compressed_attention"


def experts(c: Config) -> Component:
    """Routed experts with corrections, and shared ones as one MLP."""
    shared, e = shared_width(c), c.moe_intermediate_size
    return moe(c, e, experts=c.num_local_experts, shared=shared, shared_count=c.n_shared_experts, correction=True)


def frequent(c: Config) -> list[str]:
    """Dense layers first, then sparse ones: at multiples of moe_layer_freq, or where its list has a 1."""
    first, listed = c.first_k_dense_replace, isinstance(c.raw("moe_layer_freq"), list)
    flags = c.per_layer("moe_layer_freq") if listed else None
    flags = flags or [i % c.moe_layer_freq == 0 for i in range(c.num_hidden_layers)]
    return [SPARSE if i >= first and flag else DENSE for i, flag in enumerate(flags)]


def lightning(c: Config, q_rank: int) -> Indexer:
    """DeepSeek-V3.2's indexer: queries from the latent, one normed key, a weight for each head."""
    return Indexer(
        width=c.hidden_size,
        query_width=q_rank,
        heads=c.index_n_heads,
        head_dim=c.index_head_dim,
        keep=c.index_topk,
        k_norm=Norm(width=c.index_head_dim, bias=True),
    )


def indexed(c: Config) -> LatentAttention:
    """Latent attention with an indexer."""
    attn: LatentAttention = latent_attention(c).model_copy(update={"indexer": lightning(c, c.q_lora_rank)})
    return attn


@family(
    "glm4_moe_lite",
    "Glm4MoeLiteForCausalLM",
    names=NAMES | dict(head_dim="qk_rope_head_dim"),
    defaults=LATENT
    | dict(vocab_size=154880, hidden_size=2048, intermediate_size=10240, num_hidden_layers=47)
    | dict(num_attention_heads=20)
    | dict(q_lora_rank=768, qk_nope_head_dim=192, v_head_dim=256, num_local_experts=64, num_experts_per_tok=4)
    | dict(moe_intermediate_size=1536),
    nullable=["q_lora_rank"],
    unused=UNUSED,
)
def glm4_moe_lite(c: Config) -> Block:
    """DeepSeek-V3 with its layers' kinds in a list, the first one dense (Glm4MoeLiteForCausalLM)."""
    unbuilt_mtp(c)
    ignored(c, first_k_dense_replace=mlp_words(c, first_dense(c, 1)).count(DENSE), moe_layer_freq=1)
    return latent_lm(c, latent_attention(c), first_dense(c, 1))


def latent_lm(c: Config, attn: Component, default: list[str]) -> Block:
    """A decoder with the same attention in every layer, dense and sparse."""
    ffn, words = {DENSE: glu(c), SPARSE: experts(c)}, mlp_words(c, default)
    return causal_lm(c, interleaved(c, {FULL: attn}, [FULL] * len(words), ffn, words), norm=rms(c))


@family(
    "deepseek_v32",
    "DeepseekV32ForCausalLM",
    names=NAMES | dict(num_experts="n_routed_experts"),
    defaults=LATENT | INDEX | dict(first_k_dense_replace=3),
    unused=INDEX_UNUSED,
)
def deepseek_v32(c: Config) -> Block:
    """DeepSeek-V3 with an indexer in each layer that picks the tokens to look at (DeepseekV32ForCausalLM)."""
    unbuilt_mtp(c)
    ignored(c, moe_layer_freq=1)
    return latent_lm(c, indexed(c), first_dense(c, c.first_k_dense_replace))


@family(
    "glm_moe_dsa",
    "GlmMoeDsaForCausalLM",
    names=NAMES | dict(num_experts="n_routed_experts"),
    defaults=LATENT
    | INDEX
    | dict(vocab_size=154880, hidden_size=6144, intermediate_size=12288, num_hidden_layers=78)
    | dict(num_attention_heads=64)
    | dict(q_lora_rank=2048, qk_nope_head_dim=192, v_head_dim=256, index_n_heads=32, first_k_dense_replace=3)
    | dict(indexer_types=None, index_topk_pattern=None, index_topk_freq=1, index_skip_topk_offset=2),
    unused=INDEX_UNUSED,
)
def glm_moe_dsa(c: Config) -> Block:
    """DeepSeek-V3.2 where a layer may use the choice of the indexer before it (GlmMoeDsaForCausalLM)."""
    attn = {"full": indexed(c), "shared": latent_attention(c)}
    ffn, ffn_words = {DENSE: glu(c), SPARSE: experts(c)}, mlp_words(c, first_dense(c, c.first_k_dense_replace))
    unbuilt_mtp(c)
    ignored(c, moe_layer_freq=1)
    return causal_lm(c, interleaved(c, attn, indexer_words(c), ffn, ffn_words), norm=rms(c))


def indexer_words(c: Config) -> list[str]:
    """Which layers have an indexer: `indexer_types`, the letters of index_topk_pattern, or every so many layers."""
    words, pattern = c.words("indexer_types", ("full", "shared")), c.raw("index_topk_pattern")
    letters = {"F": "full", "S": "shared"}
    if words is None and isinstance(pattern, str):
        c.require(set(pattern) <= set(letters), f"index_topk_pattern is {pattern!r}", "its letters are F and S")
        c.require(len(pattern) == c.num_hidden_layers, f"index_topk_pattern has {len(pattern)} letters")
        return [letters[letter] for letter in pattern]
    step, offset = c.index_topk_freq, c.index_skip_topk_offset
    default = ["shared" if max(i - offset + 1, 0) % step else "full" for i in range(c.num_hidden_layers)]
    return words or c.words("index_topk_pattern", ("full", "shared")) or default


@family(
    "axk1",
    "AXK1ForCausalLM",
    names=NAMES,
    defaults=LATENT | FREQUENT | dict(vocab_size=163840, num_attention_heads=64, num_local_experts=192),
    unused=UNUSED,
)
def axk1(c: Config) -> Block:
    """DeepSeek-V3 with a norm behind the experts (AXK1ForCausalLM)."""
    ffn, words = {DENSE: glu(c), SPARSE: block(moe=experts(c), norm=rms(c))}, mlp_words(c, frequent(c))
    attn = {FULL: latent_attention(c)}
    return causal_lm(c, interleaved(c, attn, [FULL] * len(words), ffn, words), norm=rms(c))


@family(
    "axk2",
    "AXK2ForCausalLM",
    names=NAMES,
    defaults=LATENT
    | INDEX
    | FREQUENT
    | dict(vocab_size=163840, hidden_size=2048, intermediate_size=5120, num_hidden_layers=48)
    | dict(num_attention_heads=32)
    | dict(q_lora_rank=384, kv_lora_rank=128, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64)
    | dict(num_local_experts=128, moe_intermediate_size=512, index_n_heads=16, gated_norm_rank=16),
    unused=INDEX_UNUSED,
)
def axk2(c: Config) -> Block:
    """DeepSeek-V3.2 with gated attention, and with gated norms before attention and experts (AXK2ForCausalLM)."""
    d, r = c.hidden_size, c.gated_norm_rank
    gated = block(norm=rms(c), gate=block("norm", down=Linear(d_in=d, d_out=r), up=Linear(d_in=r, d_out=d)))
    attn = indexed(c).model_copy(update={"query_gate": c.num_attention_heads * c.v_head_dim})
    layers = {
        DENSE: block(input_norm=gated, attn=attn, post_norm=rms(c), ffn=glu(c)),
        SPARSE: block(input_norm=gated, attn=attn, post_norm=gated, ffn=experts(c)),
    }
    return causal_lm(c, [layers[word] for word in mlp_words(c, frequent(c))], norm=rms(c))


def streams(c: Config, mixtures: int, scales: int) -> HyperConnection:
    """hc_mult residual streams mixed by `mixtures` weights per token."""
    return HyperConnection(width=c.hidden_size, streams=c.hc_mult, mixtures=mixtures, scales=scales)


def streamed(c: Config, attn: Component, ffn: Component, mix: HyperConnection) -> Block:
    """A pre-norm layer between residual streams."""
    return block(attn_streams=mix, input_norm=rms(c), attn=attn, ffn_streams=mix, post_norm=rms(c), ffn=ffn)


def merged(c: Config) -> Block:
    """What makes one stream of many after the last layer, and the final norm."""
    return block(streams=streams(c, c.hc_mult, 1), norm=rms(c))


@family(
    "hy_v4",
    "HYV4ForCausalLM",
    names=NAMES,
    defaults=LATENT
    | INDEX
    | dict(vocab_size=120832, hidden_size=2816, intermediate_size=6912, num_hidden_layers=34)
    | dict(num_attention_heads=32)
    | dict(qk_nope_head_dim=192, v_head_dim=256, moe_intermediate_size=768, index_n_heads=16, indexer_types=None)
    | dict(hc_mult=4),
    unused=INDEX_UNUSED,
)
def hy_v4(c: Config) -> Block:
    """DeepSeek-V3.2 with gates and sinks, indexers in some layers, and residual streams (HYV4ForCausalLM)."""
    gate = Linear(d_in=c.hidden_size, d_out=c.num_attention_heads * c.v_head_dim)
    attn = latent_attention(c).model_copy(update={"sinks": True, "inner": gate})
    index = {"full": lightning(c, c.q_lora_rank), "shared": None}
    default = ["shared" if i and (i - 1) % 4 else "full" for i in range(c.num_hidden_layers)]
    ffn, mix = {DENSE: glu(c), SPARSE: experts(c)}, streams(c, 2 * c.hc_mult, 2)
    layers = {
        (word, kind): streamed(c, attn.model_copy(update={"indexer": index[word]}), ffn[kind], mix)
        for word in index
        for kind in ffn
    }
    words = zip(c.words("indexer_types", index) or default, mlp_words(c, first_dense(c, 1)), strict=True)
    return causal_lm(c, [layers[pair] for pair in words], norm=merged(c))


V4_MTP = ["num_nextn_predict_layers"]  # shipped with the checkpoint, not built by the class
COMPRESS_RATES = Reading({CSA: 4, HCA: 128})
RATIO_WORDS = {0: SLIDING, 4: CSA, 128: HCA}


@family(
    "deepseek_v4",
    "DeepseekV4ForCausalLM",
    names=NAMES | dict(intermediate_size="moe_intermediate_size"),
    defaults=dict(vocab_size=129280, hidden_size=4096, intermediate_size=2048, num_hidden_layers=43)
    | dict(num_attention_heads=64, head_dim=512)
    | dict(q_lora_rank=1024, o_groups=8, o_lora_rank=1024, sliding_window=128, compress_rate_csa=None)
    | dict(compress_rate_hca=None, index_n_heads=64, index_head_dim=128, index_topk=512, num_local_experts=256)
    | dict(num_experts_per_tok=6, mlp_bias=False, hc_mult=4, num_hash_layers=3, layer_types=None)
    | dict(mlp_layer_types=None),
    # One shared expert, one key for all heads and no biases in attention, whatever these say.
    unused=["n_shared_experts", "num_key_value_heads", "attention_bias", "qk_rope_head_dim", "expert_dtype", *V4_MTP],
)
def deepseek_v4(c: Config) -> Block:
    """Attention over compressed keys, experts some of which are hashed to, residual streams (DeepseekV4ForCausalLM)."""
    mix, attn, ffn = streams(c, (c.hc_mult + 2) * c.hc_mult, 3), v4_attention(c), v4_experts(c)
    layers = {(a, f): streamed(c, attn[a], ffn[f], mix) for a in attn for f in ffn}
    hashes = ["hash_moe" if i < c.num_hash_layers else "moe" for i in range(c.num_hidden_layers)]
    words = zip(v4_words(c), c.words("mlp_layer_types", ffn) or hashes, strict=True)
    return causal_lm(c, [layers[pair] for pair in words], norm=merged(c))


def v4_words(c: Config) -> list[str]:
    """Each layer's attention: `layer_types`, or the original file's ratios, or the two compressed kinds in turn."""
    ratios, depth = c.numbers("compress_ratios"), c.num_hidden_layers
    words = c.words("layer_types", (SLIDING, CSA, HCA))
    if words is None and ratios:
        c.require(set(ratios) <= set(RATIO_WORDS), f"compress_ratios is {ratios!r}", "known: 0, 4, 128")
        c.require(len(ratios) >= depth, f"compress_ratios has {len(ratios)} entries for {depth} layers")
        return [RATIO_WORDS[ratio] for ratio in ratios[:depth]]  # those beyond are of the MTP modules
    return words or [HCA if i < 2 or i % 2 == 0 else CSA for i in range(depth)]


def v4_attention(c: Config) -> dict[str, Component]:
    """The three kinds: a window alone, or with all keys heavily compressed, or with the best of lightly compressed."""
    rates, d_h = c.section("compress_rates", COMPRESS_RATES), c.head_dim
    csa, hca = c.compress_rate_csa or getattr(rates, CSA), c.compress_rate_hca or getattr(rates, HCA)
    c.require(c.num_attention_heads * d_h % c.o_groups == 0, f"o_groups ({c.o_groups}) does not divide the heads")
    window = CompressedAttention(
        width=c.hidden_size,
        heads=c.num_attention_heads,
        head_dim=d_h,
        q_rank=c.q_lora_rank,
        groups=c.o_groups,
        out_rank=c.o_lora_rank,
        window=c.sliding_window,
    )
    small = Compressor(width=c.hidden_size, head_dim=c.index_head_dim, rate=csa, overlap=2)
    indexer = lightning(c, c.q_lora_rank).model_copy(update={"k_norm": None, "compressor": small})
    heavy = Compressor(width=c.hidden_size, head_dim=d_h, rate=hca)
    light = Compressor(width=c.hidden_size, head_dim=d_h, rate=csa, overlap=2)
    return {
        SLIDING: window,
        HCA: window.model_copy(update={"compressor": heavy}),
        CSA: window.model_copy(update={"compressor": light, "indexer": indexer}),
    }


def v4_experts(c: Config) -> dict[str, Component]:
    """Experts chosen by scores, or by a table from the token's number; one shared expert of the same width."""
    e, count, k = c.intermediate_size, c.num_local_experts, c.num_experts_per_tok
    table = Param(shape=(c.vocab_size, k), buffer=True)
    hashed = block("router", gate=Linear(d_in=c.hidden_size, d_out=count), experts_of_token=table)
    return {
        "moe": moe(c, e, experts=count, shared=e, shared_bias=c.mlp_bias, correction=True),
        "hash_moe": moe(c, e, experts=count, shared=e, shared_bias=c.mlp_bias, router=hashed),
    }


SWA = dict(num_attention_heads=64, q_lora_rank=1024, kv_lora_rank=1024, qk_nope_head_dim=192) | dict(
    qk_rope_head_dim=None, v_head_dim=128
)


@family(
    "dots3_note_text",
    "Dots3NoteForCausalLM",
    names=NAMES
    | dict(moe_shared_expert_intermediate_size="shared_experts_intermediate_size")
    | dict(sliding_window_size="sliding_window"),
    defaults=LATENT
    | INDEX
    | FREQUENT
    | {f"swa_{name}": value for name, value in SWA.items()}
    | dict(vocab_size=152064, hidden_size=5120, intermediate_size=13824, num_hidden_layers=46)
    | dict(q_lora_rank=1024, moe_intermediate_size=1536, shared_experts_intermediate_size=1536, swa_head_dim=256)
    | dict(sliding_window=512, layer_types=None, per_layer_config=None, use_dsa=None, use_sliding_window=True),
    unused=[*UNUSED, "mlp_bias", "swa_num_key_value_heads", "swa_rope_theta"],
)
def dots3_note_text(c: Config) -> Block:
    """Gated latent attention, sliding layers with sizes of their own, the others indexed (Dots3NoteForCausalLM)."""
    n, e = c.n_shared_experts, c.moe_intermediate_size
    c.require(n >= 1, "n_shared_experts must be at least 1")
    shared = n * c.shared_experts_intermediate_size
    sparse = moe(c, e, experts=c.num_local_experts, shared=shared, shared_count=n, correction=True)
    sizes = [tuple({**layer, "word": word}.items()) for word, layer in zip(dots3_words(c), dots3_sizes(c), strict=True)]
    attn = {size: dots3_attention(c, **dict(size)) for size in dict.fromkeys(sizes)}
    ffn = {DENSE: glu(c), SPARSE: sparse}
    unbuilt_mtp(c)
    return causal_lm(c, interleaved(c, attn, sizes, ffn, mlp_words(c, frequent(c))), norm=rms(c))


def dots3_words(c: Config) -> list[str]:
    """Each layer's attention. use_dsa makes full layers indexed ones or the reverse; the original files mean true."""
    dsa, original = c.raw("use_dsa"), c.raw("per_layer_config") is None
    c.require(dsa is None or isinstance(dsa, bool), f"use_dsa must be true or false, not {dsa!r}")
    whole = FULL if dsa is False else INDEXED
    slides = [c.use_sliding_window and i >= 2 and i % 4 != 1 for i in range(c.num_hidden_layers)]
    words = c.words("layer_types", (FULL, SLIDING, INDEXED)) or [SLIDING if slide else whole for slide in slides]
    decided = original or dsa is not None
    return [whole if decided and word != SLIDING else word for word in words]


def dots3_sizes(c: Config) -> list[dict[str, Any]]:
    """Each layer's sizes of attention: the model's, with what the file states for a layer or for sliding ones."""
    model = {name: getattr(c, name) for name in SWA}
    overrides = per_layer_overrides(c, [*SWA, "num_key_value_heads", "head_dim"])
    if overrides is not None:
        return [{name: layer.get(name, size) for name, size in model.items()} for layer in overrides]
    sliding = {name: getattr(c, f"swa_{name}") for name in SWA}
    if sliding["qk_rope_head_dim"] is None:
        sliding["qk_rope_head_dim"] = c.swa_head_dim - c.swa_qk_nope_head_dim
    return [sliding if word == SLIDING else model for word in dots3_words(c)]


def dots3_attention(c: Config, *, word: str, **sizes: Any) -> LatentAttention:
    """Latent attention of these sizes with a normed rotary key and a gate per head."""
    return LatentAttention(
        width=c.hidden_size,
        heads=sizes["num_attention_heads"],
        q_rank=sizes["q_lora_rank"],
        kv_rank=sizes["kv_lora_rank"],
        nope_dim=sizes["qk_nope_head_dim"],
        rope_dim=sizes["qk_rope_head_dim"],
        value_dim=sizes["v_head_dim"],
        bias=c.attention_bias,
        window=c.sliding_window if word == SLIDING else None,
        rope_norm=True,
        inner=Linear(d_in=c.hidden_size, d_out=sizes["num_attention_heads"]),
        indexer=lightning(c, sizes["q_lora_rank"]) if word == INDEXED else None,
    )


@family(
    "longcat_flash",
    "LongcatFlashForCausalLM",
    names=NAMES
    | dict(intermediate_size="ffn_hidden_size", num_experts_per_tok="moe_topk")
    | dict(moe_intermediate_size="expert_ffn_hidden_size"),
    defaults={name: value for name, value in LATENT.items() if name not in ("n_shared_experts", "mlp_layer_types")}
    | dict(vocab_size=131072, hidden_size=6144, intermediate_size=12288, num_hidden_layers=None)
    | dict(num_attention_heads=64)
    | dict(num_layers=28, num_local_experts=512, num_experts_per_tok=12, zero_expert_num=256, qk_head_dim=None)
    | dict(router_bias=False),
    unused=[
        *(key for key in UNUSED if key != "qk_head_dim"),
        "attention_method",
        "mla_scale_q_lora",
        "mla_scale_kv_lora",
        "zero_expert_type",
    ],
)
def longcat_flash(c: Config) -> Block:
    """Layers of two attentions and two FFNs, with experts beside the first; some do nothing (LongcatFlashForCausalLM).

    The class keeps input matrices for the experts that do nothing, which no token uses. Active counts as many real
    experts as a token may pick; one that picks idle ones uses fewer.
    """
    d, e, count, idle = c.hidden_size, c.moe_intermediate_size, c.num_local_experts, c.zero_expert_num
    router = Router(width=d, experts=count + idle, bias=c.router_bias, correction=True)
    sparse = moe(c, e, experts=count, top_k=min(c.num_experts_per_tok, count), router=router)
    spare = Experts(expert=Linear(d_in=d, d_out=2 * e), count=idle, top_k=0) if idle else None
    attn = latent_attention(c).model_copy(update={"query_dim": c.qk_head_dim})
    half = pre_norm(rms(c), attn, glu(c))
    layer = block(first=block(**half.items, moe=sparse, idle_experts=spare), second=half)
    unbuilt_mtp(c)
    return causal_lm(c, Run(longcat_depth(c), layer), norm=rms(c))


def longcat_depth(c: Config) -> int:
    """Layers: num_layers, or half of num_hidden_layers, which counts each half as one."""
    if c.num_hidden_layers is None:
        return c.num_layers  # type: ignore[no-any-return]
    c.require(
        c.raw("num_layers") in (None, c.num_hidden_layers // 2),
        f"num_hidden_layers ({c.num_hidden_layers}) is not twice num_layers ({c.raw('num_layers')})",
    )
    return c.num_hidden_layers // 2  # type: ignore[no-any-return]


MOST_TABLES = 1000  # finding a prime number for each takes a moment
QWEN4_INDEX = dict(indexer_n_heads=None, indexer_kv_heads=None, indexer_head_dim=None, indexer_budget=None)
QWEN4_NGRAMS = dict(
    ple_layer_ids=None, ple_embed_dim=None, ple_conv_kernel_size=4, ngram_size=3, heads_per_ngram=8
) | dict(ngram_vocab_size_base=20000000, make_ngram_vocab_size_divisible_by=128)


@family(
    "qwen4_exp_text",
    "Qwen4ExpForCausalLM",
    defaults=QWEN4_INDEX
    | QWEN4_NGRAMS
    | dict(vocab_size=248320, hidden_size=2048, num_hidden_layers=40, num_attention_heads=16)
    | dict(num_key_value_heads=2, head_dim=256)
    | dict(attention_bias=False, linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128)
    | dict(linear_value_head_dim=128, linear_conv_kernel_dim=4, num_experts=512, num_experts_per_tok=10)
    | dict(moe_intermediate_size=512, shared_expert_intermediate_size=512, hc_count=4, hc_lowrank=320)
    | dict(full_attention_interval=4, layer_types=None),
    unused=["indexer_compress_ratio", "seed", "split_ngram_parts", "number_of_conv_states", "output_gate_type"],
)
def qwen4_exp_text(c: Config) -> Block:
    """Gated DeltaNets and indexed attention between gated residual streams, hashed n-grams (Qwen4ExpForCausalLM)."""
    default = every(c.full_attention_interval, INDEXED, otherwise=LINEAR, layers=c.num_hidden_layers)
    words = [INDEXED if w == FULL else w for w in c.words("layer_types", (LINEAR, INDEXED, FULL)) or default]
    mixers = {word: delta_net(c) if word == LINEAR else qwen4_attention(c) for word in words}
    shared, ids = c.shared_expert_intermediate_size, sorted(set(c.numbers("ple_layer_ids")))
    linear = all(i > 0 and words[i - 1 : i] == [LINEAR] for i in ids)
    c.require(linear, "ple_layer_ids has a layer that is not a linear one")
    sparse = moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared, shared_gate=True)
    mix = GatedResidual(width=c.hidden_size, streams=c.hc_count, rank=c.hc_lowrank)
    layers = {word: block(attn_streams=mix, attn=mixers[word], ffn_streams=mix, ffn=sparse) for word in mixers}
    stack: list[Component] = [layers[word] for word in words]
    for i, parts in zip(ids, ngrams(c, len(ids)), strict=True):
        stack[i - 1] = block(ngrams=parts, **layers[LINEAR].items)
    return causal_lm(c, stack, norm=mix.model_copy(update={"injects": False}))


def qwen4_attention(c: Config) -> Component:
    """Attention with a gate on every channel and an indexer whose queries and one key come from the layer's input."""
    d, bias, norm, d_i = c.hidden_size, c.attention_bias, Norm(width=c.head_dim), c.stated("indexer_head_dim")
    c.require(c.stated("indexer_kv_heads") == 1, "indexer_kv_heads must be 1")
    indexer = Indexer(
        width=d,
        query_width=d,
        heads=c.stated("indexer_n_heads"),
        head_dim=d_i,
        keep=c.stated("indexer_budget"),
        weighted=False,
        q_norm=Norm(width=d_i),
        k_norm=Norm(width=d_i),
    )
    gate = Linear(d_in=d, d_out=c.num_attention_heads * c.head_dim, bias=bias)
    return gqa(c, qkv_bias=bias, out_bias=bias, q_norm=norm, k_norm=norm, inner=gate, indexer=indexer)


def ngrams(c: Config, count: int) -> list[Block]:
    """Hashed n-grams of the last tokens for `count` layers: each head has a table, of the next prime number of rows."""
    heads, width = (c.ngram_size - 1) * c.heads_per_ngram, c.ple_embed_dim or c.hidden_size
    if not count:
        return []
    c.require(heads > 0 and width % heads == 0, f"ple_embed_dim ({width}) is not divisible by {heads} n-gram heads")
    c.require(count * heads <= MOST_TABLES, f"{count} layers of {heads} n-gram heads cannot be meant")
    primes, step = primes_from(c.ngram_vocab_size_base, count * heads), c.make_ngram_vocab_size_divisible_by
    sums = [sum(primes[first : first + heads]) for first in range(0, len(primes), heads)]
    return [ngram_layer(c, -(-rows // step) * step, width=width, heads=heads) for rows in sums]


def ngram_layer(c: Config, rows: int, *, width: int, heads: int) -> Block:
    """The tables of all heads as one, and what gives a looked up vector to every residual stream."""
    d, wide = c.hidden_size, c.hc_count * c.hidden_size
    rows = named("V_n", rows, origin="primes from ngram_vocab_size_base, summed and rounded up")
    return block(
        table=Embedding(rows=rows, width=width // heads),
        hashes=Param(shape=(c.ngram_size + 2 * heads,), buffer=True),
        key_proj=Linear(d_in=width, d_out=wide),
        value_proj=Linear(d_in=width, d_out=d),
        key_norm=Norm(width=wide),
        query_norm=Norm(width=wide),
        conv_norm=Norm(width=wide),
        conv1d=Conv1d(channels=wide, kernel=c.ple_conv_kernel_size, bias=False),
    )


def primes_from(start: int, count: int) -> list[int]:
    """The first `count` primes that are at least `start`."""
    numbers = (n for n in itertools.count(max(start, 2)) if all(n % d for d in range(2, math.isqrt(n) + 1)))
    return list(itertools.islice(numbers, count))
