"""Speech models over the codes of Mimi: Moshi and Kyutai's speech to text."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, head_dim, kv_heads
from paramcalc.families.builders.decoder import causal_lm, pre_norm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision_language import assemble_multimodal
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Param


@family("moshi")
def moshi(c: Config) -> Component:
    """Mimi, Llama's layer, and a decoder over the codes of one time step (Moshi, 2410.00037; MoshiForCausalLM).

    A time step has a text token and the codes of two voices.
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
    """A decoder with separate matrices for each code of a time step and shared norms (MoshiDepthDecoder)."""
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
    """The inner width of an FFN whose field is the width of gate and input together."""
    c.require(c.ffn_dim % 2 == 0, f"ffn_dim ({c.ffn_dim}) is odd", "it is the width of gate and input together")
    hidden: int = symbolic("d_ff", c.ffn_dim // 2, origin="ffn_dim / 2")
    return hidden


def code_decoder(c: Config, rows: int) -> Block:
    """Llama's layers over an embedding with `rows` rows."""
    equal_heads(c)
    layer = pre_norm(rms(c), gqa(c, window=c.sliding_window), glu(c, gated_ffn_width(c)))
    parts = dict(causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c)).items)
    return block(**parts | {"embed_tokens": Embedding(rows=rows, width=c.hidden_size)})


@family("kyutai_speech_to_text")
def kyutai_speech_to_text(c: Config) -> Component:
    """Llama over text tokens and Mimi's codes (KyutaiSpeechToTextForConditionalGeneration)."""
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    language = code_decoder(c, c.vocab_size + c.num_codebooks * c.codebook_vocab_size + 1)
    if c.head == "none":  # the codec belongs to the complete model
        c.raw("codec_config")
        return language
    return assemble_multimodal(language, codec=tower_in(c, "codec_config")[0])
