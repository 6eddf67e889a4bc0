"""BART and its kin: encoder-decoders with LayerNorms and plain FFNs, equal heads, positions learned or computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paramcalc.components import Attention, Moe
from paramcalc.components.attention import Kind
from paramcalc.config import Config
from paramcalc.dims import named
from paramcalc.families.heads import classifier, labels, lm_head, unknown_head
from paramcalc.families.registry import family
from paramcalc.families.skeletons import layer_norm, mlp
from paramcalc.spec import Block, Component, Conv1d, Embedding, Layers, Linear, Param, Run, block, stack

NAMES = dict(hidden_size="d_model", num_attention_heads="encoder_attention_heads", num_hidden_layers="encoder_layers")


class Form(NamedTuple):
    """What sets BART's relatives apart."""

    spare_rows: int | None = 2  # position rows beyond max_position_embeddings; None: positions are not stored
    embed_norm: bool = True
    pre_norm: bool = False  # norms before each part, and one after the last layer
    bias: bool = True  # on q, k, v and o
    key_bias: bool = True
    ffn_bias: bool = True
    cross: bool = True  # the decoder attends to the encoder
    logits_bias: bool = True  # a persistent buffer beside the head
    ties_decoder: bool = True  # the decoder-only class can tie its head


# -- parts -------------------------------------------------------------------------------------------------------


def sizes_of(c: Config, role: str) -> tuple[int, int, int]:
    """Depth, heads and FFN width of one side."""
    if role == "encoder":
        return c.encoder_layers, c.encoder_attention_heads, c.encoder_ffn_dim
    return c.decoder_layers, c.decoder_attention_heads, c.decoder_ffn_dim


