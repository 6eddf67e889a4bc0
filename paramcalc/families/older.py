"""Decoders of the years after GPT-2, and unusual ones: XLM, XLNet, Reformer, CPM-Ant, byte latent transformers."""

from __future__ import annotations

from paramcalc.components import Attention, HashedAttention
from paramcalc.config import Config, Reading
from paramcalc.dims import named
from paramcalc.families.heads import decoder_head, labels, lm_head, unknown_head
from paramcalc.families.registry import family
from paramcalc.families.skeletons import (
    causal_lm,
    equal_heads,
    glu,
    gqa,
    kv_heads,
    layer_norm,
    mha,
    mlp,
    positions,
    pre_norm,
    rms,
)
from paramcalc.spec import Block, Component, Embedding, Linear, Norm, Param, Run, block, stack

GPT_NAMES = dict(
    hidden_size="n_embd",
    num_hidden_layers="n_layer",
    num_attention_heads="n_head",
    max_position_embeddings="n_positions",
)

# -- GPT's kin ---------------------------------------------------------------------------------------------------


def post_norm(c: Config, hidden: int | None) -> Block:
    """Attention, norm, plain FFN, norm, with biases."""
    return block(attn=mha(c), attn_norm=layer_norm(c), ffn=mlp(c, hidden), ffn_norm=layer_norm(c))


@family(
    "openai-gpt",
    "OpenAIGPTLMHeadModel",
    names=GPT_NAMES,
    defaults=dict(vocab_size=40478, hidden_size=768, num_hidden_layers=12, num_attention_heads=12)
    | dict(max_position_embeddings=512, tie_word_embeddings=True),
)
def openai_gpt(c: Config) -> Block:
    """The first GPT: post-norm, learned positions, no final norm (OpenAIGPTLMHeadModel)."""
    return causal_lm(c, Run(c.num_hidden_layers, post_norm(c, None)), norm=None, before={"positions": positions(c)})


@family(
    "ctrl",
    "CTRLLMHeadModel",
    names=GPT_NAMES,
    defaults=dict(vocab_size=246534, hidden_size=1280, dff=8192, num_hidden_layers=48, num_attention_heads=16)
    | dict(tie_word_embeddings=True),
)
def ctrl(c: Config) -> Block:
    """GPT-2's layer with fixed positions; the tied head has a bias of its own (CTRLLMHeadModel)."""
    layer = pre_norm(layer_norm(c), mha(c), mlp(c, c.dff))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c), head_bias=True)


@family(
    "biogpt",
    "BioGptForCausalLM",
    defaults=dict(vocab_size=42384, hidden_size=1024, intermediate_size=4096, num_hidden_layers=24)
    | dict(num_attention_heads=16, max_position_embeddings=1024, tie_word_embeddings=True),
)
def biogpt(c: Config) -> Block:
    """GPT-2 with two spare position rows (BioGptForCausalLM)."""
    layer = pre_norm(layer_norm(c), mha(c), mlp(c, c.intermediate_size))
    before = {"positions": positions(c, extra_rows=2)}
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c), before=before)


@family(
    "xglm",
    "XGLMForCausalLM",
    names=dict(hidden_size="d_model", num_hidden_layers="num_layers", num_attention_heads="attention_heads"),
    defaults=dict(vocab_size=256008, hidden_size=1024, ffn_dim=4096, num_hidden_layers=24, num_attention_heads=16)
    | dict(add_cross_attention=False, tie_word_embeddings=True),
)
def xglm(c: Config) -> Block:
    """GPT-2's layer with fixed positions (XGLMForCausalLM)."""
    norm, cross = layer_norm(c), {}
    if c.add_cross_attention:
        cross = {"cross_attn": mha(c, source="cross"), "cross_norm": norm}
    layer = block(input_norm=norm, attn=mha(c), **cross, post_norm=norm, ffn=mlp(c, c.ffn_dim))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm)


