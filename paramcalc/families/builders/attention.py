"""Attention from the fields of a config: head counts, biases, norms, gates and windows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from paramcalc.base.symbolic import symbolic
from paramcalc.components.attention import Attention, Projections, Scores
from paramcalc.config.view import Config
from paramcalc.families.builders.layer_types import FULL, SLIDING
from paramcalc.tree.component import Component
from paramcalc.tree.containers import block
from paramcalc.tree.leaves import Linear, Norm
from paramcalc.tree.weights import by_heads

A = TypeVar("A", bound=Component)


def head_dim(c: Config) -> int:
    """Channels per head: the field, or d / h, which must divide."""
    return c.head_dim or equal_heads(c)


def equal_heads(c: Config) -> int:
    """Channels per head if the width is always cut into equal heads: d / h, in some classes rounded down."""
    d, h = c.hidden_size, c.num_attention_heads
    if d % h and h < d and uneven_heads_rule(c) == "floor":
        return symbolic("d_h", d // h, origin="d / h, rounded down")
    if d % h:
        raise c.error(
            "hidden_size",
            f"({d}) is not divisible by {c.key('num_attention_heads')} ({h})",
            "the width is cut into equal heads",
        )
    return symbolic("d_h", d // h, origin="d / h")


def uneven_heads_rule(c: Config) -> str:
    """The class's rule for heads that do not divide the width: "floor", "whole", or an error ("")."""
    return c.uneven_heads if c.declares("uneven_heads") else ""


