"""Attention with norms on queries and keys."""

from __future__ import annotations

from paramcalc.components import Attention
from paramcalc.config import Config
from paramcalc.families.skeletons import gqa, head_dim, kv_heads
from paramcalc.spec import Component, Norm


def normed(
    c: Config,
    *,
    bias: bool = False,
    window: int | None = None,
    inner: Component | None = None,
    indexer: Component | None = None,
) -> Attention:
    """Grouped-query attention with an RMS norm on each query and key head."""
    norm = Norm(width=head_dim(c))
    return gqa(c, qkv_bias=bias, out_bias=bias, q_norm=norm, k_norm=norm, window=window, inner=inner, indexer=indexer)


def normed_at_once(c: Config, *, bias: bool = False, window: int | None = None) -> Attention:
    """Grouped-query attention with an RMS norm over all query heads at once, and over all key heads (OLMo 2)."""
    d_h = head_dim(c)
    q_norm, k_norm = Norm(width=c.num_attention_heads * d_h), Norm(width=kv_heads(c) * d_h)
    return gqa(c, qkv_bias=bias, out_bias=bias, q_norm=q_norm, k_norm=k_norm, window=window)
