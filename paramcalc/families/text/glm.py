"""GLM and ChatGLM, dense and with experts."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, mha, with_options
from paramcalc.families.builders.decoder import decoder, layer_norm, norms_around, pre_norm, rms
from paramcalc.families.builders.ffn import glu, mlp, moe
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.layer_types import DENSE, SPARSE, dense_then_sparse
from paramcalc.families.builders.mtp import mtp_modules
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm
from paramcalc.tree.weights import by_vocabulary


@family("glm")
def glm(c: Config) -> Block:
    """Llama with biases on q, k and v (GlmForCausalLM)."""
    return decoder(c, gqa(c, qkv_bias=c.attention_bias), glu(c))


@family("glm4", "glm4v_text", "glm_ocr_text")
def glm4(c: Config) -> Block:
    """GLM with norms before and after each sublayer (Glm4ForCausalLM)."""
    return decoder(c, gqa(c, qkv_bias=c.attention_bias), glu(c), layer=norms_around)


@family("glm4_moe", "glm4v_moe_text", "sarvam_moe", "solar_open")
def glm4_moe(c: Config) -> Block:
    """Grouped-query attention, biases on q, k and v only; dense layers first, then experts (Glm4MoeForCausalLM)."""
    e, n = c.moe_intermediate_size, c.n_shared_experts
    d_h = c.head_dim or symbolic("d_h", c.hidden_size // c.num_attention_heads, origin="d / h, rounded down")
    attn = gqa(c, qkv_bias=c.attention_bias, qk_norm=Norm(width=d_h) if c.use_qk_norm else None, d_h=d_h)
    experts = moe(c, e, experts=c.num_local_experts, shared=n * e, shared_count=n, correction=True)
    mtp = mtp_modules(c, pre_norm(rms(c), attn, experts))
    return decoder(c, attn, {DENSE: glu(c), SPARSE: experts}, ffn_words=dense_then_sparse(c), mtp=mtp)


# -- ChatGLM: four models under one model_type -----------------------------------------------------------------------


CHATGLM2_KEYS = ["padded_vocab_size", "ffn_hidden_size", "multi_query_attention"]


@family("chatglm")
def chatglm(c: Config) -> Block:
    """ChatGLM-6B if inner_hidden_size is present, ChatGLM2, 3 and GLM-4-9B if padded_vocab_size is (ChatGLMModel).

    Published files name ChatGLMModel, which from ChatGLM2 on holds the output matrix too.
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
    """LayerNorms, biases, a plain FFN; transformers ties the head although the checkpoint holds it separately."""
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
    """RMS norms, grouped heads with explicit channels, a gated FFN; biases by two flags, or only on q, k and v."""
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
