"""Encoders that leave BERT's plan: other attention or none, rotary positions and gated FFNs, latents."""

from __future__ import annotations

from paramcalc.components import Attention, GroupedAttention, Mlp
from paramcalc.config import Config
from paramcalc.dims import named
from paramcalc.families.heads import (
    ALL_HEADS,
    POOLED,
    dense,
    discriminator,
    encoder_heads,
    labels,
    lm_head,
    masked_lm_head,
    roberta_heads,
    unknown_head,
)
from paramcalc.families.registry import family
from paramcalc.families.skeletons import (
    FULL,
    SLIDING,
    biased,
    embeddings,
    encoder,
    encoder_layer,
    equal_heads,
    every,
    glu,
    gqa,
    kinds,
    layer_norm,
    mha,
    mlp,
    pre_norm,
    projected,
    rms,
)
from paramcalc.spec import Block, Component, Conv1d, Embedding, Linear, Norm, Param, Run, block, stack

SIZES = dict(vocab_size=30522, hidden_size=768, intermediate_size=3072, num_hidden_layers=12) | dict(
    num_attention_heads=12, tie_word_embeddings=True
)
ENCODER = SIZES | dict(max_position_embeddings=512, type_vocab_size=2)
ONLY_ENCODER = dict(add_cross_attention=False)  # whose classes cannot be decoders
CLASSIFIED = ("sequence_classification", "multiple_choice")

# -- other attention ---------------------------------------------------------------------------------------------


@family(
    "mra",
    "MraForMaskedLM",
    defaults=ENCODER | dict(vocab_size=50265, type_vocab_size=1),
    fixed=ONLY_ENCODER,
    unused=["add_cross_attention"],
)
def mra(c: Config) -> Block:
    """BERT with two spare position rows and approximated attention, without a pooler (MraForMaskedLM)."""
    ids = {"position_ids": Param(shape=(1, c.max_position_embeddings), buffer=True)}
    return encoder(c, embeddings(c, c.hidden_size, rows=c.max_position_embeddings + 2) | ids, encoder_layer(c), bare(c))


def bare(c: Config) -> dict[str, Component]:
    """Heads without a pooler: classifiers have a dense layer of their own; answers are always two."""
    return encoder_heads(c, c.hidden_size, pooled=(), transformed=CLASSIFIED, answers=2)


@family(
    "nystromformer",
    "NystromformerForMaskedLM",
    defaults=ENCODER | dict(vocab_size=30000, max_position_embeddings=510, conv_kernel_size=65),
    fixed=ONLY_ENCODER,
    nullable=["conv_kernel_size"],
    unused=["add_cross_attention"],
)
@family(
    "yoso",
    "YosoForMaskedLM",
    names=dict(conv_kernel_size="conv_window"),
    defaults=ENCODER | dict(vocab_size=50265, max_position_embeddings=4096, type_vocab_size=1, conv_kernel_size=None),
    fixed=ONLY_ENCODER,
    unused=["add_cross_attention"],
)
def nystromformer(c: Config) -> Block:
    """BERT whose approximated attention adds a convolution of each head's values (NystromformerForMaskedLM)."""
    h, window = c.num_attention_heads, c.conv_kernel_size
    conv = None if window is None else block(conv=Conv1d(channels=h, kernel=window, bias=False))
    layer = encoder_layer(c, attn=mha(c, inner=conv))
    return encoder(c, embeddings(c, c.hidden_size, rows=c.max_position_embeddings + 2), layer, bare(c))


@family(
    "longformer",
    "LongformerForMaskedLM",
    defaults=ENCODER,
    fixed=ONLY_ENCODER,
    unused=["attention_mode", "attention_window"],
)
def longformer(c: Config) -> Block:
    """RoBERTa with projections of their own for tokens that attend to everything (LongformerForMaskedLM)."""
    proj = Linear(d_in=c.hidden_size, d_out=c.hidden_size, bias=True)
    attn = mha(c, inner=block(**{f"global_{name}_proj": proj for name in "qkv"}))
    heads = roberta_heads(c)
    return encoder(c, embeddings(c, c.hidden_size), encoder_layer(c, attn=attn), heads)


