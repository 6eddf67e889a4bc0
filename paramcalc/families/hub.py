"""Families whose class is code on the Hub (`auto_map`), not part of transformers: read in published mirrors of it."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, mha, with_options
from paramcalc.families.builders.decoder import decoder, layer_norm, norms_around, parallel, pre_norm, rms, unpublished
from paramcalc.families.builders.ffn import glu, mlp, moe
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.layer_types import DENSE, SPARSE, every
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm
from paramcalc.tree.weights import by_vocabulary

# -- Llama with other norms or biases ----------------------------------------------------------------------------


@family("internlm")
def internlm(c: Config) -> Block:
    """Llama with biases on all of attention, if asked for (InternLMForCausalLM)."""
    unpublished(c)
    return decoder(c, gqa(c, bias=c.bias), glu(c))


@family("aquila", "skywork")
def aquila(c: Config) -> Block:
    """Llama under another name (AquilaForCausalLM)."""
    unpublished(c)
    return decoder(c, gqa(c), glu(c))


@family("xverse")
def xverse(c: Config) -> Block:
    """Llama without grouped heads (XverseForCausalLM)."""
    unpublished(c)
    return decoder(c, gqa(c), glu(c))


@family("solar")
def solar(c: Config) -> Block:
    """Llama with residual connections that skip blocks of layers, without weights (SolarForCausalLM)."""
    unpublished(c)
    return decoder(c, gqa(c, bias=c.attention_bias), glu(c, bias=c.mlp_bias))


@family("orion")
def orion(c: Config) -> Block:
    """Llama with LayerNorms (OrionForCausalLM)."""
    unpublished(c)
    return decoder(c, gqa(c), glu(c), norm=layer_norm(c))


@family("qwen")
def qwen(c: Config) -> Block:
    """Llama with biases on q, k and v; intermediate_size holds gate and up together (QWenLMHeadModel)."""
    d, d_h, bias = c.hidden_size, c.kv_channels, not c.no_bias
    c.require(c.num_attention_heads * d_h == d, f"kv_channels ({d_h}) times the heads is not hidden_size ({d})")
    half = symbolic("d_ff", c.intermediate_size // 2, origin="intermediate_size / 2")
    return decoder(c, gqa(c, qkv_bias=True, out_bias=bias, d_h=d_h), glu(c, half, bias=bias))


@family("telechat")
def telechat(c: Config) -> Block:
    """Llama with biases on the last matrix of attention and FFN; an embedding norm if asked (TelechatForCausalLM)."""
    if c.num_key_value_heads not in (None, c.num_attention_heads):
        c.doubts.append("telechat: num_key_value_heads is counted as TeleChat2's code reads it; the first ignored it")
    before = {"embed_norm": rms(c) if c.embed_layernorm else None}
    return decoder(c, gqa(c, out_bias=True), glu(c, c.ffn_hidden_size).replace(down_bias=True), before=before)


@family("phi-msft")
def phi_msft(c: Config) -> Block:
    """Phi before transformers had it: the vocabulary is padded to a multiple (PhiForCausalLM of microsoft/phi-2)."""
    multiple = c.pad_vocab_size_multiple
    rows = symbolic("V", -(-c.vocab_size // multiple) * multiple, origin=f"vocab_size, to a multiple of {multiple}")
    attn, ffn = gqa(c, bias=True), mlp(c, c.n_inner)
    whole = decoder(c, attn, ffn, layer=parallel, norm=layer_norm(c), head_bias=True, head_rows=rows)
    return block(**whole.items | {"embed_tokens": Embedding(rows=rows, width=c.hidden_size)})


# -- ChatGLM: four models under one model_type -------------------------------------------------------------------

CHATGLM2_KEYS = ["padded_vocab_size", "ffn_hidden_size", "multi_query_attention"]


@family("chatglm")
def chatglm(c: Config) -> Block:
    """ChatGLM-6B where inner_hidden_size is stated, ChatGLM2, 3 and GLM-4-9B where padded_vocab_size is (ChatGLMModel).

    The published files name ChatGLMModel, which from the second on holds the output matrix too.
    """
    first, later = c.has("inner_hidden_size"), any(map(c.has, CHATGLM2_KEYS))
    c.require(
        first != later, "the fields do not say which ChatGLM this is", "state inner_hidden_size or ffn_hidden_size"
    )
    c.require(c.pre_seq_len is None, "pre_seq_len: a prefix encoder is not counted", "leave it out")
    if c.head not in ("none", "lm", "seq2seq_lm"):
        raise unknown_head(c)
    return chatglm_1(c) if first else chatglm_2(c)


def chatglm_1(c: Config) -> Block:
    """LayerNorms, biases, a plain FFN; transformers ties the head although the checkpoint holds it once more."""
    d, rows = c.hidden_size, c.required("vocab_size")
    tied = c.tie_word_embeddings or not c.has("tie_word_embeddings")
    layer = pre_norm(layer_norm(c), mha(c), mlp(c, c.inner_hidden_size))
    owner = "embed_tokens" if tied else None
    head = Linear(d_in=d, d_out=rows, category="head", tied_to=owner, split=by_vocabulary(rows))
    return block(
        embed_tokens=Embedding(rows=rows, width=d),
        layers=stack("decoder", Run(c.num_hidden_layers, layer)),
        norm=layer_norm(c),
        lm_head=None if c.head == "none" else head,
    )


def chatglm_2(c: Config) -> Block:
    """RMS norms, grouped heads whose channels are stated, a gated FFN; biases by two flags, or only on q, k and v."""
    d, h, bias, rows = c.hidden_size, c.num_attention_heads, c.add_bias_linear, c.padded_vocab_size
    c.require(h * c.kv_channels == d, f"kv_channels ({c.kv_channels}) times the heads is not hidden_size ({d})")
    groups = c.multi_query_group_num if c.multi_query_attention else h
    norm = Norm(width=d, bias=not c.rmsnorm)
    attn = mha(c, qkv_bias=bias or c.add_qkv_bias, out_bias=bias, kv=groups)
    attn = with_options(attn, head_dim=c.kv_channels)
    layer = pre_norm(norm, attn, glu(c, c.ffn_hidden_size, bias=bias))
    tied = "embed_tokens" if c.tie_word_embeddings else None
    return block(
        embed_tokens=Embedding(rows=rows, width=d),
        layers=stack("decoder", Run(c.num_hidden_layers, layer)),
        norm=norm if c.post_layer_norm else None,
        lm_head=Linear(d_in=d, d_out=rows, category="head", tied_to=tied),
    )


# -- experts -----------------------------------------------------------------------------------------------------


@family("minicpm")
def minicpm(c: Config) -> Block:
    """Llama with a tied head and scaled residuals; MiniCPM-MoE has experts in every layer (MiniCPMForCausalLM)."""
    if c.num_experts:
        unpublished(c)
    ffn = moe(c, c.intermediate_size, experts=c.num_experts) if c.num_experts else glu(c)
    return decoder(c, gqa(c, bias=c.attention_bias), ffn)


@family("grok-1")
def grok_1(c: Config) -> Block:
    """Mixtral with norms on both sides of attention and experts (Grok1ModelForCausalLM of hpcai-tech/grok-1)."""
    return decoder(c, gqa(c), moe(c, c.intermediate_size, experts=c.num_experts), layer=norms_around)


@family("arctic")
def arctic(c: Config) -> Block:
    """Experts in every moe_layer_frequency-th layer, beside a dense FFN as wide as the model (ArcticForCausalLM)."""
    unpublished(c)
    words = every(c.moe_layer_frequency, SPARSE, otherwise=DENSE, layers=c.num_hidden_layers)
    return decoder(c, gqa(c), {DENSE: glu(c), SPARSE: arctic_experts(c)}, ffn_words=words)


def arctic_experts(c: Config) -> Component:
    """Routed experts, and a residual FFN with a norm of its own where the file asks for it."""
    experts = moe(c, c.intermediate_size, experts=c.num_experts)
    residual = block(norm=rms(c), ffn=glu(c, c.hidden_size))
    return block(residual=residual, moe=experts) if c.parallel_attn_mlp_res else experts
