"""Zamba: Mamba layers, and shared transformer blocks."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Adapters, Attention, Mamba2, Mlp, SharedReference
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import kv_heads, sized_attention
from paramcalc.families.builders.decoder import causal_lm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.layer_types import LINEAR, mixer_types
from paramcalc.families.builders.recurrent import mamba
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear, Norm

HYBRID = "hybrid"


def zamba_layers(c: Config, words: list[str], mixer: Component, shared: list[Block]) -> list[Block]:
    """Mamba layers; hybrid ones first run one of the `shared` transformer blocks, in turn.

    The first layer that runs a block holds it. If the head is not tied, the class does not tie the blocks either.
    """
    layers = [block(input_norm=rms(c), mixer=mixer)] * len(words)
    linear = Linear(d_in=c.hidden_size, d_out=c.hidden_size, category="other")
    hybrids = [i for i, word in enumerate(words) if word == HYBRID]
    for n, i in enumerate(hybrids):
        turn = n % len(shared)
        part: Component = shared[turn]
        if n >= len(shared) and c.tie_word_embeddings:
            part = SharedReference(part=part, owner=f"layers.{hybrids[turn]}.shared")
        layers[i] = block(shared=part, linear=linear, input_norm=rms(c), mixer=mixer)
    return layers


def zamba_attention(c: Config, width: int, head_dim: int, inner: Component | None = None) -> Attention:
    """Attention over the hidden state concatenated with the embedding; only d channels come out."""
    d, h = c.hidden_size, c.num_attention_heads
    return sized_attention(width, h, head_dim, kv_heads=kv_heads(c), out_width=d, inner=inner)


@family("zamba")
def zamba(c: Config) -> Block:
    """Mamba layers, and one transformer block that runs before every sixth of them (ZambaForCausalLM)."""
    inner = c.mamba_expand * c.hidden_size
    c.require(inner % c.n_mamba_heads == 0, f"the inner width ({inner}) is not divisible by n_mamba_heads")
    mixer = mamba(
        c,
        inner=inner,
        state=c.mamba_d_state,
        kernel=c.mamba_d_conv,
        dt_rank="mamba_dt_rank",
        bias=c.mamba_proj_bias,
        conv_bias=c.mamba_conv_bias,
    )
    period, offset = c.attn_layer_period, c.attn_layer_offset
    later = [HYBRID if i % period == offset else LINEAR for i in range(c.num_hidden_layers - 3)]
    words = mixer_types(c, [LINEAR, LINEAR, HYBRID, *later], (LINEAR, HYBRID))
    c.require(len(words) == c.num_hidden_layers, "the default order needs three layers or more")
    shares = words.count(HYBRID) != 1 or not c.tie_word_embeddings
    c.require(shares, "the class cannot tie a block that a single layer runs", "two hybrid layers, or none")
    width = c.attention_hidden_size or 2 * c.hidden_size
    attn = zamba_attention(c, width, c.head_dim or doubled_heads(c))
    shared = block(input_norm=Norm(width=width), attn=attn, post_norm=rms(c), ffn=glu(c))
    return causal_lm(c, zamba_layers(c, words, mixer, [shared]), norm=rms(c))


def doubled_heads(c: Config) -> int:
    """Channels per head if heads cut twice the width."""
    return symbolic("d_h", 2 * c.hidden_size // c.num_attention_heads, origin="2 d / h, rounded down")


ZAMBA2_PATTERN = [LINEAR, *([LINEAR] * 5 + [HYBRID]) * 7, *[LINEAR] * 4, HYBRID, *[LINEAR] * 3, HYBRID, LINEAR, LINEAR]


@family("zamba2")
def zamba2(c: Config) -> Block:
    """Mamba-2 layers, and transformer blocks in turn before hybrid layers, with adapters (Zamba2ForCausalLM)."""
    inner, heads = c.mamba_expand * c.hidden_size, c.n_mamba_heads
    mixer = Mamba2(
        width=c.hidden_size,
        inner=inner,
        heads=heads,
        head_dim=inner // heads,
        state_size=c.mamba_d_state,
        groups=c.mamba_ngroups,
        kernel=c.mamba_d_conv,
        bias=c.add_bias_linear,
        out_bias=c.add_bias_linear,
        chunk=c.chunk_size,
    )
    words = mixer_types(c, ZAMBA2_PATTERN, (LINEAR, HYBRID))
    c.require(len(words) == c.num_hidden_layers, "a depth other than 54 needs layers_block_type")
    hybrids, blocks = [i for i, word in enumerate(words) if word == HYBRID], c.num_mem_blocks
    listed = c.list_of("hybrid_layer_ids")
    c.require(listed in (None, hybrids), "hybrid_layer_ids and layers_block_type disagree")
    # Each block holds the adapters of the layers that run it.
    shared = [adapted_block(c, len(hybrids[turn::blocks])) for turn in range(min(blocks, len(hybrids)))]
    return causal_lm(c, zamba_layers(c, words, mixer, shared), norm=rms(c))


def adapted_block(c: Config, passes: int) -> Block:
    """A transformer block over two concatenated vectors, with adapters for each of its passes."""
    width, rank = c.attention_hidden_size or 2 * c.hidden_size, c.adapter_rank
    hidden = c.intermediate_size or 4 * c.hidden_size
    corrected = Adapters(d_in=width, d_out=width, rank=rank, count=passes)
    adapters = block(q=corrected, k=corrected, v=corrected) if c.use_shared_attention_adapter else None
    return block(
        input_norm=Norm(width=width),
        attn=zamba_attention(c, width, c.head_dim or doubled_heads(c), adapters),
        post_norm=rms(c),
        ffn=Mlp(
            width=c.hidden_size,
            hidden=hidden,
            gated=True,
            fused=True,
            bias=c.add_bias_linear,
            inner=Adapters(d_in=c.hidden_size, d_out=2 * hidden, rank=rank, count=passes),
        ),
    )
