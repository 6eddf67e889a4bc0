"""Attention from the fields of a config: grouped or not, with biases, norms and windows."""

from __future__ import annotations

from typing import Any

from paramcalc.components import Attention
from paramcalc.config import Config
from paramcalc.dims import named
from paramcalc.families.patterns import FULL, SLIDING
from paramcalc.spec import Component, Norm


def head_dim(c: Config) -> int:
    """Channels per head: stated, or d / h, which must divide."""
    return c.head_dim or equal_heads(c)


def equal_heads(c: Config) -> int:
    """Channels per head where the family always cuts the width into equal heads: d / h."""
    d, h = c.hidden_size, c.num_attention_heads
    if d % h:
        raise c.error(
            "hidden_size",
            f"({d}) is not divisible by {c.key('num_attention_heads')} ({h})",
            "the width is cut into equal heads",
        )
    return named("d_h", d // h, origin="d / h")


def kv_heads(c: Config) -> int:
    """Key/value heads: stated, or as many as query heads; must divide them."""
    h, g = c.num_attention_heads, c.num_key_value_heads or c.num_attention_heads
    if h % g:
        raise c.error(
            "num_attention_heads",
            f"({h}) is not divisible by {c.key('num_key_value_heads')} ({g})",
            "query heads share key/value heads in equal groups",
        )
    return g  # type: ignore[no-any-return]


def gqa(
    c: Config,
    *,
    bias: bool = False,
    qkv_bias: bool = False,
    qk_norm: Norm | None = None,
    d_h: int | None = None,
    **others: Any,
) -> Attention:
    """Grouped-query attention from hidden_size, num_attention_heads, num_key_value_heads and head_dim.

    `bias`: on all projections; `qkv_bias`: on all but the last; `qk_norm`: of each query and key head. `others` are
    what else Attention has: a window, sinks, norms that differ.
    """
    many = bias or qkv_bias
    fields: dict[str, Any] = dict(q_bias=many, k_bias=many, v_bias=many, out_bias=bias, q_norm=qk_norm, k_norm=qk_norm)
    return Attention(
        width=c.hidden_size,
        heads=c.num_attention_heads,
        kv_heads=kv_heads(c),
        head_dim=d_h or head_dim(c),
        **fields | others,
    )


def normed(c: Config, **options: Any) -> Attention:
    """Grouped-query attention with an RMS norm on each query and key head."""
    return gqa(c, qk_norm=Norm(width=head_dim(c)), **options)


def normed_at_once(c: Config, **options: Any) -> Attention:
    """Grouped-query attention with an RMS norm over all query heads at once, and over all key heads (OLMo 2)."""
    q_norm, k_norm = (Norm(width=heads * head_dim(c)) for heads in (c.num_attention_heads, kv_heads(c)))
    return gqa(c, q_norm=q_norm, k_norm=k_norm, **options)


def normed_apart(c: Config, **options: Any) -> Attention:
    """Grouped-query attention with a norm of its own for each query and key head (Cohere, StableLM)."""
    q_norm, k_norm = (Norm(width=head_dim(c), count=heads) for heads in (c.num_attention_heads, kv_heads(c)))
    return gqa(c, q_norm=q_norm, k_norm=k_norm, **options)


def mha(
    c: Config, *, bias: bool = True, qkv_bias: bool | None = None, kv: int | None = None, **others: Any
) -> Attention:
    """Attention whose heads cut the width into equal parts (GPT-2 and its kin); as many key/value heads unless `kv`.

    `bias`: on all projections, unless `qkv_bias` says otherwise of all but the last; `others` as in gqa.
    """
    h, many = c.num_attention_heads, bias if qkv_bias is None else qkv_bias
    fields: dict[str, Any] = dict(q_bias=many, k_bias=many, v_bias=many, out_bias=bias)
    return Attention(width=c.hidden_size, heads=h, kv_heads=kv or h, head_dim=equal_heads(c), **fields | others)


def biased(attn: Attention) -> Attention:
    """The same attention with a bias on each of its projections."""
    with_biases: Attention = attn.but(q_bias=True, k_bias=True, v_bias=True, out_bias=True)
    return with_biases


def sliding(attn: Attention, window: int | None) -> dict[str, Component]:
    """An attention that sees everything, and one that sees a window, under the words of `layer_types`."""
    return {FULL: attn, SLIDING: attn.but(window=window)}
