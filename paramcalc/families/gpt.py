"""The GPT line: LayerNorms with biases, plain FFNs of four times the width, heads that cut the width in equal parts."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha, with_options
from paramcalc.families.builders.decoder import causal_lm, decoder, layer_norm, learned_positions, pre_norm
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import decoder_head
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm

REPEATED_KV = "transformers' Falcon keeps a copy of each key and value head for every query head that shares it"
UNIFORM_KV_POLICY = "transformers' GPT-Neo keeps all tokens of local layers too (kv_policy=uniform)"


def gpt2_decoder(c: Config, attn: Component) -> Block:
    """Pre-norm attention, perhaps cross attention, FFN; biases everywhere; learned positions."""
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


@family("gpt_neo")
def gpt_neo(c: Config) -> Block:
    """GPT-2 without biases on q, k and v; global and local attention in turn (GPTNeoForCausalLM)."""
    whole, before = mha(c, qkv_bias=False), {"positions": learned_positions(c)}
    attn = {"global": whole, "local": with_options(whole, window=c.window_size, cache_note=UNIFORM_KV_POLICY)}
    return decoder(c, attn, mlp(c, c.intermediate_size), gpt_neo_layer_types(c), norm=layer_norm(c), before=before)


def gpt_neo_layer_types(c: Config) -> list[str]:
    """One word per layer: `attention_layers`, or `attention_types` [[["global", "local"], 12]] written out."""
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
    """GPT-2's layer with rotary positions, parallel or not, and a head of its own (GPTNeoXForCausalLM)."""
    one_sum = c.raw("use_parallel_residual") is not False
    attn, ffn = mha(c, bias=c.attention_bias), mlp(c, c.intermediate_size)
    return decoder(c, attn, ffn, norm=layer_norm(c), layer=parallel_two_norms if one_sum else pre_norm)


def parallel_two_norms(norm: Component, attn: Component, ffn: Component) -> Block:
    """Attention and FFN, each behind a norm of its own, of the same input."""
    layer: Block = pre_norm(norm, attn, ffn).replace(residual="together")
    return layer


@family("gptj", "codegen")
def gptj(c: Config) -> Block:
    """Parallel attention without biases and FFN with them behind one norm; the head has a bias (GPTJForCausalLM)."""
    layer = block(ln_1=layer_norm(c), attn=mha(c, bias=False), ffn=mlp(c, c.n_inner))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c), head_bias=True)


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


@family("bloom")
def bloom(c: Config) -> Block:
    """GPT-2's layer with ALiBi, a norm after the embedding, FFN always four times the width (BloomForCausalLM)."""
    return decoder(c, mha(c), mlp(c, None), norm=layer_norm(c), before={"embed_norm": layer_norm(c)})


@family("falcon", "RefinedWebModel", "RefinedWeb")
def falcon(c: Config) -> Block:
    """Multi-query or grouped attention beside the FFN, behind one norm or two (FalconForCausalLM).

    The new decoder architecture alone reads num_kv_heads; otherwise multi_query means a single key/value head.
    """
    bias, norm = bool(c.bias), layer_norm(c)
    grouped, multi_query = c.new_decoder_architecture, c.multi_query
    kv = (c.num_kv_heads or c.num_attention_heads) if grouped else 1 if multi_query else c.num_attention_heads
    beside = c.num_ln_in_parallel_attn or (2 if grouped else 1)
    layer = block(
        input_norm=norm,
        attn=mha(c, bias=bias, kv=kv, cache_note=REPEATED_KV if grouped else ""),
        ffn_norm=norm if beside == 2 or not c.parallel_attn else None,
        ffn=mlp(c, c.ffn_hidden_size, bias=bias),
    ).replace(residual="together" if grouped or c.parallel_attn else "each")
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm)


@family("mpt")
def mpt(c: Config) -> Block:
    """Decoder with ALiBi and no biases anywhere, in the norms neither (MptForCausalLM).

    The reference class builds neither learned positions nor biases nor any FFN but four times the width, whatever the
    config says; where it says otherwise the checkpoint was made for other code.
    """
    attn = c.section("attn_config")
    built = c.expansion_ratio == 4, c.no_bias, attn.alibi, not attn.qk_ln, attn.attn_type == "multihead_attention"
    if not all(built):
        c.doubts.append(
            "mpt: MptForCausalLM builds an ALiBi decoder without biases and with FFNs of 4 x d_model; "
            "the config asks for something else, which it ignores"
        )
    return decoder(c, mha(c, bias=False), mlp(c, None, bias=False))
