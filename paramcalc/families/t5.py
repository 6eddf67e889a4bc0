"""T5 and its kin: pre-norm encoder-decoders with RMS norms, relative position buckets and heads of any width."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paramcalc.components import Attention, Mlp, Moe, Router
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import head_dim, sized_attention
from paramcalc.families.builders.decoder import rms
from paramcalc.families.builders.heads import classifier, lm_head, unknown_head
from paramcalc.families.builders.vision_language import vision_language_model
from paramcalc.families.registry import family
from paramcalc.families.vision import height_and_width
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, LayerPattern, Run, Stack, block, stack
from paramcalc.tree.leaves import Embedding, Param


@family("t5", unstated_depth=6, can_untie=False)
@family("mt5", unstated_depth=8, can_untie=False)
def t5(c: Config) -> Block:
    """Pre-norm encoder and decoder, relative position buckets in each stack's first layer (T5ForConditionalGeneration).

    With tie_word_embeddings false (T5 1.1, Flan-T5) published checkpoints hold a head of their own; transformers 5
    ties it by force.
    """
    return t5_encoder_decoder(c)


@family("umt5", unstated_depth=8, can_untie=False)
def umt5(c: Config) -> Block:
    """T5 with relative position buckets in every layer (UMT5ForConditionalGeneration)."""
    return t5_model(c, lambda role, depth: stack(role, Run(depth, t5_layer(c, role, buckets=t5_buckets(c)))))


@family("longt5", unstated_depth=6, can_untie=False)
def longt5(c: Config) -> Block:
    """T5 whose encoder sees a window, perhaps beside summaries of blocks (LongT5ForConditionalGeneration)."""
    kind = c.encoder_attention_type
    c.require(kind in ("local", "transient-global"), f"encoder_attention_type {kind!r} is not known")

    def stack_of(role: str, depth: int) -> Stack:
        if role == "decoder":
            return first_and_rest(t5_layer(c, role, buckets=t5_buckets(c)), t5_layer(c, role), depth, role)
        beside: dict[str, Component] = {"global_norm": rms(c)}
        bias = {"global_bias": Param(shape=(t5_buckets(c), c.num_attention_heads), category="attention")}
        first, rest = (beside | bias, beside) if kind == "transient-global" else ({}, {})
        window = 2 * c.local_radius + 1
        why = "blocks with their neighbours are counted as windows"
        biased = t5_layer(c, role, buckets=t5_buckets(c), window=window, beside=first).replace(inexact=why)
        return first_and_rest(biased, t5_layer(c, role, window=window, beside=rest).replace(inexact=why), depth, role)

    return t5_model(c, stack_of)


@family("switch_transformers", unstated_depth=12, can_untie=True)
def switch_transformers(c: Config) -> Block:
    """T5 with experts, one of them active, in every n-th layer (SwitchTransformersForConditionalGeneration)."""

    def stack_of(role: str, depth: int) -> Stack:
        plain = Mlp(width=c.hidden_size, hidden=c.d_ff, gated=False)
        router = Router(width=c.hidden_size, experts=c.num_experts, bias=c.router_bias)
        bank = Moe(width=c.hidden_size, expert=plain, experts=c.num_experts, top_k=1, router=router)
        ffns = [bank if has else plain for has in switch_sparse_layers(c, role, depth)]
        return stack(
            role, [t5_layer(c, role, buckets=0 if i else t5_buckets(c), ffn=ffn) for i, ffn in enumerate(ffns)]
        )

    return t5_model(c, stack_of)


def switch_sparse_layers(c: Config, role: str, depth: int) -> list[bool]:
    """Which layers have experts: with a step of n the second of each n, whatever number is asked for; see the class.

    The step is derived from the numbers of layers, unless the file states it.
    """
    number, step = c.num_sparse_encoder_layers, c.encoder_sparse_period
    if role == "decoder":
        number, step = c.num_sparse_decoder_layers, c.decoder_sparse_period
    if step is None:
        step = depth // number if number > 0 else depth
    return [step == 1 or (step > 0 and i % step == 1) for i in range(depth)]


# -- pages -------------------------------------------------------------------------------------------------------


@family("udop", unstated_depth=24, can_untie=False)
def udop(c: Config) -> Block:
    """T5 that reads words, their places on a page, and its patches (UDOP, 2212.02623; UdopForConditionalGeneration).

    The class builds patches and distances for the decoder too.
    """
    height, width = height_and_width(c, "patch_size")
    patches = PatchEmbedding(width=c.hidden_size, channels=c.num_channels, patch=(height, width))
    places = Embedding(rows=c.max_2d_position_embeddings, width=c.hidden_size, sharded=False)
    parts = dict(t5_encoder_decoder(c).items)
    inputs: dict[str, dict[str, Component]] = {
        "encoder": {"patches": patches.replace(tied_to="patches"), "places": block(x=places, y=places)},
        "decoder": {"patches": patches},
    }
    for role in inputs.keys() & parts.keys():
        parts[role] = block(**inputs[role], distances=page_distances(c), **dict(parts[role].parts()))
    return block(patches=patches, **parts)


def page_distances(c: Config) -> Block:
    """Tables of biases by distance: along the text, across the page and down it; the first may be the layers' own."""
    stated = c.list_of("relative_bias_args")
    kinds = [{"type": word} for word in PAGE_AXES] if stated is None else stated
    tables: dict[str, Component] = {}
    for i, kind in enumerate(kinds):
        c.require(kind.get("type") in PAGE_AXES, f"relative_bias_args has the unknown type {kind.get('type')!r}")
        spare = 2 if kind.get("prefix_bucket") and not kind.get("expand") else 0
        rows = c.size("relative_bias_args", kind.get("relative_attention_num_buckets", 32)) + spare
        tables[f"{kind['type']}_{i}"] = Embedding(
            rows=t5_buckets(c) if not i and c.head != "none" else rows,
            width=c.num_attention_heads,
            category="attention",
            tied_to="encoder.layers.0.attn.position_bias" if not i and c.head != "none" else None,
            sharded=False,
        )
    return block(**tables)