@family(
    "luke",
    "LukeForMaskedLM",
    defaults=ENCODER
    | dict(vocab_size=50267, entity_vocab_size=500000, entity_emb_size=256, use_entity_aware_attention=True),
    fixed=ONLY_ENCODER,
    unused=["bert_model_name", "cls_entity_prediction"],
)
def luke(c: Config) -> Block:
    """RoBERTa that reads entities too, with queries for each pair of word and entity (LukeForMaskedLM)."""
    d, width = c.hidden_size, c.entity_emb_size
    query = Linear(d_in=d, d_out=d, bias=True)
    aware = c.use_entity_aware_attention
    attn = mha(c, inner=block(w2e_q_proj=query, e2w_q_proj=query, e2e_q_proj=query) if aware else None)
    tables = embeddings(c, d)
    entities = {"embed_entities": Embedding(rows=c.entity_vocab_size, width=width)} | (
        projected(c, width, bias=False) if width != d else {}
    )
    tables["entities"] = block(**entities, **{name: part for name, part in tables.items() if name != "embed_tokens"})
    return encoder(c, tables, encoder_layer(c, attn=attn), luke_heads(c))


def luke_heads(c: Config) -> dict[str, Component]:
    """Words are told by a matrix of their own, entities by their table; classifiers of one, two or three vectors."""
    d, width = c.hidden_size, c.entity_emb_size
    joined = {"entity_classification": 1, "entity_pair_classification": 2, "entity_span_classification": 3}
    if c.head in joined:
        inputs = joined[c.head] * d if joined[c.head] > 1 else d
        bias = c.head != "entity_pair_classification"
        return {"pooler": dense(c, d), "classifier": Linear(d_in=inputs, d_out=labels(c), bias=bias, category="head")}
    tied = "entities.embed_entities" if c.tie_word_embeddings else None
    entities: dict[str, Component] = {
        "entity_head": block(
            transform=dense(c, width),
            norm=Norm(width=width, bias=True),
            decoder=Linear(d_in=width, d_out=c.entity_vocab_size, bias=True, category="head", tied_to=tied),
        )
    }
    heads = encoder_heads(c, d, lm_head=masked_lm_head(c, d, tied=False), pooled=(*POOLED, "masked_lm"))
    return heads | (entities if c.head == "masked_lm" else {})


@family(
    "mpnet",
    "MPNetForMaskedLM",
    defaults=SIZES | dict(vocab_size=30527, max_position_embeddings=512, relative_attention_num_buckets=32),
    fixed=ONLY_ENCODER,
)
def mpnet(c: Config) -> Block:
    """RoBERTa without segments, with one table of relative position biases for all layers (MPNetForMaskedLM)."""
    shape = (c.relative_attention_num_buckets, c.num_attention_heads)
    bias = {"position_bias": Param(shape=shape, category="attention")}
    heads = roberta_heads(c)
    return encoder(c, embeddings(c, c.hidden_size, types=False) | bias, encoder_layer(c), heads)


@family(
    "squeezebert",
    "SqueezeBertForMaskedLM",
    defaults=ENCODER
    | dict(embedding_size=768, q_groups=4, k_groups=4, v_groups=4, post_attention_groups=1)
    | dict(intermediate_groups=4, output_groups=4),
    fixed=ONLY_ENCODER,
)
def squeezebert(c: Config) -> Block:
    """BERT of grouped convolutions, with a pooler in every class (SqueezeBertForMaskedLM)."""
    d, hidden, up, down = c.hidden_size, c.intermediate_size, c.intermediate_groups, c.output_groups
    c.require(c.embedding_size == d, f"embedding_size ({c.embedding_size}) is not hidden_size ({d})")
    equal_heads(c)
    groups = dict(q=c.q_groups, k=c.k_groups, v=c.v_groups, out=c.post_attention_groups)
    for channels, parts in ((d, (*groups.values(), up, down)), (hidden, (up, down))):
        c.require(not any(channels % n for n in parts), f"groups {parts} do not divide {channels} channels")
    attn = GroupedAttention(width=d, heads=c.num_attention_heads, **{f"{name}_groups": n for name, n in groups.items()})
    ffn = Mlp(width=d, hidden=hidden, gated=False, bias=True, groups=(up, down))
    heads = encoder_heads(c, d, pooled=ALL_HEADS)
    return encoder(c, embeddings(c, d), encoder_layer(c, attn=attn, ffn=ffn), heads)


@family(
    "fnet",
    "FNetForMaskedLM",
    defaults=dict(vocab_size=32000, hidden_size=768, intermediate_size=3072, num_hidden_layers=12)
    | dict(max_position_embeddings=512, type_vocab_size=4, tie_word_embeddings=True),
)
def fnet(c: Config) -> Block:
    """BERT with Fourier transforms, which have no weights, instead of attention (FNetForMaskedLM, 2105.03824)."""
    layer = block(mixing_norm=layer_norm(c), ffn=mlp(c, c.intermediate_size), ffn_norm=layer_norm(c))
    before = embeddings(c, c.hidden_size) | projected(c, c.hidden_size)
    return encoder(c, before, layer, encoder_heads(c, c.hidden_size, pooled=ALL_HEADS))


