"""Phi, except Phi-3, which equals Mistral."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa
from paramcalc.families.builders.decoder import decoder, layer_norm, parallel, unpublished
from paramcalc.families.builders.ffn import glu, mlp, moe
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Embedding, Norm


@family("phi")
def phi(c: Config) -> Block:
    """Parallel attention and plain FFN behind one LayerNorm, biases everywhere, also in the head (PhiForCausalLM)."""
    attn = gqa(c, bias=True, qk_norm=Norm(width=equal_heads(c), bias=True) if c.qk_layernorm else None)
    ffn = mlp(c, c.intermediate_size)
    return decoder(c, attn, ffn, layer=parallel, norm=layer_norm(c), head_bias=True)


@family("phi-msft")
def phi_msft(c: Config) -> Block:
    """Phi in its first code: the vocabulary is padded to a multiple (PhiForCausalLM of microsoft/phi-2)."""
    multiple = c.pad_vocab_size_multiple
    rows = symbolic("V", -(-c.vocab_size // multiple) * multiple, origin=f"vocab_size, to a multiple of {multiple}")
    attn, ffn = gqa(c, bias=True), mlp(c, c.n_inner)
    whole = decoder(c, attn, ffn, layer=parallel, norm=layer_norm(c), head_bias=True, head_rows=rows)
    return block(**whole.items | {"embed_tokens": Embedding(rows=rows, width=c.hidden_size)})


@family("mixformer-sequential")
def mixformer(c: Config) -> Block:
    """Phi-1.5 as first published: attention and FFN in parallel (MixFormerSequentialForCausalLM)."""
    attn, ffn = gqa(c, bias=True), mlp(c, c.n_inner)
    return decoder(c, attn, ffn, layer=parallel, norm=layer_norm(c), head_bias=True)


@family("phi3small")
def phi3small(c: Config) -> Block:
    """LayerNorms, biases on every matrix, a gated FFN, a tied head (Phi3SmallForCausalLM)."""
    unpublished(c)
    c.require(c.ff_dim_multiplier is None, "ff_dim_multiplier: only ff_intermediate_size is counted", "leave it out")
    return decoder(c, gqa(c, bias=True), glu(c, c.ff_intermediate_size, bias=True), norm=layer_norm(c))


@family("phimoe")
def phimoe(c: Config) -> Block:
    """Mixtral with LayerNorms, biases in attention and on the head (PhimoeForCausalLM)."""
    attn = gqa(c, bias=c.attention_bias, window=c.sliding_window)
    experts = moe(c, c.intermediate_size, experts=c.num_local_experts)
    return decoder(c, attn, experts, norm=layer_norm(c), head_bias=c.lm_head_bias)
