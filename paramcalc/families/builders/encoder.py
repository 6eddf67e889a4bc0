"""Parts of encoders: their tables, their layer, and whole models."""

from __future__ import annotations

from collections.abc import Mapping

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha, with_options
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.ffn import mlp
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Layers, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm

CLASSIFIED = ("sequence_classification", "multiple_choice")


def embeddings(
    c: Config, width: int, *, rows: int | None = None, types: bool = True, norm: bool = True
) -> dict[str, Component]:
    """Token, position and segment tables of one width, summed and normalised; no positions if `rows` is 0."""
    tables: dict[str, Component] = {"embed_tokens": Embedding(rows=c.vocab_size, width=width)}
    if rows != 0:
        tables["positions"] = Embedding(rows=rows or c.max_position_embeddings, width=width)
    if types and c.type_vocab_size:
        tables["token_types"] = Embedding(rows=c.type_vocab_size, width=width)
    return tables | ({"embed_norm": Norm(width=width, bias=True)} if norm else {})


def projected(c: Config, width: int, *, bias: bool = True) -> dict[str, Component]:
    """A projection from the width of the embeddings to the width of the layers."""
    return {"embed_proj": Linear(d_in=width, d_out=c.hidden_size, bias=bias, category="embedding")}


def narrow_embeddings(c: Config, width: int, *, rows: int | None = None) -> dict[str, Component]:
    """Embeddings of a width of their own, projected to the width of the layers if the two differ."""
    return embeddings(c, width, rows=rows) | (projected(c, width) if width != c.hidden_size else {})


def encoder_layer(
    c: Config, *, attn: Component | None = None, ffn: Component | None = None, norm_first: bool = False
) -> Block:
    """Attention, norm, FFN, norm (Vaswani et al. 2017), or norms first; cross attention if the config asks for it."""
    mixer = mha(c) if attn is None else attn
    steps: dict[str, Component] = {"attn": mixer}
    if c.add_cross_attention:
        c.require(c.is_decoder, "add_cross_attention needs is_decoder", "set is_decoder to true")
        steps["cross_attn"] = with_options(mixer, source="cross")
    steps["ffn"] = mlp(c, c.intermediate_size) if ffn is None else ffn
    parts: dict[str, Component] = {}
    for name, step in steps.items():
        norm: dict[str, Component] = {f"{name}_norm": layer_norm(c)}
        parts |= norm | {name: step} if norm_first else {name: step} | norm
    return block(**parts)


def encoder(
    c: Config,
    before: Mapping[str, Component],
    layers: Component | Layers,
    heads: Mapping[str, Component],
    **after: Component,
) -> Block:
    """Embeddings, layers (one for all, or a list), optional parts `after` them, and heads."""
    equal = Run(c.num_hidden_layers, layers) if isinstance(layers, Component) else layers
    # A class that can be a decoder declares the field; with other heads than these its attention is bidirectional.
    causal = c.declares("is_decoder") and c.is_decoder and c.head in ("lm", "none")
    return block(**before, layers=stack("encoder", equal, causal=causal), **after, **heads)