# -- bottlenecks and pyramids ------------------------------------------------------------------------------------


@family(
    "mobilebert",
    "MobileBertForMaskedLM",
    defaults=ENCODER
    | dict(embedding_size=128, hidden_size=512, intermediate_size=512, num_hidden_layers=24)
    | dict(num_attention_heads=4, trigram_input=True, use_bottleneck=True, intra_bottleneck_size=128)
    | dict(use_bottleneck_attention=False, key_query_shared_bottleneck=True, num_feedforward_networks=4)
    | dict(classifier_activation=True, true_hidden_size=None),
    unused=["normalization_type"],
)
def mobilebert(c: Config) -> Block:
    """A thin BERT: layers work in a bottleneck, each with several small FFNs (MobileBertForMaskedLM, 2004.02984)."""
    d, narrow = c.hidden_size, c.embedding_size
    norm, inputs = layer_norm(c), (3 if c.trigram_input else 1) * narrow
    before: dict[str, Component] = {
        "embed_tokens": Embedding(rows=c.vocab_size, width=narrow),
        "embed_proj": Linear(d_in=inputs, d_out=d, bias=True, category="embedding"),
        "positions": Embedding(rows=c.max_position_embeddings, width=d),
        "token_types": Embedding(rows=c.type_vocab_size, width=d),
        "embed_norm": norm,
    }
    heads = encoder_heads(c, d, lm_head=mobilebert_lm_head(c))
    if not c.classifier_activation:
        heads = {name: part for name, part in heads.items() if name != "pooler"}
    return encoder(c, before, mobilebert_layer(c), heads)


