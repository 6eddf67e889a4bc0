"""Parts of encoder-decoders with BART's layout: layers with LayerNorms, stacks, and whole models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Attention
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import sized_attention
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import classifier, lm_head, unknown_head
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Layers, Run, block, stack
from paramcalc.tree.leaves import Conv1d, Embedding, Linear, Norm, Param, Product
from paramcalc.tree.ops import PerWord
from paramcalc.tree.weights import Category


class BartLayout(NamedTuple):
    """The differences between BART and its relatives."""

    spare_rows: int | None = 2  # position rows beyond max_position_embeddings; None: positions are not stored
    embed_norm: bool = True
    pre_norm: bool = False  # norms before each sublayer, and one after the last layer
    bias: bool = True  # on q, k, v and o
    key_bias: bool = True
    ffn_bias: bool = True
    cross: bool = True  # the decoder attends to the encoder
    logits_bias: bool = True  # a persistent buffer next to the head
    ties_decoder: bool = True  # the decoder-only class can tie its head
    unstated_labels: int = 2  # classes of a classifier if the file states none
    norms: Category | None = "norm"  # category of the norms; None: that of the tower around them


M2M_LAYOUT = BartLayout(spare_rows=None, embed_norm=False, pre_norm=True, logits_bias=False)


# -- parts -------------------------------------------------------------------------------------------------------


def side_field(c: Config, role: str, field: str) -> int:
    """A field of one side, whose name begins with that of the side: layers, attention_heads, ffn_dim."""
    return getattr(c, f"{role}_{field}")  # type: ignore[no-any-return]  # fields are Any


def norm_of(c: Config, form: BartLayout) -> Norm:
    """LayerNorm over the width."""
    return Norm(width=c.hidden_size, bias=True, category=form.norms)


def bart_attention(c: Config, role: str, form: BartLayout, **options: Any) -> Attention:
    """Multi-head attention whose heads cut the width into equal parts."""
    d, heads = c.hidden_size, side_field(c, role, "attention_heads")
    if d % heads:
        c.require(False, f"{c.key('hidden_size')} ({d}) is not divisible by the {role}'s heads ({heads})")
    d_h = symbolic("d_h", d // heads, origin="d / h")
    return sized_attention(d, heads, d_h, bias=form.bias, k_bias=form.bias and form.key_bias, **options)


def bart_layer(
    c: Config,
    role: str,
    form: BartLayout,
    *,
    attn: Component | None = None,
    ffn: Component | None = None,
    kv_width: int | None = None,
) -> Block:
    """Attention, cross attention in a decoder, FFN; a norm before or after each."""
    steps: dict[str, Component] = {"attn": bart_attention(c, role, form) if attn is None else attn}
    if role.endswith("decoder") and form.cross:
        steps["cross_attn"] = bart_attention(c, role, form, source="cross", kv_width=kv_width)
    steps["ffn"] = mlp(c, side_field(c, role, "ffn_dim"), bias=form.ffn_bias) if ffn is None else ffn
    norm, parts = norm_of(c, form), dict[str, Component]()
    for name, step in steps.items():
        normed: dict[str, Component] = {f"{name}_norm": norm}
        parts |= normed | {name: step} if form.pre_norm else {name: step} | normed
    return block(**parts)


def bart_stack(
    c: Config,
    role: str,
    form: BartLayout,
    *,
    layers: Layers | Component | None = None,
    rows: int | None = None,
    positions: int | None = None,
    owner: str | None = "shared",
    before: Mapping[str, Component] | None = None,
) -> Block:
    """One stack with its token table (`rows` long, or tied to `owner`), positions and norms.

    `layers`: all of them, or one that is repeated; `positions`: rows, if not max_position_embeddings.
    """
    d, norm = c.hidden_size, norm_of(c, form)
    tied_to = owner if c.tie_word_embeddings and c.head != "lm" else None
    stored = None if form.spare_rows is None else positions or c.max_position_embeddings + form.spare_rows
    one = bart_layer(c, role, form) if layers is None else layers
    return block(
        embed_tokens=Embedding(rows=rows or c.vocab_size, width=d, tied_to=tied_to),
        positions=None if stored is None else Embedding(rows=stored, width=d, sharded=False),
        embed_norm=norm if form.embed_norm else None,
        **(before or {}),
        layers=stack(role, Run(side_field(c, role, "layers"), one) if isinstance(one, Component) else one),
        norm=norm if form.pre_norm else None,
    )


def bart_head(c: Config, form: BartLayout, *, owner: str = "shared", rows: int | None = None) -> dict[str, Component]:
    """The LM head, with a persistent bias buffer in some classes, or a classifier."""
    d: int = c.hidden_size
    rows = rows or c.vocab_size
    match c.head:
        case "seq2seq_lm":
            parts: dict[str, Component] = {"lm_head": lm_head(c, d, owner=owner, rows=rows)}
            if form.logits_bias:
                parts["final_logits_bias"] = Param(shape=(1, rows), buffer=True, category="head")
            return parts
        case "sequence_classification":
            return classifier(c, transform=True, unstated_labels=form.unstated_labels)
        case "question_answering":  # for which the class sets num_labels to 2
            return {"qa_outputs": Linear(d_in=d, d_out=2, bias=True, category="head")}
        case "none":
            return {}
    raise unknown_head(c)


def encoder_decoder(c: Config, form: BartLayout, encoder: Component, decoder: Component) -> Block:
    """Encoder and decoder with a shared token table and a head, or the decoder alone with its head."""
    if c.head == "lm":
        alone = lm_head(c, c.hidden_size, owner="decoder.embed_tokens")
        return block(decoder=decoder, lm_head=alone if form.ties_decoder else alone.replace(tied_to=None))
    shared = Embedding(rows=c.vocab_size, width=c.hidden_size)
    return block(shared=shared, encoder=encoder, decoder=decoder, **bart_head(c, form))


def bart_model(c: Config, form: BartLayout) -> Block:
    """A model that its layout `form` describes completely."""
    return encoder_decoder(c, form, bart_stack(c, "encoder", form), bart_stack(c, "decoder", form))


def spectrogram_encoder(c: Config, form: BartLayout, *, role: str = "encoder") -> Block:
    """Two convolutions over mel channels, positions, layers, a norm (Whisper)."""
    d, bins = c.hidden_size, c.num_mel_bins
    per: PerWord = "read" if role == "encoder" else "tower"
    return block(
        conv1=Conv1d(channels=d, kernel=3, per_group=bins, category="embedding", per=per),
        every_second=Product(flops=2 * d * bins * 3, per=per, term="convolution"),  # frames that conv2 merges
        conv2=Conv1d(channels=d, kernel=3, per_group=d, category="embedding", per=per),
        positions=Embedding(rows=c.max_source_positions, width=d),
        layers=stack(role, Run(c.encoder_layers, bart_layer(c, "encoder", form))),
        norm=norm_of(c, form),
    )
