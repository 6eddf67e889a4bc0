"""T5 and its kin: pre-norm encoder-decoders with RMS norms, relative position buckets and heads of any width."""

from __future__ import annotations

from paramcalc.components import Mlp, Moe, Router
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import rms
from paramcalc.families.builders.heads import lm_head, unknown_head
from paramcalc.families.builders.t5 import first_and_rest, t5_buckets, t5_encoder_decoder, t5_layer, t5_model
from paramcalc.families.builders.vision import height_and_width
from paramcalc.families.builders.vision_language import vision_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, Stack, block, stack
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