def mobilebert_layer(c: Config) -> Block:
    """Down to the bottleneck, attention, FFNs with a norm each, and up again. The width within may be stated."""
    d, narrow = c.hidden_size, c.intra_bottleneck_size
    width = c.true_hidden_size or (narrow if c.use_bottleneck else d)
    h, norm = c.num_attention_heads, Norm(width=width, bias=True)
    d_h = named("d_h", width // h, origin="width / h")
    attn = biased(
        Attention(
            width=width,
            heads=h,
            kv_heads=h,
            head_dim=d_h,
            value_in=width if c.use_bottleneck_attention else d,
            out_in=width,
            out_width=width,
        )
    )
    ffn = Mlp(width=width, hidden=c.intermediate_size, gated=False, bias=True)
    ffns = {f"ffn_{i}": block(ffn=ffn, norm=norm) for i in range(c.num_feedforward_networks)}
    if not c.use_bottleneck:
        return block(attn=attn, attn_norm=norm, **ffns)
    down = block("other", proj=Linear(d_in=d, d_out=narrow, bias=True), norm=Norm(width=narrow, bias=True))
    up = block("other", proj=Linear(d_in=width, d_out=d, bias=True), norm=layer_norm(c))
    shared = down if c.key_query_shared_bottleneck else None
    return block(bottleneck=down, attn_bottleneck=shared, attn=attn, attn_norm=norm, **ffns, output_bottleneck=up)


def mobilebert_lm_head(c: Config) -> Block:
    """The embeddings are the narrow part of the output matrix; the rest is the head's own."""
    d, narrow, head = c.hidden_size, c.embedding_size, masked_lm_head(c, c.hidden_size)
    decoder = lm_head(c, narrow, owner="embed_tokens", bias=True)
    rest = Linear(d_in=c.vocab_size, d_out=d - narrow, category="head")
    return block(**head.items | {"rest": rest, "decoder": decoder})


@family(
    "funnel",
    "FunnelForMaskedLM",
    names=dict(hidden_size="d_model", num_attention_heads="n_head", head_dim="d_head"),
    defaults=dict(vocab_size=30522, hidden_size=768, num_attention_heads=12, head_dim=64, d_inner=3072)
    | dict(block_sizes=None, block_repeats=None, num_decoder_layers=2, tie_word_embeddings=True),
    unused=["attention_type", "pool_q_only", "pooling_type", "separate_cls", "truncate_seq"],
)
def funnel(c: Config) -> Block:
    """Blocks of layers that halve the sequence, and a decoder that restores it (FunnelForMaskedLM, 2006.03236)."""
    sizes = c.numbers("block_sizes") or [4, 4, 4]
    repeats = c.numbers("block_repeats") or [1] * len(sizes)
    c.require(len(sizes) == len(repeats), "block_sizes and block_repeats differ in length")
    layer, base = funnel_layer(c), c.head in ("base", *CLASSIFIED)
    runs = [Run(size, layer, passes=passes) for size, passes in zip(sizes, repeats, strict=True)]
    head, replaced = lm_head(c, c.hidden_size, owner="embed_tokens", bias=True), discriminator(c)
    heads = encoder_heads(c, c.hidden_size, lm_head=head, pooled=(), transformed=CLASSIFIED, pretraining=replaced)
    return block(
        **embeddings(c, c.hidden_size, rows=0, types=False),
        layers=stack("encoder", runs),
        decoder=None if base else stack("decoder", Run(c.num_decoder_layers, layer)),
        **heads,
    )


def funnel_layer(c: Config) -> Block:
    """Transformer-XL's relative attention with biases for words, positions and segments; post-norm."""
    d, h, d_h = c.hidden_size, c.num_attention_heads, c.head_dim
    bias = Param(shape=(h, d_h))
    relative = block(
        position_proj=Linear(d_in=h * d_h, d_out=d),
        word_bias=bias,
        position_bias=bias,
        segment_bias=bias,
        segments=Param(shape=(2, h, d_h)),
    )
    attn = Attention(
        width=d, heads=h, kv_heads=h, head_dim=d_h, k_bias=True, v_bias=True, out_bias=True, inner=relative
    )
    return block(attn=attn, attn_norm=layer_norm(c), ffn=mlp(c, c.d_inner), ffn_norm=layer_norm(c))


# -- DeBERTa -----------------------------------------------------------------------------------------------------

DEBERTA = (
    ENCODER
    | dict(type_vocab_size=0, relative_attention=False, max_relative_positions=None)
    | dict(position_biased_input=True, pos_att_type=None, embedding_size=None, pooler_hidden_size=None)
    | dict(legacy=True)
)


@family(
    "deberta", "DebertaForMaskedLM", defaults=DEBERTA | dict(vocab_size=50265, talking_head=False), fixed=ONLY_ENCODER
)
def deberta(c: Config) -> Block:
    """BERT with attention to content and relative position apart (DebertaForMaskedLM, 2006.03654)."""
    d, h, words = c.hidden_size, c.num_attention_heads, position_words(c)
    mixing, talking = Linear(d_in=h, d_out=h), c.raw("talking_head")  # any value but a false one counts as true
    positions = block(
        pos_proj=Linear(d_in=d, d_out=d) if "c2p" in words else None,
        pos_q_proj=Linear(d_in=d, d_out=d, bias=True) if "p2c" in words else None,
        logits_mixing=mixing if talking else None,
        weights_mixing=mixing if talking else None,
    )
    attn = mha(c, inner=positions if positions.items else None).model_copy(update=dict(k_bias=False))
    rows = if_positive(c, "max_relative_positions") or c.max_position_embeddings
    relative = Embedding(rows=2 * rows, width=d) if c.relative_attention else None
    return deberta_encoder(c, encoder_layer(c, attn=attn), relative)


@family(
    "deberta-v2",
    "DebertaV2ForMaskedLM",
    defaults=DEBERTA
    | dict(vocab_size=128100, hidden_size=1536, intermediate_size=6144, num_hidden_layers=24)
    | dict(num_attention_heads=24, attention_head_size=None, share_att_key=False, position_buckets=None)
    | dict(norm_rel_ebd="none", conv_kernel_size=0, conv_groups=1),
    fixed=ONLY_ENCODER,
)
def deberta_v2(c: Config) -> Block:
    """DeBERTa with buckets, shared position keys and a convolution beside the first layer (DebertaV2ForMaskedLM)."""
    d, words = c.hidden_size, [] if c.share_att_key else position_words(c)
    d_h = c.attention_head_size or equal_heads(c)
    proj = Linear(d_in=d, d_out=c.num_attention_heads * d_h, bias=True)
    positions = block(pos_k_proj=proj if "c2p" in words else None, pos_q_proj=proj if "p2c" in words else None)
    attn = mha(c, inner=positions if positions.items else None).model_copy(update=dict(head_dim=d_h, out_in=d))
    size = if_positive(c, "position_buckets") or if_positive(c, "max_relative_positions") or c.max_position_embeddings
    relative = Embedding(rows=2 * size, width=d) if c.relative_attention else None
    normed = "layer_norm" in [word.strip() for word in c.norm_rel_ebd.lower().split("|")]
    conv = None
    if c.conv_kernel_size:
        c.require(d % c.conv_groups == 0, f"hidden_size ({d}) is not divisible by conv_groups ({c.conv_groups})")
        per_group = d if c.conv_groups == 1 else d // c.conv_groups
        conv = block(conv=Conv1d(channels=d, kernel=c.conv_kernel_size, per_group=per_group), norm=layer_norm(c))
    return deberta_encoder(c, encoder_layer(c, attn=attn), relative, layer_norm(c) if normed else None, conv)


def deberta_encoder(
    c: Config, layer: Block, relative: Component | None, norm: Component | None = None, conv: Component | None = None
) -> Block:
    """Embeddings without or with absolute positions, the layers with their relative ones, BERT's or DeBERTa's head."""
    d, width = c.hidden_size, c.embedding_size or c.hidden_size
    rows = None if c.position_biased_input else 0
    tables = embeddings(c, width, rows=rows, norm=False) | (projected(c, width, bias=False) if width != d else {})
    own = block(transform=dense(c, d), norm=layer_norm(c), bias=Param(shape=(c.vocab_size,), category="head"))
    heads = encoder_heads(c, width, lm_head=None if c.legacy else own, pooled=())
    if c.head in CLASSIFIED:
        pooled = c.pooler_hidden_size or d
        outputs = 1 if c.head == "multiple_choice" else labels(c)
        heads = {
            "pooler": Linear(d_in=pooled, d_out=pooled, bias=True, category="head"),
            "classifier": dense(c, outputs),
        }
    return block(
        **tables,
        embed_norm=layer_norm(c),
        relative_positions=relative,
        relative_norm=norm,
        conv=conv,
        layers=stack("encoder", Run(c.num_hidden_layers, layer)),
        **heads,
    )


def position_words(c: Config) -> list[str]:
    """What attends to what: c2p, p2c; a list, or words joined by a bar. Without relative attention nothing does."""
    stated = c.raw("pos_att_type") or []
    words = [word.strip() for word in stated.lower().split("|")] if isinstance(stated, str) else list(stated)
    c.require(set(words) <= {"c2p", "p2c", "p2p", ""}, f"pos_att_type {stated!r} is not known", "known: c2p, p2c")
    return words if c.relative_attention else []


def if_positive(c: Config, name: str) -> int | None:
    """A size, or None where the file says nothing, or less than one."""
    value = c.raw(name)
    return (
        None
        if value is None or (type(value) is int and value < 1)
        else named(name, c.whole(name, value), origin=c.key(name))
    )


# -- proteins ----------------------------------------------------------------------------------------------------


@family(
    "esm",
    "EsmForMaskedLM",
    defaults=SIZES
    | dict(vocab_size=None, max_position_embeddings=1026, position_embedding_type="absolute")
    | dict(emb_layer_norm_before=False, head_dim=None, is_decoder=False, add_cross_attention=False),
    # How masked tokens are scaled; the folding model is another class.
    unused=["esmfold_config", "is_folding_model", "token_dropout", "vocab_list"],
)
def esm(c: Config) -> Block:
    """Pre-norm encoder for proteins that can tell contacts from its attention maps (EsmForMaskedLM)."""
    if c.vocab_size is None:
        raise c.missing("vocab_size")
    d, kind = c.hidden_size, c.position_embedding_type  # the class gives any other kind no positions at all
    before = embeddings(c, d, rows=None if kind == "absolute" else 0, types=False, norm=c.emb_layer_norm_before)
    if kind == "rotary":
        before["rotary"] = Param(shape=(((c.head_dim or equal_heads(c)) + 1) // 2,), buffer=True)
    contacts = Linear(d_in=c.num_hidden_layers * c.num_attention_heads, d_out=1, bias=True, category="head")
    head = masked_lm_head(c, d, spare_bias=False)
    heads = encoder_heads(c, d, lm_head=head, pooled=("none",), transformed=("sequence_classification",))
    return encoder(c, before, encoder_layer(c, norm_first=True), heads, norm=layer_norm(c), contacts=contacts)


@family(
    "esmc",
    "EsmcForMaskedLM",
    defaults=SIZES
    | dict(vocab_size=64, hidden_size=2560, intermediate_size=6912, num_hidden_layers=80)
    | dict(num_attention_heads=40, num_key_value_heads=None, head_dim=None, attention_bias=False)
    | dict(mlp_bias=False, tie_word_embeddings=False),
)
def esmc(c: Config) -> Block:
    """Llama's layer with LayerNorms and QK norms over all heads, for proteins; never tied (EsmcForMaskedLM)."""
    d, h = c.hidden_size, c.num_attention_heads
    c.require((c.num_key_value_heads or h) == h, "num_key_value_heads must equal num_attention_heads")
    equal_heads(c)
    attn = gqa(c, qkv_bias=c.attention_bias, out_bias=c.attention_bias, q_norm=rms(c), k_norm=rms(c))
    layer = pre_norm(layer_norm(c), attn, glu(c, bias=c.mlp_bias))
    heads = encoder_heads(
        c,
        d,
        lm_head=masked_lm_head(c, d, spare_bias=False, tied=False),
        pooled=(),
        transformed=("sequence_classification",),
    )
    return encoder(c, {"embed_tokens": Embedding(rows=c.vocab_size, width=d)}, layer, heads, norm=rms(c))


# -- rotary positions, norms after -------------------------------------------------------------------------------

ROTARY = SIZES | dict(type_vocab_size=1, head_dim=None)
MANY_HEADS = ONLY_ENCODER | dict(num_key_value_heads=None)


@family(
    "nomic_bert",
    "NomicBertForMaskedLM",
    defaults=ROTARY | dict(vocab_size=30528, type_vocab_size=2),
    fixed=MANY_HEADS,
)
def nomic_bert(c: Config) -> Block:
    """BERT with rotary positions and gated FFNs, without biases in its layers (NomicBertForMaskedLM)."""
    heads = encoder_heads(c, c.hidden_size, pooled=("sequence_classification",))
    layer = encoder_layer(c, attn=gqa(c), ffn=glu(c))
    return encoder(c, embeddings(c, c.hidden_size, rows=0), layer, heads)


@family("gte", "GteForMaskedLM", defaults=ROTARY | dict(vocab_size=250048), fixed=MANY_HEADS)
def gte(c: Config) -> Block:
    """BERT with rotary positions and gated FFNs whose last matrix alone has a bias (GteForMaskedLM)."""
    head = masked_lm_head(c, c.hidden_size, spare_bias=False)
    heads = encoder_heads(c, c.hidden_size, lm_head=head, pooled=("sequence_classification",))
    ffn = Mlp(width=c.hidden_size, hidden=c.intermediate_size, gated=True, down_bias=True)
    layer = encoder_layer(c, attn=gqa(c, qkv_bias=True, out_bias=True), ffn=ffn)
    return encoder(c, embeddings(c, c.hidden_size, rows=0), layer, heads)


@family(
    "jina_embeddings_v3",
    "JinaEmbeddingsV3ForMaskedLM",
    defaults=ROTARY
    | dict(vocab_size=250002, hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16),
    fixed=MANY_HEADS,
)
def jina_embeddings_v3(c: Config) -> Block:
    """RoBERTa with rotary positions (JinaEmbeddingsV3ForMaskedLM)."""
    heads = roberta_heads(c)
    layer = encoder_layer(c, attn=gqa(c, qkv_bias=True, out_bias=True))
    return encoder(c, embeddings(c, c.hidden_size, rows=0), layer, heads)


# -- rotary positions, norms first -------------------------------------------------------------------------------

LLAMA = SIZES | dict(
    num_key_value_heads=None, head_dim=None, attention_bias=False, mlp_bias=False, tie_word_embeddings=False
)


@family("eurobert", "EuroBertForMaskedLM", defaults=LLAMA | dict(vocab_size=128256))
def eurobert(c: Config) -> Block:
    """Llama as an encoder (EuroBertForMaskedLM)."""
    head = lm_head(c, c.hidden_size, owner="embed_tokens", bias=c.mlp_bias)
    heads = encoder_heads(c, c.hidden_size, lm_head=head, pooled=(), transformed=("sequence_classification",))
    return llama_encoder(c, [FULL] * c.num_hidden_layers, heads)


@family(
    "ultrabert",
    "UltrabertForMaskedLM",
    defaults=LLAMA
    | dict(vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32)
    | dict(num_attention_heads=32, sliding_window=128, layer_types=None, attention_windows=None)
    | dict(prediction_head_size=768),
)
def ultrabert(c: Config) -> Block:
    """EuroBERT with full attention in every third layer and a bottleneck before the output (UltrabertForMaskedLM)."""
    d, narrow = c.hidden_size, c.prediction_head_size
    head = block(
        down=Linear(d_in=d, d_out=narrow, category="head"),
        up=Linear(d_in=narrow, d_out=d, category="head"),
        decoder=lm_head(c, d, owner="embed_tokens"),
    )
    heads = encoder_heads(c, d, lm_head=head, pooled=(), answers=2)
    windows = c.per_layer("attention_windows")
    default = (
        every(3, FULL, otherwise=SLIDING, layers=c.num_hidden_layers)
        if windows is None
        else [SLIDING if window else FULL for window in windows]
    )
    return llama_encoder(c, kinds(c, default), heads)


def llama_encoder(c: Config, words: list[str], heads: dict[str, Component]) -> Block:
    """Token embedding, Llama's layers with full or sliding attention, a norm, and heads."""
    equal_heads(c)
    bias, window = c.attention_bias, c.sliding_window if SLIDING in words else None
    layers = {
        word: pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias, window=width), glu(c, bias=c.mlp_bias))
        for word, width in ((FULL, None), (SLIDING, window))
    }
    before = {"embed_tokens": Embedding(rows=c.vocab_size, width=c.hidden_size)}
    return encoder(c, before, [layers[word] for word in words], heads, norm=rms(c))


@family(
    "modernbert",
    "ModernBertForMaskedLM",
    defaults=SIZES
    | dict(vocab_size=50368, intermediate_size=1152, num_hidden_layers=22, norm_bias=False)
    | dict(attention_bias=False, mlp_bias=False, decoder_bias=True, classifier_bias=False, layer_types=None)
    | dict(local_attention=128, global_attn_every_n_layers=3),
)
def modernbert(c: Config) -> Block:
    """Pre-norm encoder with gated FFNs; every third layer attends to all (ModernBertForMaskedLM).

    The first layer has no norm before its attention.
    """
    d, bias, period = c.hidden_size, c.attention_bias, c.global_attn_every_n_layers
    norm, ffn = Norm(width=d, bias=c.norm_bias), glu(c, bias=c.mlp_bias)
    words = kinds(c, [SLIDING if i % period else FULL for i in range(c.num_hidden_layers)])
    mixers = {
        word: mha(c, qkv_bias=bias, out_bias=bias, window=window)
        for word, window in ((FULL, None), (SLIDING, c.local_attention))
    }
    layers = [
        block(attn_norm=norm if i else None, attn=mixers[word], ffn_norm=norm, ffn=ffn) for i, word in enumerate(words)
    ]
    before = {"embed_tokens": Embedding(rows=c.vocab_size, width=d), "embed_norm": norm}
    head = lm_head(c, d, owner="embed_tokens", bias=c.decoder_bias)
    transform = {"transform": Linear(d_in=d, d_out=d, bias=c.classifier_bias, category="head"), "transform_norm": norm}
    heads = encoder_heads(c, d, lm_head=head, pooled=())
    return encoder(c, before, layers, (transform if heads else {}) | heads, norm=norm)


@family(
    "neomme",
    "NeoMMEForMaskedLM",
    defaults=SIZES
    | dict(vocab_size=131072, embedding_rank=256, hidden_size=1024, intermediate_size=3584)
    | dict(num_hidden_layers=17, num_attention_heads=16, num_key_value_heads=4, head_dim=64)
    | dict(attention_bias=False, mlp_bias=False, layer_types=None, sliding_window=256, patch_size=32)
    | dict(embedding_dim=128),
    unused=["per_layer_config"],  # windows, which change no weight
)
def neomme(c: Config) -> Block:
    """Encoder of words and image patches: low-rank embeddings, gated attention, bare norms (NeoMMEForMaskedLM)."""
    d, rank, depth = c.hidden_size, c.embedding_rank, c.num_hidden_layers
    patch = 3 * c.patch_size * c.patch_size
    words = kinds(c, [FULL if (i + 1) % 6 == 0 or i == depth - 1 else SLIDING for i in range(depth)])
    c.require(FULL in words, "layer_types has no full_attention")
    before: dict[str, Component] = {
        "embed_tokens": Embedding(rows=c.vocab_size, width=rank),
        **projected(c, rank, bias=False),
        "embed_patches": block(
            "vision",
            norm=Norm(width=patch, bias=True),
            up_proj=Linear(d_in=patch, d_out=2 * d),
            down_proj=Linear(d_in=2 * d, d_out=d, bias=True),
        ),
        "embed_values": Embedding(rows=c.vocab_size, width=c.num_key_value_heads * c.head_dim),
    }
    layers = [neomme_layer(c, window=c.sliding_window if word == SLIDING else None) for word in words]
    return encoder(c, before, layers, neomme_heads(c), norm=Norm(width=d, scale=False))


def neomme_layer(c: Config, *, window: int | None) -> Block:
    """A layer with a learned mixture of its input and the embedding, and a sigmoid gate on attention's output."""
    d, h, d_h, bias = c.hidden_size, c.num_attention_heads, c.head_dim, c.attention_bias
    qk_norm, norm = Norm(width=d_h, scale=False), Norm(width=d, scale=False)
    inner = block(own_value=Param(shape=(h,)), gate_proj=Linear(d_in=d, d_out=h * d_h))
    attn = gqa(c, qkv_bias=bias, out_bias=bias, q_norm=qk_norm, k_norm=qk_norm, window=window)
    return block(
        lambdas=Param(shape=(2,)),
        input_norm=norm,
        attn=attn.model_copy(update=dict(inner=inner)),
        post_norm=norm,
        ffn=mlp(c, c.intermediate_size, bias=c.mlp_bias),
    )


def neomme_heads(c: Config) -> dict[str, Component]:
    """Both steps of the embedding backwards, or vectors for retrieval."""
    d, rank, tied = c.hidden_size, c.embedding_rank, c.tie_word_embeddings
    match c.head:
        case "masked_lm":
            back = Linear(d_in=rank, d_out=d, category="head", tied_to="embed_proj" if tied else None)
            return {"unembed_proj": back, "lm_head": lm_head(c, rank, owner="embed_tokens")}
        case "retrieval":
            return {"vectors": Linear(d_in=d, d_out=c.embedding_dim, category="head")}
        case "none":
            return {}
    raise unknown_head(c)


# -- latents -----------------------------------------------------------------------------------------------------


@family(
    "perceiver",
    "PerceiverForMaskedLM",
    defaults=dict(
        vocab_size=262, num_latents=256, d_latents=1280, d_model=768, num_blocks=1, num_self_attends_per_block=26
    )
    | dict(num_self_attention_heads=8, num_cross_attention_heads=8, qk_channels=None, v_channels=None)
    | dict(cross_attention_shape_for_attention="kv", self_attention_widening_factor=1)
    | dict(cross_attention_widening_factor=1, max_position_embeddings=2048),
    # Of the classes for images, flow and video, which are not counted.
    unused=[
        "_label_trainable_num_channels",
        "audio_samples_per_frame",
        "image_size",
        "num_frames",
        "output_num_channels",
        "output_shape",
        "samples_per_patch",
        "train_size",
        "use_query_residual",
    ],
)
def perceiver(c: Config) -> Block:
    """Latents that read bytes once and then attend to themselves many times (PerceiverForMaskedLM, 2107.14795)."""
    d, width, rows = c.d_latents, c.d_model, c.max_position_embeddings
    by_query = c.cross_attention_shape_for_attention
    c.require(by_query in ("q", "kv"), f"cross_attention_shape_for_attention {by_query!r} is not known", "q or kv")
    qk = c.qk_channels or (d if by_query == "q" else width)
    read = perceiver_layer(c, d, width, qk=qk, v=c.v_channels or qk, heads=c.num_cross_attention_heads)
    qk = c.qk_channels or d
    think = perceiver_layer(c, d, None, qk=qk, v=c.v_channels or qk, heads=c.num_self_attention_heads)
    text: dict[str, Component] = {
        "embed_tokens": Embedding(rows=c.vocab_size, width=width),
        "positions": Embedding(rows=rows, width=width),
    }
    return block(
        **({} if c.head == "none" else text),
        latents=Param(shape=(c.num_latents, d), category="embedding"),
        read=read,
        layers=stack("encoder", Run(c.num_self_attends_per_block, think, passes=c.num_blocks)),
        **perceiver_head(c),
    )


def perceiver_layer(
    c: Config, width: int, source: int | None, *, qk: int, v: int, heads: int, widening: int | None = None
) -> Block:
    """Norm, attention to a source of another width or to itself, norm, FFN."""
    c.require(qk % heads == 0 == v % heads, f"{qk} and {v} channels are not divisible by {heads} heads")
    factor = c.self_attention_widening_factor if source is None else c.cross_attention_widening_factor
    attn = biased(
        Attention(
            width=width,
            heads=heads,
            kv_heads=heads,
            head_dim=qk // heads,
            value_dim=v // heads,
            kv_width=source,
            out_width=width if source else v,
            source="self" if source is None else "cross",
        )
    )
    norm = Norm(width=width, bias=True)
    ffn = Mlp(width=width, hidden=(widening or factor) * width, gated=False, bias=True)
    source_norm = None if source is None else Norm(width=source, bias=True)
    return block(input_norm=norm, source_norm=source_norm, attn=attn, post_norm=norm, ffn=ffn)


def perceiver_head(c: Config) -> dict[str, Component]:
    """Queries, one for each byte or one for the text, that read the latents."""
    d, width, rows = c.d_latents, c.d_model, c.max_position_embeddings
    match c.head:
        case "masked_lm":
            queries = Param(shape=(rows, width), category="embedding")
            decode = perceiver_layer(c, width, d, qk=256, v=width, heads=8, widening=1)
            return {"queries": queries, "decode": decode, "byte_bias": Param(shape=(c.vocab_size,), category="head")}
        case "sequence_classification":
            queries = Param(shape=(1, d), category="embedding")
            decode = perceiver_layer(c, d, d, qk=d, v=d, heads=1, widening=1)
            final = Linear(d_in=d, d_out=labels(c), bias=True, category="head")
            return {"queries": queries, "decode": decode, "classifier": final}
        case "none":
            return {}
    raise unknown_head(c)
