"""Qwen3-Next, Qwen3.5 and Qwen4: gated DeltaNets in most layers."""

from __future__ import annotations

import itertools
import math

from paramcalc.base.symbolic import symbolic
from paramcalc.components import CausalConv, GatedResidual
from paramcalc.components.sparse import KeyPooling
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import head_dim, head_gate, qk_norm_per_head
from paramcalc.families.builders.decoder import causal_lm, decoder, pre_norm, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, FULL, LINEAR, SPARSE, every, mixer_types, sparse_step_types
from paramcalc.families.builders.mla import INDEXED, unweighted_indexer
from paramcalc.families.builders.recurrent import delta_net
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Mtp, block
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


def qwen_mixers(c: Config) -> tuple[dict[str, Component], list[str]]:
    """Attention with a gate on every channel, the gated delta rule, and the mixer of each layer."""
    bias = c.attention_bias
    gate = head_gate(c.hidden_size, c.num_attention_heads, head_dim(c), bias=bias)
    attn = qk_norm_per_head(c, bias=bias, gate=gate)
    default = every(c.full_attention_interval, FULL, otherwise=LINEAR, layers=c.num_hidden_layers)
    return {FULL: attn, LINEAR: delta_net(c)}, mixer_types(c, default)


def qwen_shared_expert_moe(c: Config) -> Component:
    """Routed experts and a shared one with a gate."""
    shared = c.shared_expert_intermediate_size
    return moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared, shared_gate=True)


@family("qwen3_next")
def qwen3_next(c: Config) -> Block:
    """Three gated DeltaNets for each gated attention; experts in the sparse layers (Qwen3NextForCausalLM)."""
    mixer, words = qwen_mixers(c)
    return decoder(c, mixer, {DENSE: glu(c), SPARSE: qwen_shared_expert_moe(c)}, words, sparse_step_types(c))


def qwen3_5_decoder(c: Config, ffn: Component) -> Block:
    """Qwen3-Next's mixers with one kind of FFN, and the module for multi-token prediction."""
    mixer, words = qwen_mixers(c)
    mixer[LINEAR] = mixer[LINEAR].replace(decay_dtype="float32")
    layer = pre_norm(rms(c), mixer[FULL], ffn)
    extra = c.mtp_num_hidden_layers or 0
    if c.mtp_use_dedicated_embeddings:
        c.doubts.append(f"{c.family}: the embeddings of the multi-token-prediction module are not counted with it")
    mtp = Mtp(
        count=min(extra, 1),
        items={
            "embed_norm": rms(c),
            "hidden_norm": rms(c),
            "proj": Linear(d_in=2 * c.hidden_size, d_out=c.hidden_size, category="other"),
            **{f"layer_{i}": layer for i in range(extra)},
            "norm": rms(c),
        },
    )
    return decoder(c, mixer, ffn, words, mtp=mtp)


@family("qwen3_5_text")
def qwen3_5_text(c: Config) -> Block:
    """Qwen3-Next's mixers with a plain gated FFN in every layer (Qwen3_5ForCausalLM)."""
    return qwen3_5_decoder(c, glu(c))


@family("qwen3_5_moe_text")
def qwen3_5_moe_text(c: Config) -> Block:
    """Qwen3-Next with experts in every layer (Qwen3_5MoeForCausalLM)."""
    return qwen3_5_decoder(c, qwen_shared_expert_moe(c))


# -- Qwen4 -----------------------------------------------------------------------------------------------------------


MOST_TABLES = 1000  # the search for as many primes takes time