@family(
    "gpt_neox_japanese",
    "GPTNeoXJapaneseForCausalLM",
    defaults=dict(vocab_size=32000, hidden_size=2560, num_hidden_layers=32, num_attention_heads=32)
    | dict(intermediate_multiple_size=4, tie_word_embeddings=True),
)
def gpt_neox_japanese(c: Config) -> Block:
    """GPT-NeoX without biases but for one on the last layer's attention (GPTNeoXJapaneseForCausalLM)."""
    ffn, depth = mlp(c, c.hidden_size * c.intermediate_multiple_size, bias=False), c.num_hidden_layers
    plain, last = (pre_norm(layer_norm(c), mha(c, qkv_bias=False, out_bias=bias), ffn) for bias in (False, True))
    return causal_lm(c, [Run(depth - 1, plain), Run(1, last)], norm=layer_norm(c))


@family(
    "persimmon",
    "PersimmonForCausalLM",
    defaults=dict(vocab_size=262144, hidden_size=4096, intermediate_size=16384, num_hidden_layers=36)
    | dict(num_attention_heads=64, qk_layernorm=True),
    fixed=dict(head_dim=None, num_key_value_heads=None),
)
def persimmon(c: Config) -> Block:
    """GPT-2's layer with rotary positions and LayerNorms on queries and keys (PersimmonForCausalLM)."""
    norm = Norm(width=equal_heads(c), bias=True) if c.qk_layernorm else None
    attn = gqa(c, qkv_bias=True, out_bias=True, q_norm=norm, k_norm=norm)
    layer = pre_norm(layer_norm(c), attn, mlp(c, c.intermediate_size))
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=layer_norm(c))


@family(
    "cpmant",
    "CpmAntForCausalLM",
    defaults=dict(vocab_size=30720, hidden_size=4096, dim_head=128, dim_ff=10240)
    | dict(num_hidden_layers=48, num_attention_heads=32, position_bias_num_buckets=512)
    | dict(prompt_types=32, prompt_length=32, segment_types=32),
    fixed=dict(tie_word_embeddings=False),
    unused=["tie_word_embeddings"],
)
def cpmant(c: Config) -> Block:
    """Gated FFNs, soft prompts in the embedding, position biases by segment for all layers (CpmAntForCausalLM)."""
    d, h, segments, norm = c.hidden_size, c.num_attention_heads, c.segment_types, rms(c)
    buckets = segments * segments + c.position_bias_num_buckets
    attn = Attention(width=d, heads=h, kv_heads=h, head_dim=c.dim_head)
    return block(
        segments=Embedding(rows=segments, width=d),
        embed_tokens=Embedding(rows=c.vocab_size + c.prompt_types * c.prompt_length, width=d),
        position_bias=Param(shape=(buckets, h), category="attention"),
        layers=stack("encoder", Run(c.num_hidden_layers, pre_norm(norm, attn, glu(c, c.dim_ff)))),
        norm=norm,
        **decoder_head(c, d),
    )


# -- XLM and XLNet -----------------------------------------------------------------------------------------------


def summary(c: Config) -> dict[str, Component]:
    """A projection of one hidden state, to the labels or to the width."""
    if not c.summary_use_proj:
        return {}
    width = labels(c) if c.summary_proj_to_labels else c.hidden_size
    return {"summary": Linear(d_in=c.hidden_size, d_out=width, bias=True, category="head")}


def xl_head(c: Config, *, logits: bool) -> dict[str, Component]:
    """The heads of XLM and XLNet. `logits`: a matrix of its own after the summary."""
    d = c.hidden_size

    def dense(d_in: int, d_out: int, *, bias: bool = True) -> Linear:
        return Linear(d_in=d_in, d_out=d_out, bias=bias, category="head")

    match c.head:
        case "lm":
            return {"lm_head": lm_head(c, d, owner="embed_tokens", bias=True)}
        case "sequence_classification":
            return summary(c) | ({"logits": dense(d, labels(c))} if logits else {})
        case "multiple_choice":
            return summary(c) | {"logits": dense(d if logits else labels(c), 1)}
        case "token_classification" | "question_answering_simple":
            return {"classifier": dense(d, labels(c))}
        case "question_answering":
            end = block(dense=dense(2 * d, d), norm=layer_norm(c), logits=dense(d, 1))
            answer = block(dense=dense(2 * d, d), logits=dense(d, 1, bias=False))
            return {"start": dense(d, 1), "end": end, "answer": answer}
        case "none":
            return {}
    raise unknown_head(c)