PAGE_AXES = ("1d", "horizontal", "vertical")


@family("pix2struct_text_model")
def pix2struct_text(c: Config) -> Block:
    """T5's decoder with equal heads; it always has its own head (Pix2StructTextModel)."""
    if c.head not in ("lm", "seq2seq_lm"):
        raise unknown_head(c)
    first, rest = t5_layer(c, "decoder", buckets=t5_buckets(c)), t5_layer(c, "decoder")
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=c.hidden_size),
        layers=first_and_rest(first, rest, c.num_hidden_layers, "decoder"),
        norm=rms(c),
        lm_head=lm_head(c, c.hidden_size, owner="embed_tokens"),
    )


@family("pix2struct", ties="above")
def pix2struct(c: Config) -> Component:
    """A ViT, and T5's decoder that looks at it (Pix2Struct, 2210.03347; Pix2StructForConditionalGeneration)."""
    if c.head != "seq2seq_lm":
        raise unknown_head(c)
    return vision_language_model(c, lambda *_: None)


# -- parts -------------------------------------------------------------------------------------------------------


def t5_encoder_decoder(c: Config) -> Block:
    """T5's encoder and decoder: only the first layer of each holds the position buckets."""
    return t5_model(
        c, lambda role, depth: first_and_rest(t5_layer(c, role, buckets=t5_buckets(c)), t5_layer(c, role), depth, role)
    )


def t5_model(c: Config, stack_of: Callable[[str, int], Stack]) -> Block:
    """One token table for encoder, decoder and head; the classes that need no decoder have none."""
    tied_to = None if c.can_untie and not c.tie_word_embeddings else "shared"
    table = Embedding(rows=c.vocab_size, width=c.hidden_size)
    shared = Embedding(rows=c.vocab_size, width=c.hidden_size, tied_to=tied_to)
    encoder = block(embed_tokens=shared, layers=stack_of("encoder", c.num_hidden_layers), norm=rms(c))
    if c.head in ("encoder", "token_classification"):
        if c.raw("is_decoder"):
            c.doubts.append(f"{c.family}: is_decoder gives {c.architecture} cross attention, which is not counted")
        head = classifier(c, transform=False) if c.head == "token_classification" else {}
        return block(shared=table, encoder=encoder, **head)
    # The class derives an unstated depth from num_layers alone, before it hears of num_hidden_layers.
    symmetric = c.num_hidden_layers if c.key("num_hidden_layers") == "num_layers" else c.unstated_depth
    depth = symmetric if c.num_decoder_layers is None else c.num_decoder_layers
    decoder = block(embed_tokens=shared, layers=stack_of("decoder", depth), norm=rms(c))
    return block(shared=table, encoder=encoder, decoder=decoder, **t5_head(c))


def t5_head(c: Config) -> dict[str, Component]:
    """The head of the classes that have a decoder."""
    match c.head:
        case "seq2seq_lm":
            if not c.tie_word_embeddings and not c.can_untie:
                c.doubts.append(
                    f"{c.family}: tie_word_embeddings is false: the head is counted as a matrix of its own, as in "
                    "published checkpoints and transformers 4; transformers 5 ties it by force and counts "
                    f"{c.vocab_size * c.hidden_size:,} fewer"
                )
            return {"lm_head": lm_head(c, c.hidden_size, owner="shared")}
        case "sequence_classification":
            return classifier(c, transform=True)
        case "question_answering":
            return classifier(c, transform=False)
        case "none":
            return {}
    raise unknown_head(c)


def t5_buckets(c: Config) -> int:
    """How many distances the learned bias tells apart."""
    return c.relative_attention_num_buckets  # type: ignore[no-any-return]  # fields are Any


def first_and_rest(first: Component, rest: Component, depth: int, role: str) -> Stack:
    """Layers of which the first is different."""
    return stack(role, LayerPattern((Run(1, first), Run(depth - 1, rest)), (0, 1)))


def t5_layer(
    c: Config,
    role: str,
    *,
    buckets: int = 0,
    window: int | None = None,
    beside: Mapping[str, Component] | None = None,
    ffn: Component | None = None,
) -> Block:
    """Attention, in a decoder cross attention, FFN; each behind its norm. `beside`: more parts of the attention."""
    cross = {"cross_norm": rms(c), "cross_attn": t5_attention(c, source="cross")} if role == "decoder" else {}
    return block(
        attn_norm=rms(c),
        **(beside or {}),
        attn=t5_attention(c, position_buckets=buckets, window=window),
        **cross,
        ffn_norm=rms(c),
        ffn=t5_ffn(c) if ffn is None else ffn,
    )


def t5_ffn(c: Config) -> Mlp:
    """A plain or gated FFN, as feed_forward_proj says."""
    gated = c.feed_forward_proj.startswith("gated-") if not c.has("is_gated_act") else c.is_gated_act
    return Mlp(width=c.hidden_size, hidden=c.d_ff, gated=gated)


def t5_attention(c: Config, **options: Any) -> Attention:
    """Multi-head attention with heads of d_kv channels, without biases."""
    return sized_attention(c.hidden_size, c.num_attention_heads, head_dim(c), **options)
