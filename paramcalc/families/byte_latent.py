"""Byte latent transformer: bytes joined to patches."""

from __future__ import annotations

from paramcalc.components import Attention
from paramcalc.config import Config, Reading
from paramcalc.dims import named
from paramcalc.families.registry import family
from paramcalc.families.skeletons import equal_heads, glu, gqa, kv_heads, pre_norm, rms
from paramcalc.spec import Block, Embedding, Linear, Run, block, stack

BLT_PART = dict(hidden_size=1024, intermediate_size=None) | dict(
    num_hidden_layers=1, num_attention_heads=16, num_key_value_heads=None
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
