"""Llama and the families that equal it, Llama 4, and relatives by name."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, head_dim, kv_heads, with_options
from paramcalc.families.builders.decoder import causal_lm, decoder, pre_norm, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, FULL, SPARSE
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Embedding, Norm, Param


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


CHUNKED_ATTENTION = "chunked_attention"


@family("llama4_text")
def llama4_text(c: Config) -> Block:
    """Chunked and full attention; routed experts and a shared one in the layers of moe_layers (Llama4ForCausalLM)."""
    width, depth, full = c.intermediate_size, c.num_hidden_layers, gqa(c, bias=c.attention_bias)
    attn = {FULL: full, CHUNKED_ATTENTION: with_options(full, window=c.attention_chunk_size)}
    rotary = c.per_layer("no_rope_layers") if c.raw("no_rope_layers") else None
    rotary = rotary or [(i + 1) % c.no_rope_layer_interval for i in range(depth)]
    chunks = c.attention_chunk_size is not None
    words = c.layer_words("layer_types", attn) or [CHUNKED_ATTENTION if flag and chunks else FULL for flag in rotary]
    step, listed = c.interleave_moe_layer_step, c.raw("moe_layers") is not None
    sparse = set(c.layer_indices("moe_layers") if listed else range(step - 1, depth, step))
    ffn_words = [SPARSE if i in sparse else DENSE for i in range(depth)]
    ffn = {
        DENSE: glu(c, c.intermediate_size_mlp),
        SPARSE: moe(c, width, experts=c.num_local_experts, shared=width),
    }
    return decoder(c, attn, ffn, words, ffn_words)


@family("mllama_text_model")
def mllama_text(c: Config) -> Block:
    """Llama with gated cross attention to an image in some layers (MllamaForCausalLM)."""
    attn, norm = gqa(c), Norm(width=head_dim(c))
    cross = with_options(attn, source="cross", q_norm=norm, k_norm=norm)
    gate, plain = Param(shape=(1,)), pre_norm(rms(c), attn, glu(c))
    gated = block(input_norm=rms(c), attn=cross, attn_gate=gate, post_norm=rms(c), ffn=glu(c), ffn_gate=gate)
    stated = c.raw("cross_attention_layers") is not None
    crossed = set(c.layer_indices("cross_attention_layers") if stated else range(3, 40, 5))
    layers = [gated if i in crossed else plain for i in range(c.num_hidden_layers)]
    parts = dict(causal_lm(c, layers, norm=rms(c)).items)
    return block(**parts | {"embed_tokens": Embedding(rows=c.vocab_size + 8, width=c.hidden_size)})


@family("diffllama")
def diffllama(c: Config) -> Block:
    """Llama whose attention is the difference of two maps, weighted by four learned vectors (DiffLlamaForCausalLM)."""
    halves, vector = kv_heads(c), Param(shape=(head_dim(c),))
    c.require(halves % 2 == 0, f"num_key_value_heads ({halves}) is odd", "the values are split between two maps")
    weights = block(lambda_q1=vector, lambda_k1=vector, lambda_q2=vector, lambda_k2=vector)
    return decoder(c, gqa(c, bias=c.attention_bias, inner=weights, maps=2), glu(c))