XLM_NAMES = dict(
    hidden_size="emb_dim", num_hidden_layers="n_layers", num_attention_heads="n_heads", n_words="vocab_size"
)
XLM = (
    dict(vocab_size=30145, hidden_size=2048, num_hidden_layers=12, num_attention_heads=16)
    | dict(max_position_embeddings=512, n_langs=1, use_lang_emb=True, is_encoder=True, asm=False)
    | dict(summary_use_proj=True, summary_proj_to_labels=True, tie_word_embeddings=True)
)
XLM_UNUSED = ["causal", "sinusoidal_embeddings", "pre_norm"]


@family("xlm", "XLMWithLMHeadModel", names=XLM_NAMES, defaults=XLM, unused=XLM_UNUSED)
@family("flaubert", "FlaubertWithLMHeadModel", names=XLM_NAMES, defaults=XLM, unused=XLM_UNUSED)
def xlm(c: Config) -> Block:
    """Post-norm encoder with learned positions, and an embedding for each language (XLMWithLMHeadModel)."""
    c.require(c.is_encoder, "is_encoder must be true", "the reference class cannot be a decoder")
    c.require(not c.asm, "asm (an adaptive softmax) is not counted", "set asm to false")
    d, languages = c.hidden_size, c.n_langs
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=d),
        positions=positions(c),
        languages=Embedding(rows=languages, width=d) if languages > 1 and c.use_lang_emb else None,
        embed_norm=layer_norm(c),
        layers=stack("encoder", Run(c.num_hidden_layers, post_norm(c, None))),
        **xl_head(c, logits=False),
    )


XLNET_NAMES = {
    "hidden_size": "d_model",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "n_token": "vocab_size",
}


@family(
    "xlnet",
    "XLNetLMHeadModel",
    names=XLNET_NAMES,
    defaults=dict(vocab_size=32000, hidden_size=1024, d_inner=4096, num_hidden_layers=24, num_attention_heads=16)
    | dict(d_head=None, summary_use_proj=True, summary_proj_to_labels=False, tie_word_embeddings=True),
    unused=["attn_type", "bi_data", "clamp_len", "mem_len", "reuse_len", "same_length", "untie_r"],
)
def xlnet(c: Config) -> Block:
    """Post-norm, relative positions with a projection and biases of their own in each layer (XLNetLMHeadModel)."""
    d, h, d_h = c.hidden_size, c.num_attention_heads, equal_heads(c)
    c.require(c.d_head in (None, d_h), f"d_head ({c.d_head}) is not d_model / n_head ({d_h})")
    bias = Param(shape=(h, d_h))
    relative = block(
        r_proj=Linear(d_in=d, d_out=h * d_h),
        position_bias=bias,
        segment_bias=bias,
        content_bias=bias,
        segments=Param(shape=(2, h, d_h)),
    )
    attn = Attention(width=d, heads=h, kv_heads=h, head_dim=d_h, inner=relative)
    layer = block(attn=attn, attn_norm=layer_norm(c), ffn=mlp(c, c.d_inner), ffn_norm=layer_norm(c))
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=d),
        mask=Param(shape=(1, 1, d), category="embedding"),
        layers=stack("decoder", Run(c.num_hidden_layers, layer)),
        **xl_head(c, logits=True),
    )


# -- Reformer ----------------------------------------------------------------------------------------------------


