"""GPT from GPT-1 to gpt-oss, and close relatives."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, mha, sliding, with_options
from paramcalc.families.builders.decoder import (
    causal_lm,
    decoder,
    layer_norm,
    learned_positions,
    post_norm_layer,
    pre_norm,
)
from paramcalc.families.builders.ffn import mlp, moe
from paramcalc.families.builders.layer_types import full_every
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block

UNCACHED = "OpenAIGPTLMHeadModel has no cache and computes all keys and values again for each token"


@family("openai-gpt")
def openai_gpt(c: Config) -> Block:
    """GPT-1: post-norm, learned positions, no final norm (OpenAIGPTLMHeadModel)."""
    items = post_norm_layer(c, None).items
    layer = block(**{**items, "attn": with_options(items["attn"], cache_note=UNCACHED)})
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=None, before={"positions": learned_positions(c)})


def gpt2_decoder(c: Config, attn: Component) -> Block:
    """Pre-norm attention, optional cross attention, FFN; biases everywhere; learned positions."""
    cross = dict(cross_norm=layer_norm(c), cross_attn=mha(c, source="cross")) if c.add_cross_attention else {}
    layer = block(ln_1=layer_norm(c), attn=attn, **cross, ln_2=layer_norm(c), ffn=mlp(c, c.n_inner))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c), before={"positions": learned_positions(c)})


@family("gpt2", "gpt-sw3")
def gpt2(c: Config) -> Block:
    """Pre-norm decoder: learned positions, LayerNorms and biases everywhere, tied head (GPT2LMHeadModel)."""
    return gpt2_decoder(c, mha(c))


@family("gpt_bigcode")
def gpt_bigcode(c: Config) -> Block:
    """GPT-2 with one key/value head for all query heads (GPTBigCodeForCausalLM)."""
    c.require(
        not (c.multi_query and c.add_cross_attention),
        "cross attention with multi_query is not defined",
        "set multi_query or add_cross_attention to false",
    )
    return gpt2_decoder(c, mha(c, kv=1 if c.multi_query else None))


UNIFORM_KV_POLICY = "transformers' GPT-Neo also caches all tokens in local layers (kv_policy=uniform)"


@family("gpt_neo")
def gpt_neo(c: Config) -> Block:
    """GPT-2 without biases on q, k and v; alternating global and local attention (GPTNeoForCausalLM)."""
    whole, before = mha(c, qkv_bias=False), {"positions": learned_positions(c)}
    attn = {"global": whole, "local": with_options(whole, window=c.window_size, cache_note=UNIFORM_KV_POLICY)}
    return decoder(c, attn, mlp(c, c.intermediate_size), gpt_neo_layer_types(c), norm=layer_norm(c), before=before)


def gpt_neo_layer_types(c: Config) -> list[str]:
    """The attention of each layer: `attention_layers`, or `attention_types` [[["global", "local"], 12]] expanded."""
    if listed := c.layer_words("attention_layers", ("global", "local")):
        return listed
    groups = c.list_of("attention_types") or []
    try:
        words = [word for pattern, times in groups for _ in range(times) for word in pattern]
    except (TypeError, ValueError) as error:
        raise c.error("attention_types", "must be like [[['global', 'local'], 12]]") from error
    c.require(
        len(words) == c.num_hidden_layers and set(words) <= {"global", "local"},
        f"attention_types gives {len(words)} layers, num_layers {c.num_hidden_layers}",
        "each of the layers is global or local",
    )
    return words


@family("gpt_neox")
def gpt_neox(c: Config) -> Block:
    """GPT-2's layer with rotary positions, parallel or sequential, and an untied head (GPTNeoXForCausalLM)."""
    one_sum = c.raw("use_parallel_residual") is not False
    attn, ffn = mha(c, bias=c.attention_bias), mlp(c, c.intermediate_size)
    return decoder(c, attn, ffn, norm=layer_norm(c), layer=parallel_two_norms if one_sum else pre_norm)


def parallel_two_norms(norm: Component, attn: Component, ffn: Component) -> Block:
    """Attention and FFN in parallel, each behind a norm of its own."""
    layer: Block = pre_norm(norm, attn, ffn).replace(residual="together")
    return layer


@family("gpt_neox_japanese")
def gpt_neox_japanese(c: Config) -> Block:
    """GPT-NeoX without biases except one in the attention of the last layer (GPTNeoXJapaneseForCausalLM)."""
    ffn, depth = mlp(c, c.hidden_size * c.intermediate_multiple_size, bias=False), c.num_hidden_layers
    plain, last = (pre_norm(layer_norm(c), mha(c, qkv_bias=False, out_bias=bias), ffn) for bias in (False, True))
    return causal_lm(c, [Run(depth - 1, plain), Run(1, last)], norm=layer_norm(c))


@family("gptj", "codegen")
def gptj(c: Config) -> Block:
    """Attention without biases in parallel with an FFN with biases; the head has a bias (GPTJForCausalLM)."""
    layer = block(ln_1=layer_norm(c), attn=mha(c, bias=False), ffn=mlp(c, c.n_inner))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c), head_bias=True)


@family("biogpt")
def biogpt(c: Config) -> Block:
    """GPT-2 with two spare position rows (BioGptForCausalLM)."""
    before = {"positions": learned_positions(c, extra_rows=2)}
    return decoder(c, mha(c), mlp(c, c.intermediate_size), norm=layer_norm(c), before=before)


@family("gpt_oss")
def gpt_oss(c: Config) -> Block:
    """Alternating sliding and full attention with sinks per head; biased experts in every layer (GptOssForCausalLM)."""
    ffn = moe(c, c.intermediate_size, experts=c.num_experts, bias=True, router_bias=True)
    attn = sliding(gqa(c, bias=c.attention_bias, sinks=True), c.sliding_window)
    return decoder(c, attn, ffn, full_every(c, 2))
