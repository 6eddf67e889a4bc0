"""Recent dense decoders: Llama's layer throughout, with other norms, feed-forward networks or gates."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, head_dim, kv_heads, qk_norm_per_head
from paramcalc.families.builders.decoder import decoder, layer_norm, norms_around, pre_norm, rms
from paramcalc.families.builders.ffn import activation, glu, mlp
from paramcalc.families.builders.mla import latent_attention
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Norm, Param


@family("arcee", "cosmos3_edge_text")
def arcee(c: Config) -> Block:
    """Llama with a plain FFN (ArceeForCausalLM)."""
    return decoder(c, gqa(c, bias=c.attention_bias), mlp(c, c.intermediate_size, bias=c.mlp_bias))


@family("ernie4_5")
def ernie4_5(c: Config) -> Block:
    """Llama with one flag for all biases (Ernie4_5ForCausalLM)."""
    return decoder(c, gqa(c, bias=c.use_bias), glu(c, bias=c.use_bias))


@family("glm")
def glm(c: Config) -> Block:
    """Llama with biases on q, k and v (GlmForCausalLM)."""
    return decoder(c, gqa(c, qkv_bias=c.attention_bias), glu(c))


@family("glm4", "glm4v_text", "glm_ocr_text")
def glm4(c: Config) -> Block:
    """GLM with norms on both sides of each part (Glm4ForCausalLM)."""
    return decoder(c, gqa(c, qkv_bias=c.attention_bias), glu(c), layer=norms_around)


@family("hyperclovax")
def hyperclovax(c: Config) -> Block:
    """Llama with a norm after each part too, if asked for (HyperCLOVAXForCausalLM)."""
    layer = norms_around if c.use_post_norm else pre_norm
    return decoder(c, gqa(c, bias=c.attention_bias), glu(c, bias=c.mlp_bias), layer=layer)


@family("helium")
def helium(c: Config) -> Block:
    """Llama whose output projection is always square and without a bias (HeliumForCausalLM)."""
    return decoder(c, gqa(c, qkv_bias=c.attention_bias, out_in=c.hidden_size), glu(c, bias=c.mlp_bias))


@family("seed_oss")
def seed_oss(c: Config) -> Block:
    """Llama with separate flags for the biases of q, k, v and of the output (SeedOssForCausalLM)."""
    attn = gqa(c, qkv_bias=c.attention_bias, out_bias=c.attention_out_bias)
    return decoder(c, attn, glu(c, bias=c.mlp_bias))


@family("hunyuan_v1_dense", "hunyuan_vl_text")
def hunyuan_v1_dense(c: Config) -> Block:
    """Llama with RMS norms on each query and key head (HunYuanDenseV1ForCausalLM)."""
    c.required("head_dim")
    return decoder(c, qk_norm_per_head(c, bias=c.attention_bias), glu(c))


@family("apertus", "apertus1p5_text")
def apertus(c: Config) -> Block:
    """Llama with QK norms and a plain FFN whose activation has two learned slopes (ApertusForCausalLM)."""
    ffn = mlp(c, c.intermediate_size, bias=False).replace(inner=activation(c))
    return decoder(
        c,
        qk_norm_per_head(c, bias=c.attention_bias),
        ffn,
        head_rows=None if c.tie_word_embeddings else c.output_vocab_size,
    )


@family("bitnet")
def bitnet(c: Config) -> Block:
    """Llama with a norm before each output projection (BitNetForCausalLM)."""
    ffn = glu(c).replace(inner=Norm(width=c.intermediate_size))
    return decoder(c, gqa(c, bias=c.attention_bias, inner=rms(c)), ffn)


@family("diffllama")
def diffllama(c: Config) -> Block:
    """Llama whose attention is the difference of two maps, weighed by four learned vectors (DiffLlamaForCausalLM)."""
    halves, vector = kv_heads(c), Param(shape=(head_dim(c),))
    c.require(halves % 2 == 0, f"num_key_value_heads ({halves}) is odd", "the values are split between two maps")
    weights = block(lambda_q1=vector, lambda_k1=vector, lambda_q2=vector, lambda_k2=vector)
    return decoder(c, gqa(c, bias=c.attention_bias, inner=weights, maps=2), glu(c))


@family("nemotron", "jais2")
def nemotron(c: Config) -> Block:
    """Llama with LayerNorms and a plain FFN (NemotronForCausalLM)."""
    ffn = mlp(c, c.intermediate_size, bias=c.mlp_bias)
    return decoder(c, gqa(c, bias=c.attention_bias), ffn, norm=layer_norm(c))


@family("nanochat")
def nanochat(c: Config) -> Block:
    """Norms without weights, those on queries and keys too, and a plain FFN (NanoChatForCausalLM)."""
    ffn, norm = mlp(c, c.intermediate_size, bias=False), Norm(width=c.hidden_size, scale=False)
    return decoder(c, gqa(c, bias=c.attention_bias), ffn, norm=norm)


@family("minicpm3", "youtu")
def minicpm3(c: Config) -> Block:
    """Dense decoder with latent attention (MiniCPM3ForCausalLM)."""
    return decoder(c, latent_attention(c), glu(c, bias=c.mlp_bias))