@family(
    "reformer",
    "ReformerModelWithLMHead",
    defaults=dict(vocab_size=320, hidden_size=256, feed_forward_size=512, num_attention_heads=12)
    | dict(
        attention_head_size=64, attn_layers=None, axial_pos_embds=True, axial_pos_shape=None, axial_pos_embds_dim=None
    )
    | dict(num_hidden_layers=None, max_position_embeddings=4096, is_decoder=False),
    unused=["num_buckets"],  # how vectors are hashed
)
def reformer(c: Config) -> Block:
    """Reversible layers of local and hashed attention, axial positions (ReformerModelWithLMHead)."""
    c.require(c.is_decoder or c.head != "lm", "is_decoder must be true", "a causal head needs a causal model")
    d, words = c.hidden_size, reformer_words(c)
    h, d_h = c.num_attention_heads, c.attention_head_size
    local = Attention(width=d, heads=h, kv_heads=h, head_dim=d_h)
    kinds: dict[str, Component] = {"local": local, "lsh": HashedAttention(width=d, heads=h, head_dim=d_h)}
    layers = [pre_norm(layer_norm(c), kinds[word], mlp(c, c.feed_forward_size)) for word in words]
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=d),
        positions=axial_positions(c) if c.axial_pos_embds else positions(c),
        layers=stack("decoder", layers),
        norm=Norm(width=2 * d, bias=True),  # over both streams of the reversible layers
        **reformer_head(c),
    )


def reformer_words(c: Config) -> list[str]:
    """The word for each layer. A list of one word stands for any depth; of two, it may be longer than the model."""
    words = c.raw("attn_layers") or ["local", "lsh"] * 3
    c.require(set(words) <= {"local", "lsh"}, f"attn_layers {words} has unknown words", "known: local, lsh")
    depth = c.num_hidden_layers or len(words)
    if len(set(words)) == 1:
        return words[:1] * depth
    c.require(depth <= len(words), f"attn_layers has {len(words)} words for {depth} layers")
    return list(words[:depth])


def axial_positions(c: Config) -> Block:
    """One table for each axis of a grid of positions; what they say is joined to the width."""
    shape, widths = c.numbers("axial_pos_shape") or [64, 64], c.numbers("axial_pos_embds_dim") or [64, 192]
    c.require(
        sum(widths) == c.hidden_size and len(widths) == len(shape),
        f"axial_pos_embds_dim {widths} does not add up to hidden_size ({c.hidden_size})",
        "one width for each axis",
    )
    return block(
        **{f"axis_{i}": Embedding(rows=n, width=w) for i, (n, w) in enumerate(zip(shape, widths, strict=True))}
    )


def reformer_head(c: Config) -> dict[str, Component]:
    """Heads on both streams; the language model's holds its bias twice."""
    d = c.hidden_size
    match c.head:
        case "lm" | "masked_lm":
            decoder = Linear(d_in=2 * d, d_out=c.vocab_size, bias=True, category="head")
            return {"lm_head": decoder, "spare_bias": Param(shape=(c.vocab_size,), category="head")}
        case "sequence_classification":
            dense = Linear(d_in=2 * d, d_out=d, bias=True, category="head")
            return {"transform": dense, "classifier": Linear(d_in=d, d_out=labels(c), bias=True, category="head")}
        case "question_answering":
            return {"qa_outputs": Linear(d_in=2 * d, d_out=labels(c), bias=True, category="head")}
        case "none":
            return {}
    raise unknown_head(c)


# -- byte latent transformer -------------------------------------------------------------------------------------

BLT_PART = dict(
    hidden_size=1024,
    intermediate_size=None,
    num_hidden_layers=1,
    num_attention_heads=16,
    num_key_value_heads=None,
)
BLT_LOCAL = BLT_PART | dict(vocab_size=260, cross_attn_all_layers=False, cross_attn_k=2, hidden_size_global=2048)
BLT_READINGS = {
    "encoder_config": BLT_LOCAL,
    "global_config": BLT_PART | dict(hidden_size=2048, intermediate_size=5632, num_hidden_layers=25),
    "decoder_config": BLT_LOCAL | dict(intermediate_size=2816, num_hidden_layers=9, cross_attn_all_layers=True),
    "patcher_config": BLT_PART
    | dict(vocab_size=260, hidden_size=768, intermediate_size=2048, num_hidden_layers=14, num_attention_heads=12),
}


