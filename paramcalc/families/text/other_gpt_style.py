"""Decoders in the style of GPT-2: LayerNorms, biases and plain FFNs."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, mha, sized_attention
from paramcalc.families.builders.decoder import causal_lm, decoder, layer_norm, learned_positions, pre_norm, rms
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.heads import decoder_head, num_labels, xl_head
from paramcalc.families.builders.layer_types import FULL, SLIDING, attention_types
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param, Product


@family("bloom")
def bloom(c: Config) -> Block:
    """GPT-2's layer with ALiBi, a norm after the embedding, an FFN of four times the width (BloomForCausalLM)."""
    return decoder(c, mha(c), mlp(c, None), norm=layer_norm(c), before={"embed_norm": layer_norm(c)})


@family("ctrl")
def ctrl(c: Config) -> Block:
    """GPT-2's layer with fixed positions; the tied head has a bias of its own (CTRLLMHeadModel)."""
    return decoder(c, mha(c), mlp(c, c.dff), norm=layer_norm(c), head_bias=True)


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


@family("modernbert-decoder")
def modernbert_decoder(c: Config) -> Block:
    """ModernBERT with causal attention and no norm before the first attention (ModernBertDecoderForCausalLM)."""
    bias, norm, period = c.attention_bias, Norm(width=c.hidden_size, bias=c.norm_bias), c.global_attn_every_n_layers

    def layer(i: int, word: str) -> Block:
        window = c.local_attention // 2 if word == SLIDING else None
        attn = mha(c, bias=bias, window=window)
        return block(attn_norm=norm if i else None, attn=attn, ffn_norm=norm, ffn=glu(c, bias=c.mlp_bias))

    words = attention_types(c, [SLIDING if i % period else FULL for i in range(c.num_hidden_layers)])
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=c.hidden_size),
        embed_norm=norm,
        layers=stack("decoder", [layer(i, word) for i, word in enumerate(words)]),
        norm=norm,
        **modernbert_decoder_head(c, norm),
    )


def modernbert_decoder_head(c: Config, norm: Norm) -> dict[str, Component]:
    """A transform and a norm before the output matrix or the classifier."""
    d, bias = c.hidden_size, c.classifier_bias
    transform = {"transform": Linear(d_in=d, d_out=d, bias=bias, category="head"), "head_norm": norm}
    match c.head:
        case "lm":
            return transform | decoder_head(c, d, bias=c.decoder_bias)
        case "sequence_classification":
            return transform | {"classifier": Linear(d_in=d, d_out=num_labels(c), bias=bias, category="head")}
    return decoder_head(c, d)


@family("mpt")
def mpt(c: Config) -> Block:
    """Decoder with ALiBi, without biases even in the norms (MptForCausalLM).

    The reference class builds no learned positions, no biases, and only FFNs of four times the width; a config that
    says otherwise was made for other code.
    """
    attn = c.section("attn_config")
    built = c.expansion_ratio == 4, c.no_bias, attn.alibi, not attn.qk_ln, attn.attn_type == "multihead_attention"
    if not all(built):
        c.doubts.append(
            "mpt: MptForCausalLM builds an ALiBi decoder without biases and with FFNs of 4 x d_model; "
            "the config asks for something else, which it ignores"
        )
    return decoder(c, mha(c, bias=False), mlp(c, None, bias=False))


@family("opt")
def opt(c: Config) -> Block:
    """Decoder with two spare position rows; the embedding may be narrower than the layers (OPTForCausalLM)."""
    d, bias, affine = c.hidden_size, c.enable_bias, c.layer_norm_elementwise_affine
    d_emb = c.word_embed_proj_dim or d
    norm = Norm(width=d, scale=affine, bias=affine)
    attn, ffn = mha(c, bias=bias), mlp(c, c.ffn_dim, bias=bias)
    layer = (
        block(attn_norm=norm, attn=attn, ffn_norm=norm, ffn=ffn)
        if c.do_layer_norm_before
        else block(attn=attn, attn_norm=norm, ffn=ffn, ffn_norm=norm)
    )
    narrow, pre_norm_only, removed = d_emb != d, c.do_layer_norm_before, c.remove_final_norm
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=d_emb),
        project_in=Linear(d_in=d_emb, d_out=d, category="embedding") if narrow else None,
        positions=learned_positions(c, extra_rows=2),
        layers=stack("decoder", Run(c.num_hidden_layers, layer)),
        norm=norm if pre_norm_only and not removed else None,
        project_out=Linear(d_in=d, d_out=d_emb, category="head") if narrow else None,
        **decoder_head(c, d_emb),
    )


@family("persimmon")
def persimmon(c: Config) -> Block:
    """GPT-2's layer with rotary positions and LayerNorms on queries and keys (PersimmonForCausalLM)."""
    norm = Norm(width=equal_heads(c), bias=True) if c.qk_layernorm else None
    return decoder(c, gqa(c, bias=True, qk_norm=norm), mlp(c, c.intermediate_size), norm=layer_norm(c))


@family("xglm")
def xglm(c: Config) -> Block:
    """GPT-2's layer with fixed positions (XGLMForCausalLM)."""
    norm, cross = layer_norm(c), {}
    if c.add_cross_attention:
        cross = {"cross_attn": mha(c, source="cross"), "cross_norm": norm}
    layer = block(input_norm=norm, attn=mha(c), **cross, post_norm=norm, ffn=mlp(c, c.ffn_dim))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm)


@family("xlnet")
def xlnet(c: Config) -> Block:
    """Post-norm decoder; relative positions with a projection and biases in each layer (XLNetLMHeadModel)."""
    d, h, d_h = c.hidden_size, c.num_attention_heads, equal_heads(c)
    c.require(c.d_head in (None, d_h), f"d_head ({c.d_head}) is not d_model / n_head ({d_h})")
    bias = Param(shape=(h, d_h))
    relative = block(
        r_proj=Linear(d_in=d, d_out=h * d_h),
        r_behind=Product(flops=2 * d * h * d_h),  # distances reach ahead as well as behind
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
