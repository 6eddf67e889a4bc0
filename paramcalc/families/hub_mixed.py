"""Families whose class is code on the Hub and whose layers differ from one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Attention, LightningAttention, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, head_dim, mha, sized_attention
from paramcalc.families.builders.decoder import causal_lm, decoder, ignored_fields, pre_norm, rms
from paramcalc.families.builders.ffn import glu, mlp, moe
from paramcalc.families.builders.recurrent import mamba
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear, Norm, Param

# -- MiniMax-01 --------------------------------------------------------------------------------------------------


@family("minimax_text_01", "minimax_m1")
def minimax_text_01(c: Config) -> Block:
    """Lightning attention where attn_type_list says 0, full where 1, experts throughout (MiniMaxText01ForCausalLM).

    Beside the experts there may be a shared one with a gate.
    """
    words = c.per_layer("attn_type_list")
    if words is None:
        raise c.missing("attn_type_list")
    c.require(
        all(type(word) is int and word in (0, 1) for word in words), "attn_type_list has words other than 0 and 1"
    )
    lightning = LightningAttention(
        width=c.hidden_size, heads=c.num_attention_heads, head_dim=head_dim(c), block_size=None
    )
    shared = c.shared_intermediate_size or None
    experts = moe(c, c.intermediate_size, experts=c.num_experts, shared=shared, shared_gate=shared is not None)
    return decoder(c, {0: lightning, 1: gqa(c)}, experts, words)


# -- OpenELM -----------------------------------------------------------------------------------------------------


@family("openelm")
def openelm(c: Config) -> Block:
    """Layers that grow with depth: two multipliers each for heads and FFN, or one for all (OpenELMForCausalLM).

    Mehta et al. 2024 (2404.14619), section 2.1. Widths are rounded to whole groups of heads, to 256 in the FFN.
    """
    c.require(c.normalization_layer_name == "rms_norm", f"{c.normalization_layer_name} is not a norm the class knows")
    d, d_h, groups = c.hidden_size, c.head_dim, c.num_gqa_groups
    heads = [nearest_multiple(d * m, d_h * groups) // d_h for m in openelm_multipliers(c, "qkv_multipliers", 1.0)]
    widths = [nearest_multiple(d * m, c.ffn_dim_divisor) for m in openelm_multipliers(c, "ffn_multipliers", 4.0)]
    ignored_fields(c, num_query_heads=heads, num_kv_heads=[h // groups for h in heads])
    norm = Norm(width=d_h) if c.normalize_qk_projections else None

    def layer(h: int, width: int) -> Block:
        attn = sized_attention(d, h, d_h, kv_heads=h // groups, qk_norm=norm)
        return pre_norm(rms(c), attn, glu(c, width) if c.ffn_with_glu else mlp(c, width, bias=False))

    return causal_lm(c, [layer(h, width) for h, width in zip(heads, widths, strict=True)], norm=rms(c))


def openelm_multipliers(c: Config, name: str, default: float) -> list[float]:
    """One multiplier for each layer: the same for all, or two ends of a line, to two decimals; or a list of them."""
    depth, given = c.num_hidden_layers, c.raw(name)
    given = default if given is None else given
    values = list(given) if isinstance(given, list | tuple) else [given] * depth
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) and 0 < v < 1e6 for v in values)
    c.require(numbers and len(values) in (2, depth), f"{name} must be a number, two, or one for each layer")
    if not isinstance(given, list | tuple) or len(given) != 2:
        return values
    step = (values[1] - values[0]) / max(depth - 1, 1)
    line = [values[0] + i * step for i in range(depth - 1)] + [values[1] if depth > 1 else values[0]]
    return [round(100 * value) / 100 for value in line]


def nearest_multiple(size: float, divisor: int) -> int:
    """The nearest multiple of the divisor, at least one, and not below nine tenths of the size (MobileNet's rule)."""
    nearest = max(divisor, int(size + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * size else nearest


# -- Nemotron-NAS ------------------------------------------------------------------------------------------------

# Per block: what the recipe reads, and how the cache is cut. Whatever else a file sets is a doubt.
NAS_KEYS = {
    "attention": {"no_op", "replace_with_linear", "n_heads_in_group", "window_length"}
    | {"num_sink_tokens", "unshifted_sink", "use_prefill_window_in_sink_attention"},
    "ffn": {"no_op", "replace_with_linear", "ffn_mult", "intermediate_size", "hidden_act"},
}


@family("nemotron-nas")
def nemotron_nas(c: Config) -> Block:
    """Llama whose layers were searched: heads, FFN width, a matrix or nothing in their place (DeciLMForCausalLM).

    Bercovich et al. 2024 (2411.19146). A part that is not there has no norm either.
    """
    blocks = c.per_layer("block_configs")
    if blocks is None:
        raise c.missing("block_configs")
    return causal_lm(c, [nas_layer(c, number, described) for number, described in enumerate(blocks)], norm=rms(c))


def nas_layer(c: Config, number: int, described: Any) -> Block:
    """What block_configs says of one layer."""
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
    """A norm and what follows it: nothing at all, one square matrix, or the part itself."""
    others = sorted(key for key, value in stated.items() if value and key not in NAS_KEYS[category])
    c.doubts.extend(f"nemotron-nas: key 'block_configs.{category}.{key}' was not used" for key in others)
    if stated.get("no_op"):
        return {}
    square = Linear(d_in=c.hidden_size, d_out=c.hidden_size, category=category)
    return {f"{category}_norm": rms(c), category: square if stated.get("replace_with_linear") else build(c, stated)}


def nas_attention(c: Config, stated: Mapping[str, Any]) -> Attention:
    """Attention whose groups of query heads have a stated size; a window where there is one."""
    h, group = c.num_attention_heads, c.size("n_heads_in_group", stated.get("n_heads_in_group"))
    c.require(h % group == 0, f"n_heads_in_group ({group}) does not divide num_attention_heads ({h})")
    window, heads = stated.get("window_length"), symbolic("g", h // group, origin="h / n_heads_in_group")
    bias = c.attention_bias
    return mha(c, bias=bias, kv=heads, window=window and c.size("window_length", window))


def nas_ffn(c: Config, stated: Mapping[str, Any]) -> Mlp:
    """A gated FFN of a stated width, or of two thirds of ffn_mult d, to the next multiple of 256."""
    width, factor = stated.get("intermediate_size"), stated.get("ffn_mult") or 0
    if width is None:
        c.require(isinstance(factor, int | float) and 0 < factor < 1e6, f"ffn_mult must be a number, not {factor!r}")
        width = symbolic("d_ff", -(-int(2 * factor * c.hidden_size / 3) // 256) * 256, origin="2/3 ffn_mult d, to 256")
    return glu(c, c.size("intermediate_size", width), bias=c.mlp_bias)


# -- Hymba -------------------------------------------------------------------------------------------------------


@family("hymba")
def hymba(c: Config) -> Block:
    """Attention and Mamba side by side in each layer, and learned tokens before each text (HymbaForCausalLM).

    Dong et al. 2024 (2411.13676). Values are as wide as Mamba's channels; the outputs of both are normed, averaged and
    projected by one matrix. Groups of layers share the keys and values of their first.
    """
    c.require(c.mlp_hidden_act == "silu", f"mlp_hidden_act {c.mlp_hidden_act!r} is not counted", "silu is")
    c.layer_words("layer_type", ["h"])
    wide, everywhere = set(c.layer_indices("global_attn_idx")), c.sliding_window is None
    borrowing, tokens = hymba_kv_reuse(c), c.num_memory_tokens

    def layer(i: int) -> Block:
        window = None if everywhere or i in wide else c.sliding_window
        return hymba_layer(c, borrows=i in borrowing, window=window)

    memory = Param(shape=(tokens, c.hidden_size), category="embedding") if tokens else None
    layers = [layer(i) for i in range(c.num_hidden_layers)]
    return causal_lm(c, layers, norm=rms(c), before={"memory_tokens": memory})


def hymba_kv_reuse(c: Config) -> set[int]:
    """The layers that use the keys and values of an earlier one."""
    groups, period = c.list_of("kv_reuse_group"), c.raw("kv_reuse_every_i_layer")
    if groups is not None:
        lists = all(isinstance(group, list) and all(type(i) is int for i in group) for group in groups)
        c.require(lists, "kv_reuse_group must be lists of layer numbers")
        return {i for group in groups for i in group[1:]}
    c.require(period is None or type(period) is int, "kv_reuse_every_i_layer must be a whole number")
    return {i for i in range(c.num_hidden_layers) if i % period} if period and period > 0 else set()


UNVERIFIED_STATES = "the class is not in transformers and was not run: its states are taken to be Jamba's, in float32"


def hymba_layer(c: Config, *, borrows: bool, window: int | None) -> Block:
    """Both mixers behind one norm, a norm on the output of each, and a gated FFN."""
    bias, inner = c.mamba_proj_bias, c.mamba_expand * c.hidden_size
    source, widened = "borrowed" if borrows else "self", c.mamba_expand * head_dim(c)
    cached = dict(prefix=c.num_memory_tokens, cache_doubt=UNVERIFIED_STATES)
    attn = gqa(c, qkv_bias=bias, value_dim=widened, window=window, source=source, output=False, **cached)
    mixer = mamba(
        c,
        inner=inner,
        state=c.mamba_d_state,
        kernel=c.mamba_d_conv,
        dt_rank="mamba_dt_rank",
        bias=bias,
        conv_bias=c.mamba_conv_bias,
        inner_norms=c.mamba_inner_layernorms,
    )
    norm, out_norm = rms(c), Norm(width=inner)
    return block(
        input_norm=norm, attn=attn, attn_norm=out_norm, mamba=mixer, mamba_norm=out_norm, post_norm=norm, ffn=glu(c)
    )
