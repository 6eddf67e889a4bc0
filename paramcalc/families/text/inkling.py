"""Inkling: short convolutions in attention, learned relative positions, experts, and optionally looped layers."""

from __future__ import annotations

from typing import Any

from paramcalc.components import Attention, CausalConv, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import head_gate, sized_attention
from paramcalc.families.builders.decoder import causal_lm, rms
from paramcalc.families.builders.ffn import moe
from paramcalc.families.builders.layer_types import DENSE, SPARSE, every, mlp_types
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block
from paramcalc.tree.leaves import Linear, Norm, Param
from paramcalc.tree.state import FLOAT32

HYBRID_FULL, HYBRID_SLIDING = "hybrid", "hybrid_sliding"


def inkling_layer_types(c: Config, default: list[str]) -> list[str]:
    """The attention of each layer."""
    return c.layer_words("layer_types", (HYBRID_FULL, HYBRID_SLIDING)) or default


def inkling_head_sizes(c: Config, word: str) -> dict[str, Any]:
    """The sizes of full or sliding attention."""
    if word == HYBRID_FULL:
        return dict(heads=c.num_attention_heads, kv_heads=c.num_key_value_heads, head_dim=c.head_dim, window=None)
    return dict(
        heads=c.swa_num_attention_heads,
        kv_heads=c.swa_num_key_value_heads,
        head_dim=c.swa_head_dim,
        window=c.sliding_window,
    )


def token_conv(c: Config, channels: int) -> CausalConv:
    """A short depthwise convolution over time, computed in float32."""
    taps = c.sconv_kernel_size
    return CausalConv(channels=channels, kernel=taps, causal_padding=taps - 1, dtype=FLOAT32)


def kv_conv(c: Config, word: str, *, dynamic: bool = False) -> Block:
    """The convolutions over keys and values; the weights of dynamic ones depend on the token."""
    sizes, taps = inkling_head_sizes(c, word), c.sconv_kernel_size
    g, channels = sizes["kv_heads"], sizes["kv_heads"] * sizes["head_dim"]
    mixed: Component = token_conv(c, channels)
    if dynamic:
        mixed = CausalConv(
            channels=channels, kernel=taps, taps=Linear(d_in=c.hidden_size, d_out=g * taps), dtype=FLOAT32
        )
    return block("recurrent", k=mixed, v=mixed)


# -- Inkling ---------------------------------------------------------------------------------------------------------


@family("inkling_text")
def inkling_text(c: Config) -> Block:
    """Convolutions after keys, values and both sublayers; routed and shared experts (InklingForCausalLM).

    If a file has dense_intermediate_size, its intermediate_size is the width of the experts.
    """
    unbuilt_mtp(c, "num_mtp_layers")
    depth, local = c.num_hidden_layers, c.raw("local_layer_ids")
    slides = [i in local if local is not None else (i + 1) % 6 > 0 for i in range(depth)]
    dense, hidden = c.dense_intermediate_size or c.intermediate_size, c.moe_intermediate_size
    if c.dense_intermediate_size is not None:
        hidden = c.intermediate_size
    after, shared, scale = token_conv(c, c.hidden_size), c.n_shared_experts, Param(shape=(1,))
    router = block(
        "router",
        gate=Linear(d_in=c.hidden_size, d_out=c.num_local_experts + shared),
        scale=scale,
        correction=Param(shape=(c.num_local_experts,), buffer=True),
    )
    ffn: dict[str, Component] = {
        DENSE: Mlp(width=c.hidden_size, hidden=dense, gated=True, inner=scale),
        SPARSE: moe(c, hidden, experts=c.num_local_experts, shared=shared * hidden, shared_count=shared, router=router),
    }
    layers = {
        (a, f): block(
            input_norm=rms(c),
            kv_conv=kv_conv(c, a),
            attn=inkling_attention(c, a),
            attn_conv=after,
            post_norm=rms(c),
            ffn=ffn[f],
            ffn_conv=after,
        )
        for a in (HYBRID_FULL, HYBRID_SLIDING)
        for f in ffn
    }
    kinds = inkling_layer_types(c, [HYBRID_SLIDING if here else HYBRID_FULL for here in slides])
    ffn_kinds = mlp_types(c, [DENSE if i < c.dense_mlp_idx else SPARSE for i in range(depth)])
    built = [layers[pair] for pair in zip(kinds, ffn_kinds, strict=True)]
    return causal_lm(c, built, norm=rms(c), before={"embed_norm": rms(c)})


