"""Byte latent transformer: bytes joined to patches."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, kv_heads, sized_attention
from paramcalc.families.builders.decoder import pre_norm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear

UNKNOWN_PATCHES = (
    "how many patches a text falls into is not known; the cache is that of a patch for every byte, and without the "
)
UNKNOWN_PATCHES += "keys and values that pass between bytes and patches"


@family("blt")
def blt(c: Config) -> Block:
    """Bytes, joined to patches by a small encoder, a large model of patches, a small decoder (BltForCausalLM).

    Pagnoni et al. 2024 (2412.09871). A patcher of its own decides where a patch ends.
    """
    encoder, patches, decoder, patcher = (
        c.section(f"{part}_config") for part in ("encoder", "global", "decoder", "patcher")
    )
    groups = len(c.layer_indices("encoder_hash_byte_group_size") or range(3, 9))
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
    hidden = part.intermediate_size or symbolic("d_ff", 8 * d // 3, origin="8 d / 3, rounded down")
    layer: Block = pre_norm(rms(part), gqa(part, cache_doubt=UNKNOWN_PATCHES), glu(part, hidden))
    return layer.replace(inexact="every byte is counted as a patch of its own")


def blt_local(part: Config, role: str, *, joined_from: int) -> Block:
    """Layers over bytes, and cross attention between bytes and patches, after one layer or after each."""
    d, norm = part.hidden_size, rms(part)
    cross = sized_attention(
        d, part.num_attention_heads, equal_heads(part), kv_heads=kv_heads(part), qk_norm=norm, source="cross"
    )
    times = part.num_hidden_layers if part.cross_attn_all_layers else 1
    return block(
        patch_proj=Linear(d_in=joined_from, d_out=d * part.cross_attn_k, category="other"),
        layers=stack(role, Run(part.num_hidden_layers, blt_layer(part)), causal=True),
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
