"""Decoders of the years after GPT-2: its kin, and XLM and XLNet."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, mha, sized_attention, with_options
from paramcalc.families.builders.decoder import (
    causal_lm,
    decoder,
    layer_norm,
    learned_positions,
    post_norm_layer,
    pre_norm,
    rms,
)
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.heads import decoder_head, xl_head
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param, Product

UNCACHED = "OpenAIGPTLMHeadModel has no cache and computes all keys and values again for each token"

# -- GPT's kin ---------------------------------------------------------------------------------------------------


@family("openai-gpt")
def openai_gpt(c: Config) -> Block:
    """The first GPT: post-norm, learned positions, no final norm (OpenAIGPTLMHeadModel)."""
    items = post_norm_layer(c, None).items
    layer = block(**{**items, "attn": with_options(items["attn"], cache_note=UNCACHED)})
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=None, before={"positions": learned_positions(c)})


@family("ctrl")
def ctrl(c: Config) -> Block:
    """GPT-2's layer with fixed positions; the tied head has a bias of its own (CTRLLMHeadModel)."""
    return decoder(c, mha(c), mlp(c, c.dff), norm=layer_norm(c), head_bias=True)


@family("biogpt")
def biogpt(c: Config) -> Block:
    """GPT-2 with two spare position rows (BioGptForCausalLM)."""
    before = {"positions": learned_positions(c, extra_rows=2)}
    return decoder(c, mha(c), mlp(c, c.intermediate_size), norm=layer_norm(c), before=before)


@family("xglm")
def xglm(c: Config) -> Block:
    """GPT-2's layer with fixed positions (XGLMForCausalLM)."""
    norm, cross = layer_norm(c), {}
    if c.add_cross_attention:
        cross = {"cross_attn": mha(c, source="cross"), "cross_norm": norm}
    layer = block(input_norm=norm, attn=mha(c), **cross, post_norm=norm, ffn=mlp(c, c.ffn_dim))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm)


@family("gpt_neox_japanese")
def gpt_neox_japanese(c: Config) -> Block:
    """GPT-NeoX without biases but for one on the last layer's attention (GPTNeoXJapaneseForCausalLM)."""
    ffn, depth = mlp(c, c.hidden_size * c.intermediate_multiple_size, bias=False), c.num_hidden_layers
    plain, last = (pre_norm(layer_norm(c), mha(c, qkv_bias=False, out_bias=bias), ffn) for bias in (False, True))
    return causal_lm(c, [Run(depth - 1, plain), Run(1, last)], norm=layer_norm(c))


@family("persimmon")
def persimmon(c: Config) -> Block:
    """GPT-2's layer with rotary positions and LayerNorms on queries and keys (PersimmonForCausalLM)."""
    norm = Norm(width=equal_heads(c), bias=True) if c.qk_layernorm else None
    return decoder(c, gqa(c, bias=True, qk_norm=norm), mlp(c, c.intermediate_size), norm=layer_norm(c))


@family("cpmant")
def cpmant(c: Config) -> Block:
    """Gated FFNs, soft prompts in the embedding, position biases by segment for all layers (CpmAntForCausalLM)."""
    d, h, segments, norm = c.hidden_size, c.num_attention_heads, c.segment_types, rms(c)
    buckets = segments * segments + c.position_bias_num_buckets
    layer = pre_norm(norm, sized_attention(d, h, c.dim_head, prefix=c.prompt_length), glu(c, c.dim_ff))
    return block(
        segments=Embedding(rows=segments, width=d),
        embed_tokens=Embedding(rows=c.vocab_size + c.prompt_types * c.prompt_length, width=d),
        position_bias=Param(shape=(buckets, h), category="attention"),
        layers=stack(
            "encoder",
            Run(c.num_hidden_layers, layer.replace(inexact="soft prompts are not counted as tokens")),
            causal=True,
        ),
        norm=norm,
        **decoder_head(c, d),
    )


# -- XLM and XLNet -----------------------------------------------------------------------------------------------


@family("xlm", "flaubert")
def xlm(c: Config) -> Block:
    """Post-norm encoder with learned positions, and an embedding for each language (XLMWithLMHeadModel)."""
    c.require(c.is_encoder, "is_encoder must be true", "the reference class cannot be a decoder")
    c.require(not c.asm, "asm (an adaptive softmax) is not counted", "set asm to false")
    d, languages = c.hidden_size, c.n_langs
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=d),
        positions=learned_positions(c),
        languages=Embedding(rows=languages, width=d) if languages > 1 and c.use_lang_emb else None,
        embed_norm=layer_norm(c),
        layers=stack("encoder", Run(c.num_hidden_layers, post_norm_layer(c, None))),
        **xl_head(c, logits=False),
    )


@family("xlnet")
def xlnet(c: Config) -> Block:
    """Post-norm, relative positions with a projection and biases of their own in each layer (XLNetLMHeadModel)."""
    d, h, d_h = c.hidden_size, c.num_attention_heads, equal_heads(c)
    c.require(c.d_head in (None, d_h), f"d_head ({c.d_head}) is not d_model / n_head ({d_h})")
    bias = Param(shape=(h, d_h))
    relative = block(
        r_proj=Linear(d_in=d, d_out=h * d_h),
        r_behind=Product(flops=2 * d * h * d_h),  # distances reach as far ahead as behind
        position_scores=Product(flops=4 * h * d_h, per="pair", term="attention"),
        position_bias=bias,
        segment_bias=bias,
        content_bias=bias,
        segments=Param(shape=(2, h, d_h)),
    )
    attn = sized_attention(d, h, d_h, inner=relative, keeps_inputs=True)
    layer = block(attn=attn, attn_norm=layer_norm(c), ffn=mlp(c, c.d_inner), ffn_norm=layer_norm(c))
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=d),
        mask=Param(shape=(1, 1, d), category="embedding"),
        layers=stack("decoder", Run(c.num_hidden_layers, layer)),
        **xl_head(c, logits=True),
    )
