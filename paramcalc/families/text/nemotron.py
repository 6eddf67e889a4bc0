"""Nemotron, and Nemotron-NAS with layers from an architecture search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Attention, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, mha
from paramcalc.families.builders.decoder import causal_lm, decoder, layer_norm, rms
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear


@family("nemotron", "jais2")
def nemotron(c: Config) -> Block:
    """Llama with LayerNorms and a plain FFN (NemotronForCausalLM)."""
    ffn = mlp(c, c.intermediate_size, bias=c.mlp_bias)
    return decoder(c, gqa(c, bias=c.attention_bias), ffn, norm=layer_norm(c))


# -- Nemotron-NAS ----------------------------------------------------------------------------------------------------


# Keys per block that the recipe reads or that only change the cache. Any other key with a value is a doubt.
NAS_KEYS = {
    "attention": {"no_op", "replace_with_linear", "n_heads_in_group", "window_length"}
    | {"num_sink_tokens", "unshifted_sink", "use_prefill_window_in_sink_attention"},
    "ffn": {"no_op", "replace_with_linear", "ffn_mult", "intermediate_size", "hidden_act"},
}


@family("nemotron-nas")
def nemotron_nas(c: Config) -> Block:
    """Llama with searched layers: head counts, FFN widths, a single matrix or no sublayer (DeciLMForCausalLM).

    Bercovich et al. 2024 (2411.19146). An absent sublayer has no norm either.
    """
    blocks = c.per_layer("block_configs")
    if blocks is None:
        raise c.missing("block_configs")
    return causal_lm(c, [nas_layer(c, number, described) for number, described in enumerate(blocks)], norm=rms(c))


def nas_layer(c: Config, number: int, described: Any) -> Block:
    """One layer as block_configs describes it."""
    halves = ("attention", "ffn")
    complete = isinstance(described, Mapping) and all(isinstance(described.get(half), Mapping) for half in halves)
    c.require(complete, f"block_configs[{number}] must have a mapping for attention and one for ffn")
    return block(
        **nas_part(c, "attention", described["attention"], nas_attention),
        **nas_part(c, "ffn", described["ffn"], nas_ffn),
    )


def nas_part(
    c: Config,
    category: Literal["attention", "ffn"],
    stated: Mapping[str, Any],
    build: Callable[[Config, Mapping[str, Any]], Component],
) -> dict[str, Component]:
    """A norm and a sublayer: nothing at all, one square matrix, or the sublayer itself."""
    others = sorted(key for key, value in stated.items() if value and key not in NAS_KEYS[category])
    c.doubts.extend(f"nemotron-nas: key 'block_configs.{category}.{key}' was not used" for key in others)
    if stated.get("no_op"):
        return {}
    square = Linear(d_in=c.hidden_size, d_out=c.hidden_size, category=category)
    return {f"{category}_norm": rms(c), category: square if stated.get("replace_with_linear") else build(c, stated)}


def nas_attention(c: Config, stated: Mapping[str, Any]) -> Attention:
    """Attention with groups of query heads of a given size, and an optional window."""
    h, group = c.num_attention_heads, c.size("n_heads_in_group", stated.get("n_heads_in_group"))
    c.require(h % group == 0, f"n_heads_in_group ({group}) does not divide num_attention_heads ({h})")
    window, heads = stated.get("window_length"), symbolic("g", h // group, origin="h / n_heads_in_group")
    bias = c.attention_bias
    return mha(c, bias=bias, kv=heads, window=window and c.size("window_length", window))


def nas_ffn(c: Config, stated: Mapping[str, Any]) -> Mlp:
    """A gated FFN of a given width, or of two thirds of ffn_mult d, rounded up to a multiple of 256."""
    width, factor = stated.get("intermediate_size"), stated.get("ffn_mult") or 0
    if width is None:
        c.require(isinstance(factor, int | float) and 0 < factor < 1e6, f"ffn_mult must be a number, not {factor!r}")
        width = symbolic("d_ff", -(-int(2 * factor * c.hidden_size / 3) // 256) * 256, origin="2/3 ffn_mult d, to 256")
    return glu(c, c.size("intermediate_size", width), bias=c.mlp_bias)