def inkling_attention(c: Config, word: str) -> Attention:
    """Attention with QK norms; relative positions are projected from the hidden state."""
    sizes = inkling_head_sizes(c, word)
    norm = Norm(width=sizes["head_dim"])
    inner = block(
        relative=Linear(d_in=c.hidden_size, d_out=sizes["heads"] * c.d_rel),
        positions=Param(shape=(c.d_rel, sizes["window"] or c.rel_extent), per="token", repeats=sizes["heads"]),
    )
    return sized_attention(c.hidden_size, qk_norm=norm, inner=inner, **sizes)


# -- Inkling 2 -------------------------------------------------------------------------------------------------------


@family("inkling2_text")
def inkling2_text(c: Config) -> Block:
    """Gated attention with sinks, sublayers that attend to earlier layers' outputs, experts (Inkling2ForCausalLM)."""
    depth = c.num_hidden_layers
    kinds = inkling_layer_types(c, every(6, HYBRID_FULL, otherwise=HYBRID_SLIDING, layers=depth))
    layers = [Run(1, inkling2_layer(c, word, first=i == 0)) for i, word in enumerate(kinds)]
    return inkling2_model(c, layers)


@family("inkling2_loop_text")
def inkling2_loop_text(c: Config) -> Block:
    """Inkling 2 with several passes through its middle layers, and loop gates (Inkling2LoopForCausalLM)."""
    stated = c.section("loop_config")
    start = stated.core_start or c.loop_layer_index_start
    end = stated.core_end or c.loop_layer_index_end
    passes, rank = stated.num_passes or c.loop_num_passes, stated.gate_rank or c.loop_gate_rank
    kinds = inkling_layer_types(c, every(6, HYBRID_FULL, otherwise=HYBRID_SLIDING, layers=c.num_hidden_layers))
    layers = [
        Run(1, inkling2_layer(c, word, first=i == 0, rank=rank if start <= i < end else None), passes=passes)
        if start <= i < end
        else Run(1, inkling2_layer(c, word, first=i == 0))
        for i, word in enumerate(kinds)
    ]
    return inkling2_model(c, layers, message=Param(shape=(end - start, 4, c.hidden_size)))


def inkling2_model(c: Config, layers: list[Run], message: Param | None = None) -> Block:
    """Layers between a normalised embedding and a head over the unpadded vocabulary."""
    final = block(message_query=message, query=Param(shape=(c.hidden_size,)), norm=rms(c))
    return causal_lm(c, layers, norm=final, before={"embed_norm": rms(c)}, head_rows=c.unpadded_vocab_size)


def inkling2_layer(c: Config, word: str, *, first: bool, rank: int | None = None) -> Block:
    """A layer whose sublayers select, by learned queries, among the outputs of earlier layers.

    Full attention has separate queries and norms for its q, k and v. `rank`: the rank of the loop gates.
    """
    d, times, after = c.hidden_size, 3 if word == HYBRID_FULL else 1, token_conv(c, c.hidden_size)
    gate = rank and block(
        down=Linear(d_in=2 * d, d_out=rank), forget=Linear(d_in=rank, d_out=d), message=Linear(d_in=rank, d_out=d)
    )
    gates = block(q=gate, k=gate, v=gate, ffn=gate) if gate else None
    return block(
        attn_query=None if first else Param(shape=(times, d)),
        input_norm=Norm(width=d, count=times),
        kv_conv=kv_conv(c, word, dynamic=word == HYBRID_FULL),
        attn=inkling2_attention(c, word),
        attn_conv=after,
        ffn_query=Param(shape=(d,)),
        post_norm=rms(c),
        ffn=moe(c, c.moe_intermediate_size, experts=c.num_local_experts, correction=True),
        ffn_conv=after,
        loop_gates=gates,
    ).replace(inexact="what layers take from earlier ones is not counted")


def inkling2_attention(c: Config, word: str) -> Attention:
    """Gated attention with scaled queries, relative positions and sinks that depend on the token."""
    d, sizes = c.hidden_size, inkling_head_sizes(c, word)
    h, d_h = sizes["heads"], sizes["head_dim"]
    inner = block(
        q_scale=Param(shape=(h, d_h)),
        relative=Linear(d_in=d, d_out=h * c.d_rel),
        relative_scale=Param(shape=(h, c.d_rel)),
        positions=Param(shape=(c.d_rel, sizes["window"] or c.rel_extent), per="token", repeats=sizes["heads"]),
        sinks=Linear(d_in=d, d_out=h),
    )
    return sized_attention(d, inner=inner, gate=head_gate(d, h, d_h), **sizes)