def head_layout(c: Config, width: int | None = None) -> tuple[int, int]:
    """Heads and channels per head: d / h, which must divide, except in classes whose projections keep the width.

    The reference class accepts such a config but cannot run it; a single head of the full width gives the same shapes.
    """
    d, h = c.hidden_size if width is None else width, c.num_attention_heads
    if uneven_heads_rule(c) != "whole":
        return h, equal_heads(c)
    if d % h == 0:
        return h, symbolic("d_h", d // h, origin="d / h")
    key = f"{c.path}{c.key('num_attention_heads')}"
    c.notes.append(f"{c.family}: {key} ({h}) does not divide the width ({d}): the class builds that and cannot run it")
    return 1, d


def kv_heads(c: Config) -> int:
    """Key/value heads: the field, or the number of query heads, which they must divide."""
    h, g = c.num_attention_heads, c.num_key_value_heads or c.num_attention_heads
    if h % g:
        raise c.error(
            "num_attention_heads",
            f"({h}) is not divisible by {c.key('num_key_value_heads')} ({g})",
            "query heads share key/value heads in equal groups",
        )
    return g  # type: ignore[no-any-return]  # fields are Any


def head_gate(width: int, heads: int, channels: int | None = None, *, bias: bool = False) -> Linear:
    """A gate on the outputs of the heads: one value for each head, or for each of its channels; divided by heads."""
    rows = heads if channels is None else heads * channels
    return Linear(d_in=width, d_out=rows, bias=bias, split=by_heads("column", heads))


def gated(gate: Component | None, inner: Component | None) -> Component | None:
    """The parts inside attention: a gate alone, or a block in which the gate follows the others."""
    if gate is None or inner is None:
        return gate if inner is None else inner
    return block(**inner.parts(), **(gate.parts() or {"gate_proj": gate}))


def sized_attention(
    width: int,
    heads: int,
    head_dim: int,
    *,
    kv_heads: int | None = None,
    bias: bool = False,
    qkv_bias: bool | None = None,
    qk_norm: Norm | None = None,
    window: int | None = None,
    gate: Component | None = None,
    inner: Component | None = None,
    **options: Any,
) -> Attention:
    """Attention of these sizes; by default with as many key/value heads as query heads.

    `bias`: on all projections, `qkv_bias` on all but the output; `qk_norm`: on each query and key head; `gate`: on the
    heads' outputs, see `head_gate`; `inner`: other parts inside attention. `options`: fields of `Attention` and of its
    value objects (`sinks=True`, `source="cross"`, `k_bias=False`).
    """
    fields: dict[str, Any] = dict(width=width, heads=heads, kv_heads=kv_heads or heads, head_dim=head_dim)
    fields["projections"] = projection_biases(bias if qkv_bias is None else qkv_bias, bias)
    if window is not None:
        fields["scores"] = Scores(window=window)
    if qk_norm is not None:
        fields |= dict(q_norm=qk_norm, k_norm=qk_norm)
    if gate is not None or inner is not None:
        fields["inner"] = gated(gate, inner)
    return Attention(**fields | grouped_options(Attention, fields, options) if options else fields)


@cache
def projection_biases(qkv: bool, out: bool) -> Projections:
    """Projections with or without biases on q, k and v, and on the output."""
    return Projections(q_bias=qkv, k_bias=qkv, v_bias=qkv, out_bias=out)


def with_options(attn: A, *, gate: Component | None = None, **options: Any) -> A:
    """The same attention with other options, named as in `sized_attention`."""
    stated = attn.values()
    changes = grouped_options(type(attn), stated, options)
    if gate is not None:
        changes["inner"] = gated(gate, changes.get("inner", stated["inner"]))
    return attn.replace(**changes)


def grouped_options(kind: type[Component], stated: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as fields of a component; a field of a value object changes that object among the `stated` fields."""
    slots, fields, nested = option_slots(kind), dict[str, Any](), dict[str, dict[str, Any]]()
    for name, value in options.items():
        if name in slots:
            nested.setdefault(slots[name], {})[name] = value
        else:
            fields[name] = value
    for slot, changes in nested.items():
        fields[slot] = stated.get(slot, kind.fields[slot])._replace(**changes)
    return fields


@cache
def option_slots(kind: type[Component]) -> dict[str, str]:
    """The names of the value objects' fields, each with the component's field that holds its object."""
    return {name: slot for slot, default in kind.fields.items() for name in getattr(default, "_fields", ())}


def gqa(c: Config, *, d_h: int | None = None, **options: Any) -> Attention:
    """Grouped-query attention from hidden_size, num_attention_heads, num_key_value_heads and head_dim."""
    kv = kv_heads(c)
    return sized_attention(c.hidden_size, c.num_attention_heads, d_h or head_dim(c), kv_heads=kv, **options)


def qk_norm_per_head(c: Config, **options: Any) -> Attention:
    """Grouped-query attention with an RMS norm on each query and key head."""
    return gqa(c, qk_norm=Norm(width=head_dim(c)), **options)


def qk_norm_all_heads(c: Config, **options: Any) -> Attention:
    """Grouped-query attention with an RMS norm over all query heads at once, and over all key heads (OLMo 2)."""
    q_norm, k_norm = (Norm(width=heads * head_dim(c)) for heads in (c.num_attention_heads, kv_heads(c)))
    return gqa(c, q_norm=q_norm, k_norm=k_norm, **options)


def qk_norm_separate(c: Config, **options: Any) -> Attention:
    """Grouped-query attention with separate norm weights for each query and key head (Cohere, StableLM)."""
    q_norm, k_norm = (Norm(width=head_dim(c), count=heads) for heads in (c.num_attention_heads, kv_heads(c)))
    return gqa(c, q_norm=q_norm, k_norm=k_norm, **options)


def mha(c: Config, *, bias: bool = True, kv: int | None = None, **options: Any) -> Attention:
    """Attention with biases whose heads cut the width into equal parts (GPT-2)."""
    heads, channels = head_layout(c)
    return sized_attention(c.hidden_size, heads, channels, kv_heads=kv, bias=bias, **options)


def sliding(attn: Attention, window: int | None) -> dict[str, Component]:
    """Full and sliding attention, by their names in `layer_types`."""
    return {FULL: attn, SLIDING: attn.with_window(window)}


def qk_norm_windowed(c: Config, **options: Any) -> dict[str, Component]:
    """Full and sliding attention with norms on each query and key head, by their names in `layer_types`."""
    return sliding(qk_norm_per_head(c, bias=c.attention_bias, **options), c.sliding_window)