@family("qwen4_exp_text")
def qwen4_exp_text(c: Config) -> Block:
    """Gated DeltaNets and indexed attention between gated residual streams, hashed n-grams (Qwen4ExpForCausalLM)."""
    default = every(c.full_attention_interval, INDEXED, otherwise=LINEAR, layers=c.num_hidden_layers)
    words = [INDEXED if w == FULL else w for w in c.layer_words("layer_types", (LINEAR, INDEXED, FULL)) or default]
    mixers = {word: delta_net(c) if word == LINEAR else qwen4_attention(c) for word in words}
    shared, ids = c.shared_expert_intermediate_size, sorted(set(c.layer_indices("ple_layer_ids")))
    linear = all(i > 0 and words[i - 1 : i] == [LINEAR] for i in ids)
    c.require(linear, "ple_layer_ids has a layer that is not a linear one")
    sparse = moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared, shared_gate=True)
    mix = GatedResidual(width=c.hidden_size, streams=c.hc_count, rank=c.hc_lowrank)
    layers = {word: block(attn_streams=mix, attn=mixers[word], ffn_streams=mix, ffn=sparse) for word in mixers}
    stack: list[Component] = [layers[word] for word in words]
    for i, parts in zip(ids, ngram_tables(c, len(ids)), strict=True):
        stack[i - 1] = block(ngrams=parts, **layers[LINEAR].items)
    return causal_lm(c, stack, norm=mix.replace(injects=False))


def qwen4_attention(c: Config) -> Component:
    """Attention with a gate on every channel and an indexer over the layer's input with one key."""
    d, bias, d_i = c.hidden_size, c.attention_bias, c.required("indexer_head_dim")
    c.require(c.required("indexer_kv_heads") == 1, "indexer_kv_heads must be 1")
    indexer = unweighted_indexer(d, c.required("indexer_n_heads"), d_i, top_k=c.required("indexer_budget"))
    indexer = indexer.replace(pooling=KeyPooling(c.required("indexer_compress_ratio"), visible_only=True))
    gate = head_gate(d, c.num_attention_heads, c.head_dim, bias=bias)
    return qk_norm_per_head(c, bias=bias, gate=gate, indexer=indexer)


def ngram_tables(c: Config, count: int) -> list[Block]:
    """Hashed n-grams of the last tokens for `count` layers: each head has a table with a prime number of rows."""
    heads, width = (c.ngram_size - 1) * c.heads_per_ngram, c.ple_embed_dim or c.hidden_size
    if not count:
        return []
    c.require(heads > 0 and width % heads == 0, f"ple_embed_dim ({width}) is not divisible by {heads} n-gram heads")
    c.require(
        count * heads <= MOST_TABLES, f"{count} layers of {heads} n-gram heads are more than {MOST_TABLES} tables"
    )
    primes, step = primes_from(c.ngram_vocab_size_base, count * heads), c.make_ngram_vocab_size_divisible_by
    sums = [sum(primes[first : first + heads]) for first in range(0, len(primes), heads)]
    return [ngram_layer(c, -(-rows // step) * step, width=width, heads=heads) for rows in sums]


def ngram_layer(c: Config, rows: int, *, width: int, heads: int) -> Block:
    """The tables of all heads as one, and the projections that add the result to every residual stream."""
    d, wide = c.hidden_size, c.hc_count * c.hidden_size
    rows = symbolic("V_n", rows, origin="primes from ngram_vocab_size_base, summed and rounded up")
    return block(
        table=Embedding(rows=rows, width=width // heads),
        hashes=Param(shape=(c.ngram_size + 2 * heads,), buffer=True),
        key_proj=Linear(d_in=width, d_out=wide),
        value_proj=Linear(d_in=width, d_out=d),
        key_norm=Norm(width=wide),
        query_norm=Norm(width=wide),
        conv_norm=Norm(width=wide),
        conv1d=CausalConv(category=None, channels=wide, kernel=c.ple_conv_kernel_size, dilation=c.ngram_size),
    )


def primes_from(start: int, count: int) -> list[int]:
    """The first `count` primes that are at least `start`."""
    numbers = (n for n in itertools.count(max(start, 2)) if all(n % d for d in range(2, math.isqrt(n) + 1)))
    return list(itertools.islice(numbers, count))