@family(
    "blt",
    "BltForCausalLM",
    defaults=dict(vocab_size=260, cross_attn_k=2, patch_in_forward=True, encoder_hash_byte_group_size=None)
    | dict(encoder_hash_byte_group_vocab=500002, encoder_hash_byte_group_nb_functions=1),
    nullable=["patch_in_forward"],
    unused=["patch_size"],  # how bytes are cut where no patcher does it
)
def blt(c: Config) -> Block:
    """Bytes, joined to patches by a small encoder, a large model of patches, a small decoder (BltForCausalLM).

    Pagnoni et al. 2024 (2412.09871). A patcher of its own decides where a patch ends.
    """
    encoder, patches, decoder, patcher = (
        c.section(name, Reading(reading, fixed=dict(head_dim=None), unused=["head_dim", "encoder_cross_output_size"]))
        for name, reading in BLT_READINGS.items()
    )
    groups = len(c.numbers("encoder_hash_byte_group_size") or range(3, 9))
    rows = c.encoder_hash_byte_group_vocab * (c.encoder_hash_byte_group_nb_functions * groups)
    joined = encoder.hidden_size * c.cross_attn_k
    wide = Linear(d_in=joined, d_out=patches.hidden_size, category="other")
    tied = "lm_head" if c.tie_word_embeddings and c.head == "lm" else None
    return block(
        hashes=Embedding(rows=rows, width=encoder.hidden_size),
        embed_tokens=Embedding(rows=encoder.vocab_size, width=encoder.hidden_size, tied_to=tied),
        patcher=blt_patcher(patcher) if c.patch_in_forward else None,
        encoder=blt_local(encoder, "encoder", joined_from=encoder.hidden_size),
        patch_proj=wide if joined != patches.hidden_size else None,
        layers=stack("decoder", Run(patches.num_hidden_layers, blt_layer(patches))),
        decoder=blt_local(decoder, "local decoder", joined_from=decoder.hidden_size_global),
        norm=rms(decoder),
        lm_head=Linear(d_in=decoder.hidden_size, d_out=c.vocab_size, category="head") if c.head == "lm" else None,
    )


def blt_layer(part: Config) -> Block:
    """Llama's layer; an unstated FFN is 8 d / 3 wide, rounded down."""
    d = part.hidden_size
    hidden = part.intermediate_size or named("d_ff", 8 * d // 3, origin="8 d / 3, rounded down")
    return pre_norm(rms(part), gqa(part), glu(part, hidden))


def blt_local(part: Config, role: str, *, joined_from: int) -> Block:
    """Layers over bytes, and cross attention between bytes and patches, after one layer or after each."""
    d, norm = part.hidden_size, rms(part)
    cross = Attention(
        width=d,
        heads=part.num_attention_heads,
        kv_heads=kv_heads(part),
        head_dim=equal_heads(part),
        q_norm=norm,
        k_norm=norm,
        source="cross",
    )
    times = part.num_hidden_layers if part.cross_attn_all_layers else 1
    return block(
        patch_proj=Linear(d_in=joined_from, d_out=d * part.cross_attn_k, category="other"),
        layers=stack(role, Run(part.num_hidden_layers, blt_layer(part))),
        cross=block(**{str(i): cross for i in range(times)}),
    )


def blt_patcher(part: Config) -> Block:
    """A language model of bytes, whose uncertainty ends a patch."""
    return block(
        embed_tokens=Embedding(rows=part.vocab_size, width=part.hidden_size),
        layers=stack("patcher", Run(part.num_hidden_layers, blt_layer(part))),
        norm=rms(part),
        lm_head=Linear(d_in=part.hidden_size, d_out=part.vocab_size, category="head"),
    )
