"""BERT's successors with rotary positions and gated FFNs."""

from __future__ import annotations

from paramcalc.components import Mlp, Moe
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, mha, sliding
from paramcalc.families.builders.decoder import ignored_fields, pre_norm, rms
from paramcalc.families.builders.encoder import embeddings, encoder, encoder_layer
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.heads import encoder_heads, lm_head
from paramcalc.families.builders.layer_types import FULL, SLIDING, attention_types, every
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("nomic_bert")
def nomic_bert(c: Config) -> Block:
    """BERT with rotary positions and gated FFNs, without biases in its layers (NomicBertForMaskedLM)."""
    heads = encoder_heads(c, c.hidden_size, pooled=("sequence_classification",))
    before = embeddings(c, c.hidden_size, rows=0)
    if c.num_experts and c.moe_every_n_layers:
        return encoder(c, before, nomic_moe_layers(c), heads)
    ignored_fields(c, num_experts=0, moe_every_n_layers=0)
    ignored_fields(c, qkv_proj_bias=False, mlp_fc1_bias=False, mlp_fc2_bias=False, activation_function="swiglu")
    return encoder(c, before, encoder_layer(c, attn=gqa(c), ffn=glu(c)), heads)


def nomic_moe_layers(c: Config) -> list[Block]:
    """Layers of nomic-embed-text-v2-moe, whose class is on the Hub alone: plain experts in every n-th layer.

    The experts of a layer have one output bias in common (2502.07972).
    """
    d, hidden, up, down = c.hidden_size, c.intermediate_size, c.mlp_fc1_bias, c.mlp_fc2_bias
    c.require(not c.num_shared_experts, "num_shared_experts must be 0", "no published model has shared experts")
    ignored_fields(c, ffn_div=1, add_pooling_layer=False)
    if c.vocab_size % c.pad_vocab_size_multiple:
        c.doubts.append(f"{c.family}: the class pads vocab_size to a multiple of {c.pad_vocab_size_multiple}")
    gated = c.activation_function in ("glu", "swiglu", "geglu")
    dense = Mlp(width=d, hidden=hidden, gated=gated, bias=up, down_bias=down)
    experts = Moe(
        width=d, expert=Mlp(width=d, hidden=hidden, gated=False), experts=c.num_experts, top_k=c.required("moe_top_k")
    )
    sparse = block(moe=experts, bias=block("experts", bias=Param(shape=(d,))))
    attn, period = gqa(c, bias=c.qkv_proj_bias), c.moe_every_n_layers
    kinds = [encoder_layer(c, attn=attn, ffn=ffn) for ffn in (dense, sparse)]
    return [kinds[i % period == 1] for i in range(c.num_hidden_layers)]


@family("eurobert")
def eurobert(c: Config) -> Block:
    """Llama as an encoder (EuroBertForMaskedLM)."""
    head = lm_head(c, c.hidden_size, owner="embed_tokens", bias=c.mlp_bias)
    heads = encoder_heads(c, c.hidden_size, lm_head=head, pooled=(), transformed=("sequence_classification",))
    return llama_encoder(c, [FULL] * c.num_hidden_layers, heads)


@family("ultrabert")
def ultrabert(c: Config) -> Block:
    """EuroBERT with full attention in every third layer and a bottleneck before the output (UltrabertForMaskedLM)."""
    d, narrow = c.hidden_size, c.prediction_head_size
    head = block(
        down=Linear(d_in=d, d_out=narrow, category="head"),
        up=Linear(d_in=narrow, d_out=d, category="head"),
        decoder=lm_head(c, d, owner="embed_tokens"),
    )
    heads = encoder_heads(c, d, lm_head=head, pooled=(), answers=2)
    windows = c.per_layer("attention_windows")
    default = (
        every(3, FULL, otherwise=SLIDING, layers=c.num_hidden_layers)
        if windows is None
        else [SLIDING if window else FULL for window in windows]
    )
    return llama_encoder(c, attention_types(c, default), heads)


def llama_encoder(c: Config, words: list[str], heads: dict[str, Component]) -> Block:
    """Token embedding, Llama's layers with full or sliding attention, a norm, and heads."""
    equal_heads(c)
    attn = sliding(gqa(c, bias=c.attention_bias), c.sliding_window if SLIDING in words else None)
    layers = {word: pre_norm(rms(c), attn[word], glu(c, bias=c.mlp_bias)) for word in attn}
    before = {"embed_tokens": Embedding(rows=c.vocab_size, width=c.hidden_size)}
    return encoder(c, before, [layers[word] for word in words], heads, norm=rms(c))


@family("modernbert")
def modernbert(c: Config) -> Block:
    """Pre-norm encoder with gated FFNs; full attention in every third layer (ModernBertForMaskedLM).

    The first layer has no norm before its attention.
    """
    d, period = c.hidden_size, c.global_attn_every_n_layers
    norm, ffn = Norm(width=d, bias=c.norm_bias), glu(c, bias=c.mlp_bias)
    words = attention_types(c, [SLIDING if i % period else FULL for i in range(c.num_hidden_layers)])
    mixers = sliding(mha(c, bias=c.attention_bias), c.local_attention)
    layers = [
        block(attn_norm=norm if i else None, attn=mixers[word], ffn_norm=norm, ffn=ffn) for i, word in enumerate(words)
    ]
    before = {"embed_tokens": Embedding(rows=c.vocab_size, width=d), "embed_norm": norm}
    head = lm_head(c, d, owner="embed_tokens", bias=c.decoder_bias)
    transform = {"transform": Linear(d_in=d, d_out=d, bias=c.classifier_bias, category="head"), "transform_norm": norm}
    heads = encoder_heads(c, d, lm_head=head, pooled=())
    return encoder(c, before, layers, (transform if heads else {}) | heads, norm=norm)
