"""Reformer: hashed attention in reversible layers."""

from __future__ import annotations

from paramcalc.components import HashedAttention
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import sized_attention
from paramcalc.families.builders.decoder import layer_norm, learned_positions, pre_norm
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import num_labels, unknown_head
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("reformer")
def reformer(c: Config) -> Block:
    """Reversible layers of local and hashed attention, axial positions (ReformerModelWithLMHead)."""
    c.require(c.is_decoder or c.head != "lm", "is_decoder must be true", "a causal head needs a causal model")
    d, words = c.hidden_size, reformer_layer_types(c)
    h, d_h = c.num_attention_heads, c.attention_head_size
    hashed = HashedAttention(width=d, heads=h, head_dim=d_h, hashes=c.num_hashes)
    kinds: dict[str, Component] = {"local": sized_attention(d, h, d_h, keeps_inputs=True), "lsh": hashed}
    layers = [pre_norm(layer_norm(c), kinds[word], mlp(c, c.feed_forward_size)) for word in words]
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=d),
        positions=axial_positions(c) if c.axial_pos_embds else learned_positions(c),
        layers=stack("decoder", layers, causal=c.is_decoder),
        norm=Norm(width=2 * d, bias=True),  # over both streams of the reversible layers
        **reformer_head(c),
    )


def reformer_layer_types(c: Config) -> list[str]:
    """The word for each layer. A list of one word stands for any depth; of two, it may be longer than the model."""
    words = c.list_of("attn_layers") or []
    c.require(set(words) <= {"local", "lsh"}, f"attn_layers {words} has unknown words", "known: local, lsh")
    depth = c.num_hidden_layers or len(words)
    if len(set(words)) == 1:
        return words[:1] * depth
    c.require(depth <= len(words), f"attn_layers has {len(words)} words for {depth} layers")
    return list(words[:depth])


def axial_positions(c: Config) -> Block:
    """One table for each axis of a grid of positions; what they say is joined to the width."""
    shape, widths = c.layer_indices("axial_pos_shape") or [64, 64], c.layer_indices("axial_pos_embds_dim") or [64, 192]
    c.require(
        sum(widths) == c.hidden_size and len(widths) == len(shape),
        f"axial_pos_embds_dim {widths} does not add up to hidden_size ({c.hidden_size})",
        "one width for each axis",
    )
    return block(
        **{f"axis_{i}": Embedding(rows=n, width=w) for i, (n, w) in enumerate(zip(shape, widths, strict=True))}
    )


def reformer_head(c: Config) -> dict[str, Component]:
    """Heads on both streams; the language model's holds its bias twice."""
    d = c.hidden_size
    match c.head:
        case "lm" | "masked_lm":
            decoder = Linear(d_in=2 * d, d_out=c.vocab_size, bias=True, category="head")
            return {"lm_head": decoder, "spare_bias": Param(shape=(c.vocab_size,), category="head")}
        case "sequence_classification":
            dense = Linear(d_in=2 * d, d_out=d, bias=True, category="head")
            return {"transform": dense, "classifier": Linear(d_in=d, d_out=num_labels(c), bias=True, category="head")}
        case "question_answering":
            return {"qa_outputs": Linear(d_in=2 * d, d_out=num_labels(c), bias=True, category="head")}
        case "none":
            return {}
    raise unknown_head(c)