def attention(
    c: Config,
    role: str,
    form: Form,
    *,
    source: Kind = "self",
    kv_width: int | None = None,
    inner: Component | None = None,
) -> Attention:
    """Multi-head attention whose heads cut the width into equal parts."""
    d, (_, heads, _) = c.hidden_size, sizes_of(c, role)
    c.require(d % heads == 0, f"{c.key('hidden_size')} ({d}) is not divisible by the {role}'s heads ({heads})")
    return Attention(
        width=d,
        heads=heads,
        kv_heads=heads,
        head_dim=named("d_h", d // heads, origin="d / h"),
        q_bias=form.bias,
        k_bias=form.bias and form.key_bias,
        v_bias=form.bias,
        out_bias=form.bias,
        source=source,
        kv_width=kv_width,
        inner=inner,
    )


def layer(
    c: Config,
    role: str,
    form: Form,
    *,
    attn: Component | None = None,
    ffn: Component | None = None,
    kv_width: int | None = None,
) -> Block:
    """Attention, in a decoder cross attention, FFN; each with its norm, after it or before."""
    steps: dict[str, Component] = {"attn": attention(c, role, form) if attn is None else attn}
    if role == "decoder" and form.cross:
        steps["cross_attn"] = attention(c, role, form, source="cross", kv_width=kv_width)
    steps["ffn"] = mlp(c, sizes_of(c, role)[2], bias=form.ffn_bias) if ffn is None else ffn
    parts: dict[str, Component] = {}
    for name, step in steps.items():
        norm: dict[str, Component] = {f"{name}_norm": layer_norm(c)}
        parts |= norm | {name: step} if form.pre_norm else {name: step} | norm
    return block(**parts)


def side(
    c: Config,
    role: str,
    form: Form,
    *,
    layers: Layers | Component | None = None,
    rows: int | None = None,
    positions: int | None = None,
    owner: str | None = "shared",
    before: Mapping[str, Component] | None = None,
) -> Block:
    """One stack with what is before and after it: token table (`rows` long, or `owner`'s), positions, norms.

    `layers` are all of them, or one that is repeated; `positions`: rows that max_position_embeddings does not state.
    """
    d, norm = c.hidden_size, layer_norm(c)
    tied_to = owner if c.tie_word_embeddings and c.head != "lm" else None
    stored = None if form.spare_rows is None else positions or c.max_position_embeddings + form.spare_rows
    one = layer(c, role, form) if layers is None else layers
    return block(
        embed_tokens=Embedding(rows=rows or c.vocab_size, width=d, tied_to=tied_to),
        positions=None if stored is None else Embedding(rows=stored, width=d),
        embed_norm=norm if form.embed_norm else None,
        **(before or {}),
        layers=stack(role, Run(sizes_of(c, role)[0], one) if isinstance(one, Component) else one),
        norm=norm if form.pre_norm else None,
    )


def head(c: Config, form: Form, *, owner: str = "shared", rows: int | None = None) -> dict[str, Component]:
    """The LM head, perhaps with its persistent bias buffer, or a classifier."""
    d: int = c.hidden_size
    rows = rows or c.vocab_size
    match c.head:
        case "seq2seq_lm":
            parts: dict[str, Component] = {"lm_head": lm_head(c, d, owner=owner, rows=rows)}
            if form.logits_bias:
                parts["final_logits_bias"] = Param(shape=(1, rows), buffer=True, category="head")
            return parts
        case "sequence_classification":
            return classifier(c, transform=True)
        case "question_answering":  # for which the class sets num_labels to 2
            return {"qa_outputs": Linear(d_in=d, d_out=2, bias=True, category="head")}
        case "none":
            return {}
    raise unknown_head(c)


def joined(c: Config, form: Form, encoder: Component, decoder: Component) -> Block:
    """Both sides around one token table and under one head, or the decoder alone with the head."""
    if c.head == "lm":
        alone = lm_head(c, c.hidden_size, owner="decoder.embed_tokens")
        return block(
            decoder=decoder, lm_head=alone if form.ties_decoder else alone.model_copy(update={"tied_to": None})
        )
    shared = Embedding(rows=c.vocab_size, width=c.hidden_size)
    return block(shared=shared, encoder=encoder, decoder=decoder, **head(c, form))


def model(c: Config, form: Form) -> Block:
    """A relative that `form` describes completely."""
    return joined(c, form, side(c, "encoder", form), side(c, "decoder", form))


# -- families ----------------------------------------------------------------------------------------------------

BART = dict(
    vocab_size=50265,
    hidden_size=1024,
    encoder_layers=12,
    encoder_attention_heads=16,
    encoder_ffn_dim=4096,
    decoder_layers=12,
    decoder_attention_heads=16,
    decoder_ffn_dim=4096,
    max_position_embeddings=1024,
    tie_word_embeddings=True,
)
# Fields of the original implementations, which the classes fix.
UNUSED = [
    "add_bias_logits",
    "add_cross_attention",
    "add_final_layer_norm",
    "do_blenderbot_90_layernorm",
    "extra_pos_embeddings",
    "force_bos_token_to_be_generated",
    "layernorm_variant",
    "normalize_before",
    "normalize_embedding",
    "static_position_embeddings",
]


@family("bart", "BartForConditionalGeneration", names=NAMES, defaults=BART, unused=UNUSED)
@family(
    "plbart",
    "PLBartForConditionalGeneration",
    names=NAMES,
    defaults=BART
    | dict(vocab_size=50005, hidden_size=768, encoder_layers=6, encoder_attention_heads=12, encoder_ffn_dim=3072)
    | dict(decoder_layers=6, decoder_attention_heads=12, decoder_ffn_dim=3072),
    unused=UNUSED,
)
def bart(c: Config) -> Block:
    """Post-norm encoder and decoder, learned positions with two spare rows (BartForConditionalGeneration)."""
    return model(c, Form())


@family("mbart", "MBartForConditionalGeneration", names=NAMES, defaults=BART, unused=UNUSED)
def mbart(c: Config) -> Block:
    """BART with norms before each part (MBartForConditionalGeneration)."""
    return model(c, Form(pre_norm=True))


@family("pegasus", "PegasusForConditionalGeneration", names=NAMES, defaults=BART, unused=UNUSED)
@family(
    "blenderbot",
    "BlenderbotForConditionalGeneration",
    names=NAMES,
    defaults=BART
    | dict(vocab_size=8008, hidden_size=2560, encoder_layers=2, encoder_attention_heads=32, encoder_ffn_dim=10240)
    | dict(decoder_layers=24, decoder_attention_heads=32, decoder_ffn_dim=10240, max_position_embeddings=128),
    unused=UNUSED,
)
def pegasus(c: Config) -> Block:
    """BART with norms before each part, not on the embedding; no spare positions (PegasusForConditionalGeneration).

    Pegasus' positions are sinusoids, but a table of the model like any other.
    """
    return model(c, Form(spare_rows=0, embed_norm=False, pre_norm=True))


@family(
    "blenderbot-small",
    "BlenderbotSmallForConditionalGeneration",
    names=NAMES,
    defaults=BART
    | dict(hidden_size=512, encoder_layers=8, encoder_ffn_dim=2048, decoder_layers=8, decoder_ffn_dim=2048)
    | dict(max_position_embeddings=512),
    unused=UNUSED,
)
def blenderbot_small(c: Config) -> Block:
    """BART without spare position rows (BlenderbotSmallForConditionalGeneration)."""
    return model(c, Form(spare_rows=0))


@family(
    "bigbird_pegasus",
    "BigBirdPegasusForConditionalGeneration",
    names=NAMES,
    defaults=BART
    | dict(vocab_size=96103, encoder_layers=16, decoder_layers=16, max_position_embeddings=4096, use_bias=False),
    unused=[*UNUSED, "attention_type", "block_size", "num_random_blocks"],
)
def bigbird_pegasus(c: Config) -> Block:
    """Pegasus with sparse attention and few biases (BigBirdPegasusForConditionalGeneration)."""
    form = Form(spare_rows=0, embed_norm=False, pre_norm=True, bias=c.use_bias, ties_decoder=False)
    return model(c, form)


@family(
    "pegasus_x",
    "PegasusXForConditionalGeneration",
    names=NAMES,
    defaults=BART | dict(vocab_size=96103, encoder_layers=16, decoder_layers=16, num_global_tokens=32),
    unused=[*UNUSED, "block_size", "stagger_local_blocks"],
)
def pegasus_x(c: Config) -> Block:
    """Pegasus without biases in attention, with learned global tokens (PegasusXForConditionalGeneration)."""
    form = Form(spare_rows=None, embed_norm=False, pre_norm=True, bias=False, logits_bias=False)
    one = block(global_attn_norm=layer_norm(c), **layer(c, "encoder", form).items)
    tokens = {"global_tokens": Embedding(rows=c.num_global_tokens, width=c.hidden_size)}
    return joined(c, form, side(c, "encoder", form, layers=one, before=tokens), side(c, "decoder", form))


M2M = Form(spare_rows=None, embed_norm=False, pre_norm=True, logits_bias=False)


@family(
    "m2m_100", "M2M100ForConditionalGeneration", names=NAMES, defaults=BART | dict(vocab_size=128112), unused=UNUSED
)
def m2m_100(c: Config) -> Block:
    """Pegasus with computed positions and no bias at the head (M2M100ForConditionalGeneration)."""
    return model(c, M2M)


@family(
    "nllb-moe",
    "NllbMoeForConditionalGeneration",
    names=NAMES | dict(encoder_sparse_period="encoder_sparse_step", decoder_sparse_period="decoder_sparse_step"),
    defaults=BART
    | dict(vocab_size=128112, num_experts=128, router_bias=False, encoder_sparse_period=4, decoder_sparse_period=4),
    unused=[
        *UNUSED,
        "add_router_probs",
        "batch_prioritized_routing",
        "expert_capacity",
        "moe_eval_capacity_token_fraction",
        "moe_token_dropout",
        "normalize_router_prob_before_dropping",
        "router_dtype",
        "router_ignore_padding_tokens",
        "router_type",
        "router_z_loss_coef",
        "second_expert_policy",
    ],
)
def nllb_moe(c: Config) -> Block:
    """M2M-100 with experts, two of them active, in every fourth layer (NllbMoeForConditionalGeneration)."""
    sides = []
    for role, step in (("encoder", c.encoder_sparse_period), ("decoder", c.decoder_sparse_period)):
        depth, _, hidden = sizes_of(c, role)
        bank = Moe(
            width=c.hidden_size, expert=mlp(c, hidden), experts=c.num_experts, top_k=2, router_bias=c.router_bias
        )
        kinds = {False: layer(c, role, M2M), True: layer(c, role, M2M, ffn=bank)}
        sparse = (step > 0 and (i + 1) % step == 0 for i in range(depth))
        sides.append(side(c, role, M2M, layers=[kinds[has] for has in sparse]))
    return joined(c, M2M, *sides)


@family(
    "mvp",
    "MvpForConditionalGeneration",
    names=NAMES,
    defaults=BART | dict(vocab_size=50267, use_prompt=False, prompt_length=100, prompt_mid_dim=800),
    unused=UNUSED,
)
def mvp(c: Config) -> Block:
    """BART, perhaps with learned prompts for the decoder's layers (MvpForConditionalGeneration).

    The class passes use_prompt to its encoder in the place of another argument and builds prompts for the decoder only.
    """
    form, prompts = Form(), {}
    if c.use_prompt and c.head != "lm":
        d, mid = c.hidden_size, c.prompt_mid_dim
        prompt = block(
            "attention",
            tokens=Embedding(rows=c.prompt_length, width=d),
            up=Linear(d_in=d, d_out=mid, bias=True),
            down=Linear(d_in=mid, d_out=2 * c.decoder_layers * d, bias=True),
        )
        prompts = {"attn_prompt": prompt, "cross_attn_prompt": prompt}
        c.notes.append(
            "mvp: the class builds prompts for the decoder only, although use_prompt is meant for both sides"
        )
    return joined(c, form, side(c, "encoder", form), side(c, "decoder", form, before=prompts))


@family(
    "led",
    "LEDForConditionalGeneration",
    names=NAMES | dict(max_position_embeddings="max_decoder_position_embeddings"),
    defaults=BART | dict(max_encoder_position_embeddings=16384),
    unused=[*UNUSED, "attention_window"],
)
def led(c: Config) -> Block:
    """BART whose encoder has a second set of q, k and v for global tokens (LEDForConditionalGeneration)."""
    form, full = Form(spare_rows=0), Linear(d_in=c.hidden_size, d_out=c.hidden_size, bias=True)
    attn = attention(c, "encoder", form, inner=block(global_q=full, global_k=full, global_v=full))
    one = layer(c, "encoder", form, attn=attn)
    encoder = side(c, "encoder", form, layers=one, positions=c.max_encoder_position_embeddings)
    return joined(c, form, encoder, side(c, "decoder", form))


@family(
    "marian",
    "MarianMTModel",
    names=NAMES,
    defaults=BART | dict(vocab_size=58101, decoder_vocab_size=None, share_encoder_decoder_embeddings=True),
    unused=UNUSED,
)
def marian(c: Config) -> Block:
    """BART without norms on the embedding; source and target may have vocabularies of their own (MarianMTModel)."""
    form, rows = Form(spare_rows=0, embed_norm=False), c.decoder_vocab_size or c.vocab_size
    if c.share_encoder_decoder_embeddings and c.head != "lm":
        return joined(c, form, side(c, "encoder", form), side(c, "decoder", form, rows=rows))
    decoder = side(c, "decoder", form, rows=rows, owner=None)
    if c.head == "lm":
        made = rows if c.tie_word_embeddings else c.vocab_size
        return block(decoder=decoder, lm_head=lm_head(c, c.hidden_size, owner="decoder.embed_tokens", rows=made))
    encoder = side(c, "encoder", form, owner=None)
    return block(encoder=encoder, decoder=decoder, **head(c, form, owner="decoder.embed_tokens", rows=rows))


@family(
    "fsmt",
    "FSMTForConditionalGeneration",
    names=NAMES | dict(vocab_size="tgt_vocab_size"),
    defaults=BART | dict(vocab_size=42024, src_vocab_size=42024, pad_token_id=1, tie_word_embeddings=False),
    unused=[*UNUSED, "langs", "decoder", "train_for_translation"],
)
def fsmt(c: Config) -> Block:
    """Post-norm translation model with two vocabularies; positions start after padding (FSMTForConditionalGeneration).

    The model without head does not exist: the decoder holds the output matrix.
    """
    form, owner = Form(spare_rows=c.pad_token_id + 1, embed_norm=False), "decoder.embed_tokens"
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    encoder = side(c, "encoder", form, rows=c.src_vocab_size, owner=owner)
    decoder = side(c, "decoder", form, owner=None)
    return block(encoder=encoder, decoder=decoder, lm_head=lm_head(c, c.hidden_size, owner=owner))


@family(
    "prophetnet",
    "ProphetNetForConditionalGeneration",
    names=dict(
        num_attention_heads="num_encoder_attention_heads",
        encoder_attention_heads="num_encoder_attention_heads",
        decoder_attention_heads="num_decoder_attention_heads",
        encoder_layers="num_encoder_layers",
        decoder_layers="num_decoder_layers",
    ),
    defaults=BART
    | dict(vocab_size=30522, max_position_embeddings=512, ngram=2, num_buckets=32, add_cross_attention=True),
    unused=["disable_ngram_loss", "eps", "relative_max_distance"],
)
def prophetnet(c: Config) -> Block:
    """Post-norm decoder that predicts n tokens at once, positions from the hidden state (ProphetNet, 2001.04063)."""
    form, d = Form(spare_rows=0, cross=c.add_cross_attention, logits_bias=False), c.hidden_size
    buckets = Linear(d_in=d, d_out=c.num_buckets * c.decoder_attention_heads, bias=True)
    one = layer(c, "decoder", form, attn=attention(c, "decoder", form, inner=block(position_buckets=buckets)))
    tokens = {"ngram_tokens": Embedding(rows=c.ngram, width=d)}
    tied = "shared" if c.tie_word_embeddings else None
    decoder = side(c, "decoder", form, layers=one, before=tokens)
    if c.head == "lm":  # which keeps the shared table, unlike its relatives
        table = Embedding(rows=c.vocab_size, width=d)
        own = decoder.items | {"embed_tokens": table.model_copy(update={"tied_to": tied})}
        return block(shared=table, decoder=block(**own), lm_head=lm_head(c, d, owner="shared"))
    return joined(c, form, side(c, "encoder", form), decoder)


# -- speech, images and music ------------------------------------------------------------------------------------


@family(
    "whisper",
    "WhisperForConditionalGeneration",
    names=NAMES | dict(num_key_value_heads="encoder_attention_heads", max_position_embeddings="max_target_positions"),
    defaults=BART
    | dict(vocab_size=51865, hidden_size=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
    | dict(decoder_layers=4, decoder_attention_heads=6, decoder_ffn_dim=1536, max_position_embeddings=448)
    | dict(num_mel_bins=80, max_source_positions=1500, classifier_proj_size=256, use_weighted_layer_sum=False),
    unused=[*UNUSED, "median_filter_width"],
)
def whisper(c: Config) -> Block:
    """Pre-norm encoder over a spectrogram, decoder over text; keys have no bias (WhisperForConditionalGeneration)."""
    form = Form(spare_rows=0, embed_norm=False, pre_norm=True, key_bias=False)
    encoder = spectrogram_encoder(c, form)
    if c.head == "audio_classification":
        return block(encoder=encoder, **audio_head(c))
    decoder = side(c, "decoder", form, owner=None)
    matrix = {"lm_head": lm_head(c, c.hidden_size, owner="decoder.embed_tokens")}
    if c.head == "lm":
        return block(decoder=decoder, **matrix)
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    return block(encoder=encoder, decoder=decoder, **(matrix if c.head == "seq2seq_lm" else {}))


def spectrogram_encoder(c: Config, form: Form) -> Block:
    """Two convolutions over mel channels, positions, layers, a norm."""
    d = c.hidden_size
    return block(
        conv1=Conv1d(channels=d, kernel=3, per_group=c.num_mel_bins, category="embedding"),
        conv2=Conv1d(channels=d, kernel=3, per_group=d, category="embedding"),
        positions=Embedding(rows=c.max_source_positions, width=d),
        layers=stack("encoder", Run(c.encoder_layers, layer(c, "encoder", form))),
        norm=layer_norm(c),
    )


def audio_head(c: Config) -> dict[str, Component]:
    """A narrow classifier over the encoder, perhaps over a weighted sum of all its layers."""
    narrow = c.classifier_proj_size
    weights = {"layer_weights": Param(shape=(c.encoder_layers + 1,), category="head")}
    return (weights if c.use_weighted_layer_sum else {}) | {
        "projector": Linear(d_in=c.hidden_size, d_out=narrow, bias=True, category="head"),
        "classifier": Linear(d_in=narrow, d_out=labels(c), bias=True, category="head"),
    }


@family(
    "trocr",
    "TrOCRForCausalLM",
    names=dict(
        hidden_size="d_model", num_attention_heads="decoder_attention_heads", num_hidden_layers="decoder_layers"
    ),
    defaults={key: value for key, value in BART.items() if not key.startswith("encoder")}
    | dict(max_position_embeddings=512, use_learned_position_embeddings=True, layernorm_embedding=True)
    | dict(cross_attention_hidden_size=None),
    unused=UNUSED,
)
def trocr(c: Config) -> Block:
    """BART's decoder over the features of an image encoder, whose width may differ (TrOCRForCausalLM)."""
    if c.head != "lm":
        raise unknown_head(c)
    form = Form(spare_rows=2 if c.use_learned_position_embeddings else None, embed_norm=c.layernorm_embedding)
    one = layer(c, "decoder", form, kv_width=c.cross_attention_hidden_size)
    decoder = side(c, "decoder", form, layers=one)
    return block(decoder=decoder, lm_head=lm_head(c, c.hidden_size, owner="decoder.embed_tokens"))


MUSICGEN = dict(
    vocab_size=2048,
    hidden_size=1024,
    decoder_layers=24,
    decoder_attention_heads=16,
    decoder_ffn_dim=4096,
    num_codebooks=4,
)
MUSICGEN_NAMES = dict(
    decoder_layers="num_hidden_layers", decoder_attention_heads="num_attention_heads", decoder_ffn_dim="ffn_dim"
)
MUSICGEN_UNUSED = ["audio_channels", "add_cross_attention", "cross_attention_hidden_size"]


@family(
    "musicgen_decoder",
    "MusicgenForCausalLM",
    names=MUSICGEN_NAMES,
    defaults=MUSICGEN,
    fixed=dict(has_cross_attention=True),
    unused=MUSICGEN_UNUSED,
)
@family(
    "musicgen_melody_decoder",
    "MusicgenMelodyForCausalLM",
    names=MUSICGEN_NAMES,
    defaults=MUSICGEN,
    fixed=dict(has_cross_attention=False),
    unused=MUSICGEN_UNUSED,
)
def musicgen_decoder(c: Config) -> Block:
    """Pre-norm decoder over several codebooks, each with a token table and a head of its own (MusicgenForCausalLM)."""
    if c.head not in ("lm", "none"):
        raise unknown_head(c)
    form = Form(pre_norm=True, bias=False, ffn_bias=False, cross=c.has_cross_attention)
    d, n = c.hidden_size, c.num_codebooks
    return block(
        embed_tokens=Embedding(rows=n * (c.vocab_size + 1), width=d),
        layers=stack("decoder", Run(c.decoder_layers, layer(c, "decoder", form))),
        norm=layer_norm(c),
        lm_heads=Linear(d_in=d, d_out=n * c.vocab_size, category="head") if c.head == "lm" else None,
    )
