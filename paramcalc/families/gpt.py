"""The GPT line: LayerNorms with biases, plain FFNs of four times the width, heads that cut the width in equal parts."""

from __future__ import annotations

from paramcalc.config import Config, Reading
from paramcalc.families.heads import decoder_head
from paramcalc.families.registry import family
from paramcalc.families.skeletons import (
    causal_lm,
    layer_norm,
    mha,
    mlp,
    positions,
    pre_norm,
)
from paramcalc.spec import Block, Component, Embedding, Linear, Norm, Run, block, stack

GPT2_NAMES = dict(
    hidden_size="n_embd",
    num_hidden_layers="n_layer",
    num_attention_heads="n_head",
    max_position_embeddings="n_positions",
)
GPT2 = dict(
    vocab_size=50257,
    hidden_size=768,
    num_hidden_layers=12,
    num_attention_heads=12,
    max_position_embeddings=1024,
    n_inner=None,
    add_cross_attention=False,
    tie_word_embeddings=True,
)


def gpt2_layer(c: Config, attn: Component) -> Block:
    """Pre-norm attention, perhaps cross attention, FFN; biases everywhere."""
    cross = dict(cross_norm=layer_norm(c), cross_attn=mha(c, source="cross")) if c.add_cross_attention else {}
    return block(ln_1=layer_norm(c), attn=attn, **cross, ln_2=layer_norm(c), ffn=mlp(c, c.n_inner))


@family("gpt2", "GPT2LMHeadModel", names=GPT2_NAMES, defaults=GPT2)
@family("gpt-sw3", "GPT2LMHeadModel", names=GPT2_NAMES, defaults=GPT2)
def gpt2(c: Config) -> Block:
    """Pre-norm decoder: learned positions, LayerNorms and biases everywhere, tied head (GPT2LMHeadModel)."""
    layer = gpt2_layer(c, mha(c))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c), before={"positions": positions(c)})


@family(
    "gpt_bigcode",
    "GPTBigCodeForCausalLM",
    names=GPT2_NAMES,
    defaults=GPT2 | dict(multi_query=True),
    unused=["num_key_value_heads"],
)
def gpt_bigcode(c: Config) -> Block:
    """GPT-2 with one key/value head for all query heads (GPTBigCodeForCausalLM)."""
    c.require(
        not (c.multi_query and c.add_cross_attention),
        "cross attention with multi_query is not defined",
        "set multi_query or add_cross_attention to false",
    )
    layer = gpt2_layer(c, mha(c, kv=1 if c.multi_query else None))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c), before={"positions": positions(c)})


@family(
    "gpt_neo",
    "GPTNeoForCausalLM",
    names=dict(num_attention_heads="num_heads", num_hidden_layers="num_layers"),
    defaults=dict(
        vocab_size=50257,
        hidden_size=2048,
        intermediate_size=None,
        num_hidden_layers=24,
        num_attention_heads=16,
        max_position_embeddings=2048,
        window_size=256,
        tie_word_embeddings=True,
    ),
)
def gpt_neo(c: Config) -> Block:
    """GPT-2 without biases on q, k and v; global and local attention in turn (GPTNeoForCausalLM)."""
    layers = {
        kind: pre_norm(layer_norm(c), mha(c, qkv_bias=False, window=window), mlp(c, c.intermediate_size))
        for kind, window in (("global", None), ("local", c.window_size))
    }
    return causal_lm(
        c, [layers[kind] for kind in gpt_neo_kinds(c)], norm=layer_norm(c), before={"positions": positions(c)}
    )


def gpt_neo_kinds(c: Config) -> list[str]:
    """`attention_types` [[["global", "local"], 12]] written out: one word per layer."""
    groups = c.raw("attention_types") or [[["global", "local"], 12]]
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


@family(
    "gpt_neox",
    "GPTNeoXForCausalLM",
    defaults=dict(
        vocab_size=50432,
        hidden_size=6144,
        intermediate_size=24576,
        num_hidden_layers=44,
        num_attention_heads=64,
        attention_bias=True,
    ),
    unused=["use_parallel_residual", "head_dim", "num_key_value_heads"],
)
def gpt_neox(c: Config) -> Block:
    """GPT-2's layer with rotary positions, parallel or not, and a head of its own (GPTNeoXForCausalLM)."""
    bias = c.attention_bias
    layer = pre_norm(layer_norm(c), mha(c, qkv_bias=bias, out_bias=bias), mlp(c, c.intermediate_size))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c))


GPTJ = dict(vocab_size=50400, hidden_size=4096, n_inner=None, num_hidden_layers=28, num_attention_heads=16)


@family("gptj", "GPTJForCausalLM", names=GPT2_NAMES, defaults=GPTJ)
@family("codegen", "CodeGenForCausalLM", names=GPT2_NAMES, defaults=GPTJ)
def gptj(c: Config) -> Block:
    """Parallel attention without biases and FFN with them behind one norm; the head has a bias (GPTJForCausalLM)."""
    layer = block(ln_1=layer_norm(c), attn=mha(c, qkv_bias=False, out_bias=False), ffn=mlp(c, c.n_inner))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c), head_bias=True)


