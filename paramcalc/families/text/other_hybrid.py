"""Decoders with attention in some layers and a recurrent mixer in others, or both in each."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, head_dim, qk_norm_windowed
from paramcalc.families.builders.decoder import causal_lm, decoder, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import FULL, LINEAR, SLIDING
from paramcalc.families.builders.recurrent import delta_net, mamba, mamba2_from_prefixed
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Norm, Param


@family("jamba")
def jamba(c: Config) -> Block:
    """Mamba with attention in every eighth layer, experts in every second (JambaForCausalLM)."""
    for kind in ("attn", "expert"):
        period, offset = f"{kind}_layer_period", f"{kind}_layer_offset"
        c.require(getattr(c, offset) < getattr(c, period), f"{offset} must be smaller than {period}")
    attn: Component = gqa(c)
    ssm = mamba(
        c,
        inner=c.mamba_expand * c.hidden_size,
        state=c.mamba_d_state,
        kernel=c.mamba_d_conv,
        dt_rank="mamba_dt_rank",
        bias=c.mamba_proj_bias,
        conv_bias=c.mamba_conv_bias,
        inner_norms=True,
    )
    dense = glu(c)
    sparse: Component = moe(c, c.intermediate_size, experts=c.num_experts) if c.num_experts > 1 else dense
    attends = [i % c.attn_layer_period == c.attn_layer_offset for i in range(c.num_hidden_layers)]
    routes = [i % c.expert_layer_period == c.expert_layer_offset for i in range(c.num_hidden_layers)]
    return decoder(c, {True: attn, False: ssm}, {True: sparse, False: dense}, attends, routes)


@family("bamba")
def bamba(c: Config) -> Block:
    """Mamba-2 with attention in the layers that attn_layer_indices lists, each with an FFN (BambaForCausalLM)."""
    chosen, mixer = (
        set(c.layer_indices("attn_layer_indices")),
        {True: gqa(c, bias=c.attention_bias), False: mamba2_from_prefixed(c)},
    )
    return decoder(c, mixer, glu(c, bias=c.mlp_bias), [i in chosen for i in range(c.num_hidden_layers)])


@family("lara_mini")
def lara_mini(c: Config) -> Block:
    """Linear, sliding and full attention in a pattern of five, experts in every layer (LaraMiniForCausalLM)."""
    shared, pattern = c.shared_expert_intermediate_size, [LINEAR, SLIDING, LINEAR, FULL, SLIDING]
    default = [pattern[i % len(pattern)] for i in range(c.num_hidden_layers)]
    attn = qk_norm_windowed(c) | {LINEAR: delta_net(c)}
    experts = moe(c, c.moe_intermediate_size, experts=c.num_experts, shared=shared)
    return decoder(c, attn, experts, c.layer_words("layer_types", (FULL, SLIDING, LINEAR)) or default)


# -- Hymba -----------------------------------------------------------------------------------------------------------


@family("hymba")
def hymba(c: Config) -> Block:
    """Attention and Mamba in parallel in each layer, and learned tokens before each text (HymbaForCausalLM).

    Dong et al. 2024 (2411.13676). Values are as wide as Mamba's channels; both outputs are normalised, averaged and
    projected by one matrix. Groups of layers share the keys and values of their first layer.
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
    """The layers that reuse the keys and values of an earlier one."""
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
