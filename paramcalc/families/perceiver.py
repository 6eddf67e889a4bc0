"""Perceiver: latents that read an input once and then attend to themselves."""

from __future__ import annotations

from paramcalc.components import Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import sized_attention
from paramcalc.families.builders.heads import num_labels, unknown_head
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("perceiver")
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
    kind, out = ("self", v) if source is None else ("cross", width)
    attn = sized_attention(
        width, heads, qk // heads, bias=True, source=kind, value_dim=v // heads, kv_width=source, out_width=out
    )
    norm = Norm(width=width, bias=True)
    ffn = Mlp(width=width, hidden=(widening or factor) * width, gated=False, bias=True)
    source_norm = None if source is None else Norm(width=source, bias=True)
    layer = block(input_norm=norm, source_norm=source_norm, attn=attn, post_norm=norm, ffn=ffn)
    return layer.replace(inexact="latents are counted as if there were one for each token")


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
            final = Linear(d_in=d, d_out=num_labels(c), bias=True, category="head")
            return {"queries": queries, "decode": decode, "classifier": final}
        case "none":
            return {}
    raise unknown_head(c)