@family(
    "opt",
    "OPTForCausalLM",
    names=dict(remove_final_norm="_remove_final_layer_norm"),
    defaults=dict(
        vocab_size=50272,
        hidden_size=768,
        ffn_dim=3072,
        num_hidden_layers=12,
        num_attention_heads=12,
        max_position_embeddings=2048,
        word_embed_proj_dim=None,
        enable_bias=True,
        layer_norm_elementwise_affine=True,
        do_layer_norm_before=True,
        remove_final_norm=False,
        tie_word_embeddings=True,
    ),
)
def opt(c: Config) -> Block:
    """Decoder with two spare position rows; the embedding may be narrower than the layers (OPTForCausalLM)."""
    d, bias, affine = c.hidden_size, c.enable_bias, c.layer_norm_elementwise_affine
    d_emb = c.word_embed_proj_dim or d
    norm = Norm(width=d, scale=affine, bias=affine)
    layer = block(
        attn=mha(c, qkv_bias=bias, out_bias=bias), attn_norm=norm, ffn=mlp(c, c.ffn_dim, bias=bias), ffn_norm=norm
    )
    narrow, pre_norm_only, removed = d_emb != d, c.do_layer_norm_before, c.remove_final_norm
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=d_emb),
        project_in=Linear(d_in=d_emb, d_out=d, category="embedding") if narrow else None,
        positions=positions(c, extra_rows=2),
        layers=stack("decoder", Run(c.num_hidden_layers, layer)),
        norm=norm if pre_norm_only and not removed else None,
        project_out=Linear(d_in=d, d_out=d_emb, category="head") if narrow else None,
        **decoder_head(c, d_emb),
    )


@family(
    "bloom",
    "BloomForCausalLM",
    names=dict(num_hidden_layers="n_layer", num_attention_heads="n_head", n_embed="hidden_size"),
    defaults=dict(
        vocab_size=250880,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=8,
        tie_word_embeddings=True,
    ),
)
def bloom(c: Config) -> Block:
    """GPT-2's layer with ALiBi, a norm after the embedding, FFN always four times the width (BloomForCausalLM)."""
    layer = pre_norm(layer_norm(c), mha(c), mlp(c, None))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c), before={"embed_norm": layer_norm(c)})


FALCON = dict(
    vocab_size=65024,
    hidden_size=4544,
    ffn_hidden_size=None,
    num_hidden_layers=32,
    num_attention_heads=71,
    num_kv_heads=None,
    num_ln_in_parallel_attn=None,
    new_decoder_architecture=False,
    multi_query=True,
    parallel_attn=True,
    bias=False,
    tie_word_embeddings=True,
)
FALCON_NAMES = dict(n_embed="hidden_size")
FALCON_FLAGS = ["new_decoder_architecture", "multi_query", "parallel_attn", "bias"]  # null is false
# The first published files name the type after their training data.
REFINED_WEB_NAMES = FALCON_NAMES | dict(
    num_hidden_layers="n_layer", num_attention_heads="n_head", num_kv_heads="n_head_kv"
)


@family("falcon", "FalconForCausalLM", names=FALCON_NAMES, defaults=FALCON, nullable=FALCON_FLAGS, unused=["alibi"])
@family("RefinedWebModel", "RWForCausalLM", names=REFINED_WEB_NAMES, defaults=FALCON, unused=["alibi"])
@family(
    "RefinedWeb",
    "RWForCausalLM",
    names=REFINED_WEB_NAMES,
    defaults=FALCON | dict(new_decoder_architecture=True),
    unused=["alibi"],
)
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
        attn=mha(c, qkv_bias=bias, out_bias=bias, kv=kv),
        ffn_norm=norm if beside == 2 or not c.parallel_attn else None,
        ffn=mlp(c, c.ffn_hidden_size, bias=bias),
    )
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm)


MPT_ATTENTION = Reading(dict(alibi=True, qk_ln=False, attn_type="multihead_attention"))


@family(
    "mpt",
    "MptForCausalLM",
    names=dict(hidden_size="d_model", num_attention_heads="n_heads", num_hidden_layers="n_layers"),
    defaults=dict(
        vocab_size=50368,
        hidden_size=2048,
        num_hidden_layers=24,
        num_attention_heads=16,
        expansion_ratio=4,
        no_bias=True,
        tie_word_embeddings=True,
    ),
    unused=["max_seq_len", "learned_pos_emb", "embedding_fraction", "norm_type", "attn_type", "qk_ln"],
)
def mpt(c: Config) -> Block:
    """Decoder with ALiBi and no biases anywhere, in the norms neither (MptForCausalLM).

    The reference class builds neither learned positions nor biases nor any FFN but four times the width, whatever the
    config says; where it says otherwise the checkpoint was made for other code.
    """
    attn = c.section("attn_config", MPT_ATTENTION)
    built = c.expansion_ratio == 4, c.no_bias, attn.alibi, not attn.qk_ln, attn.attn_type == "multihead_attention"
    if not all(built):
        c.doubts.append(
            "mpt: MptForCausalLM builds an ALiBi decoder without biases and with FFNs of 4 x d_model; "
            "the config asks for something else, which it ignores"
        )
    norm = Norm(width=c.hidden_size)
    layer = pre_norm(norm, mha(c, qkv_bias=False, out_bias=False), mlp(c, None, bias=False))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm)
