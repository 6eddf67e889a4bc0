"""Language models that read or write the codes of a codec: MusicGen, Moshi, Kyutai's speech to text."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.schema import ConfigSchema
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, head_dim, kv_heads, with_options
from paramcalc.families.builders.decoder import causal_lm, pre_norm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision_language import assemble_multimodal
from paramcalc.families.registry import family, get_family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, Stack, block, stack, stacks
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param

# -- MusicGen ----------------------------------------------------------------------------------------------------

TEXT_ENCODERS = {"t5": "encoder", "mt5": "encoder", "umt5": "encoder", "bert": "none", "roberta": "none"}


def as_tower(part: Component, seen: dict[int, Component] | None = None) -> Component:
    """The same model as a tower, which is counted as a whole: its norms too."""
    seen = {} if seen is None else seen
    if isinstance(part, Norm):
        return part.replace(category=None)
    if isinstance(part, Block):
        return part.replace(items={name: as_tower(one, seen) for name, one in part.items.items()})
    if isinstance(part, Stack):
        for run in part.runs:  # equal layers stay one
            if id(run.layer) not in seen:
                seen[id(run.layer)] = as_tower(run.layer, seen)
        return part.replace(runs=tuple(run._replace(layer=seen[id(run.layer)]) for run in part.runs))
    return part


@family("musicgen", "musicgen_melody")
def musicgen(c: Config) -> Component:
    """A reader of the description, EnCodec, and a decoder of codes (MusicGen, 2306.05284; Musicgen...Generation)."""
    kind = c.section("text_encoder", ConfigSchema({})).raw("model_type") or c.section_schema("text_encoder").kind
    c.require(
        kind in TEXT_ENCODERS,
        f"text_encoder is a {kind}, which cannot be counted",
        f"known: {', '.join(TEXT_ENCODERS)}",
    )
    text = c.section("text_encoder", get_family(kind).schema, family=kind, head=TEXT_ENCODERS[kind])
    reads = Block(category="other", items=dict(as_tower(get_family(kind).recipe(text)).parts()))
    codec, _ = tower_in(c, "audio_encoder")
    own = f"{c.family}_decoder"
    view = c.section("decoder", get_family(own).schema, family=own)
    d, melody = view.hidden_size, c.family == "musicgen_melody"
    bridged = text.hidden_size != d and (melody or view.raw("cross_attention_hidden_size") is None)
    tunes = melody and c.num_chroma != d
    projector = block(
        "projector",
        proj=Linear(d_in=text.hidden_size, d_out=d, bias=True) if bridged else None,
        melody_proj=Linear(d_in=c.num_chroma, d_out=d, bias=True) if tunes else None,
    )
    language = get_family(own).recipe(view)
    if melody:
        language = with_melody_prefix(language, c.chroma_length)
    return assemble_multimodal(
        language, text_encoder=reads, audio_encoder=codec, projector=projector if bridged or tunes else None
    )


UNCOUNTED_PREFIX = "text and melody pass through the layers before the tokens; that is not counted"


def with_melody_prefix(decoder: Component, melody: int) -> Component:
    """The decoder when a melody of so many frames, and a text, stand before the tokens: it keeps their keys too."""
    parts = decoder.parts()
    one = stacks(decoder)[0].runs[0]
    items = one.layer.parts()
    attn = with_options(items["attn"], prefix=melody, source="prepended")
    layer = Block(items={**items, "attn": attn}, inexact=UNCOUNTED_PREFIX)
    return block(**{**parts, "layers": stack("decoder", Run(one.repeat, layer))})


# -- Moshi -------------------------------------------------------------------------------------------------------


@family("moshi")
def moshi(c: Config) -> Component:
    """Mimi, Llama's layer, and a decoder over the codes of one moment (Moshi, 2410.00037; MoshiForCausalLM).

    A moment has a token of text and the codes of two voices.
    """
    sections = ("audio_encoder_config", "depth_decoder_config")
    stated = {name: c.raw(name) is not None for name in sections}
    language = code_decoder(c, c.vocab_size + 1)
    if c.head != "seq2seq_lm":
        return language
    codec, v = tower_in(c, sections[0])
    rows = c.audio_vocab_size or (v.codebook_size if stated[sections[0]] else c.required("audio_vocab_size"))
    n, d = c.num_codebooks, c.hidden_size
    c.require(n <= v.num_quantizers, f"num_codebooks ({n}) is above the codec's {v.num_quantizers}")
    shared = dict(audio_vocab_size=rows, input_size=d, vocab_size=c.vocab_size, num_codebooks=n)
    depth, _ = tower_in(c, sections[1], **(shared if stated[sections[1]] else {}))
    voices = Embedding(rows=2 * n * (rows + 1), width=d)
    return assemble_multimodal(language, audio_encoder=codec, embed_codes=voices, depth_decoder=depth)


@tower("moshi_depth")
def moshi_depth(q: Config) -> Block:
    """A decoder whose matrices are another for each code of a moment; norms are shared (MoshiDepthDecoder)."""
    d, n, rows, hidden = q.hidden_size, q.num_codebooks, q.audio_vocab_size, gated_ffn_width(q)
    equal_heads(q)

    def each(d_in: int, d_out: int) -> Param:
        return Param(shape=(n, d_out, d_in))

    wide, narrow, norm = q.num_attention_heads * head_dim(q), kv_heads(q) * head_dim(q), rms(q).replace(category=None)
    attn = block(q_proj=each(d, wide), k_proj=each(d, narrow), v_proj=each(d, narrow), o_proj=each(wide, d))
    layer = pre_norm(norm, attn, block(gate_up_proj=each(d, 2 * hidden), down_proj=each(hidden, d)))
    return block(
        "other",
        embed_tokens=Embedding(rows=q.vocab_size + 1, width=d),
        embed_codes=Embedding(rows=(n - 1) * (rows + 1), width=d),
        proj=each(q.input_size, d),
        layers=stack("depth decoder", Run(q.num_hidden_layers, layer)),
        heads=each(d, rows),
    )


def gated_ffn_width(c: Config) -> int:
    """The inner width of an FFN whose field is that of gate and input together."""
    c.require(c.ffn_dim % 2 == 0, f"ffn_dim ({c.ffn_dim}) is odd", "it is the width of gate and input together")
    hidden: int = symbolic("d_ff", c.ffn_dim // 2, origin="ffn_dim / 2")
    return hidden


def code_decoder(c: Config, rows: int) -> Block:
    """Llama's layers over an embedding of so many rows."""
    equal_heads(c)
    layer = pre_norm(rms(c), gqa(c, window=c.sliding_window), glu(c, gated_ffn_width(c)))
    parts = dict(causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c)).items)
    return block(**parts | {"embed_tokens": Embedding(rows=rows, width=c.hidden_size)})


@family("kyutai_speech_to_text")
def kyutai_speech_to_text(c: Config) -> Component:
    """Llama over tokens of text and of Mimi's codes (KyutaiSpeechToTextForConditionalGeneration)."""
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    language = code_decoder(c, c.vocab_size + c.num_codebooks * c.codebook_vocab_size + 1)
    if c.head == "none":  # the codec is the whole's
        c.raw("codec_config")
        return language
    return assemble_multimodal(language, codec=tower_in(c, "codec_config")[0])
