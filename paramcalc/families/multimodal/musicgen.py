"""MusicGen: a text encoder, an audio codec, and a decoder of its codes."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import with_options
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder_decoder import BartLayout, bart_layer
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.towers import tower_in
from paramcalc.families.builders.vision_language import assemble_multimodal
from paramcalc.families.registry import family, get_family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, Stack, block, stack, stacks
from paramcalc.tree.leaves import Embedding, Linear, Norm

TEXT_ENCODERS = {"t5": "encoder", "mt5": "encoder", "umt5": "encoder", "bert": "none", "roberta": "none"}


def as_tower(part: Component, converted: dict[int, Component] | None = None) -> Component:
    """The same model as a tower, which is counted as a whole, norms included."""
    converted = {} if converted is None else converted
    if isinstance(part, Norm):
        return part.replace(category=None)
    if isinstance(part, Block):
        return part.replace(items={name: as_tower(one, converted) for name, one in part.items.items()})
    if isinstance(part, Stack):
        for run in part.runs:  # equal layers stay one object
            if id(run.layer) not in converted:
                converted[id(run.layer)] = as_tower(run.layer, converted)
        return part.replace(runs=tuple(run._replace(layer=converted[id(run.layer)]) for run in part.runs))
    return part


@family("musicgen", "musicgen_melody")
def musicgen(c: Config) -> Component:
    """A text encoder, EnCodec, and a decoder of codes (MusicGen, 2306.05284; Musicgen...Generation)."""
    kind = c.section_kind("text_encoder")
    c.require(
        kind in TEXT_ENCODERS,
        f"text_encoder is a {kind}, which cannot be counted",
        f"known: {', '.join(TEXT_ENCODERS)}",
    )
    text = c.section("text_encoder", get_family(kind).schema, family=kind, head=TEXT_ENCODERS[kind])
    text_encoder = Block(category="other", items=dict(as_tower(get_family(kind).recipe(text)).parts()))
    codec, _ = tower_in(c, "audio_encoder")
    own = f"{c.family}_decoder"
    view = c.section("decoder", get_family(own).schema, family=own)
    d, melody = view.hidden_size, c.family == "musicgen_melody"
    bridged = text.hidden_size != d and (melody or view.raw("cross_attention_hidden_size") is None)
    projects_melody = melody and c.num_chroma != d
    projector = block(
        "projector",
        proj=Linear(d_in=text.hidden_size, d_out=d, bias=True) if bridged else None,
        melody_proj=Linear(d_in=c.num_chroma, d_out=d, bias=True) if projects_melody else None,
    )
    language = get_family(own).recipe(view)
    if melody:
        language = with_melody_prefix(language, c.chroma_length)
    return assemble_multimodal(
        language,
        text_encoder=text_encoder,
        audio_encoder=codec,
        projector=projector if bridged or projects_melody else None,
    )


UNCOUNTED_PREFIX = "text and melody pass through the layers before the tokens; that is not counted"


def with_melody_prefix(decoder: Component, melody: int) -> Component:
    """The decoder with a melody of this many frames, and a text, before its tokens: it caches their keys too."""
    parts = decoder.parts()
    one = stacks(decoder)[0].runs[0]
    items = one.layer.parts()
    attn = with_options(items["attn"], prefix=melody, source="prepended")
    layer = Block(items={**items, "attn": attn}, inexact=UNCOUNTED_PREFIX)
    return block(**{**parts, "layers": stack("decoder", Run(one.repeat, layer))})


@family("musicgen_decoder", has_cross_attention=True)
@family("musicgen_melody_decoder", has_cross_attention=False)
def musicgen_decoder(c: Config) -> Block:
    """Pre-norm decoder over several codebooks, each with a token table and a head (MusicgenForCausalLM)."""
    if c.head not in ("lm", "seq2seq_lm", "none"):
        raise unknown_head(c)
    form = BartLayout(pre_norm=True, bias=False, ffn_bias=False, cross=c.has_cross_attention)
    d, n = c.hidden_size, c.num_codebooks
    return block(
        embed_tokens=Embedding(rows=n * (c.vocab_size + 1), width=d),
        layers=stack("decoder", Run(c.decoder_layers, bart_layer(c, "decoder", form))),
        norm=layer_norm(c),
        lm_heads=Linear(d_in=d, d_out=n * c.vocab_size, category="head") if c.head != "none" else None,
    )
