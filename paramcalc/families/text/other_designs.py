"""Decoders with a plan of their own: loops, learned scales, bytes merged to patches, growing widths."""

from __future__ import annotations

from math import isqrt

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Mlp
from paramcalc.components.ffn import Experts
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, head_dim, head_gate, kv_heads, sized_attention
from paramcalc.families.builders.decoder import causal_lm, ignored_fields, pre_norm, rms
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.heads import decoder_head
from paramcalc.families.builders.layer_types import FULL, SLIDING, every
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param

# -- loops and learned scales ----------------------------------------------------------------------------------------


@family("hrm_text")
def hrm_text(c: Config) -> Block:
    """A fast and a slow stack run in cycles; gated attention, norms without weights (HrmTextForCausalLM)."""
    bias, norm = c.attention_bias, Norm(width=c.hidden_size, scale=False)
    gate = head_gate(c.hidden_size, c.num_attention_heads, head_dim(c), bias=bias)
    attn = gqa(c, bias=bias, inner=block(), gate=gate)  # the gate at inner.gate_proj
    layer = pre_norm(norm, attn, glu(c, bias=c.mlp_bias))
    # If present, num_hidden_layers counts every pass through every layer; by default it is the depth of one stack.
    depth = c.num_layers_per_stack or c.num_hidden_layers
    slow = stack("slow decoder", Run(depth, layer, passes=c.H_cycles), causal=True)
    return causal_lm(
        c,
        Run(depth, layer, passes=c.H_cycles * c.L_cycles),
        norm=block(slow_layers=slow, norm=norm),
        before={"z_init": Param(shape=(c.hidden_size,))},
    )


@family("dory")
def dory(c: Config) -> Block:
    """Normalised transformer: learned scales in place of norms, middle layers in a loop (DoryForCausalLM).

    Published files list attention and FFN of a layer separately, and count each as a layer; all depths are then halved.
    """
    words = c.layer_words("layer_types", (FULL, SLIDING, "mlp")) or []
    halves = 2 if "mlp" in words else 1
    depth, first, last = (n // halves for n in (c.num_hidden_layers, c.n_input_layers, c.n_output_layers))
    layers = {FULL: dory_layer(c, None), SLIDING: dory_layer(c, c.sliding_window)}
    kinds = words[::halves] or every(4, FULL, otherwise=SLIDING, layers=depth)
    loops, times = range(first, depth - last), c.n_recurrent_loops
    kept = 1 if c.recurrent_kv_cache_mode == "last_loop" else None
    head = decoder_head(c, c.hidden_size)
    scale = Param(shape=(c.vocab_size,), category="head") if "lm_head" in head else None
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=c.hidden_size),
        layers=stack(
            "decoder",
            [Run(1, layers[word], times, kept) if i in loops else Run(1, layers[word]) for i, word in enumerate(kinds)],
        ),
        **head,
        logit_scale=scale,
    )


def dory_layer(c: Config, window: int | None) -> Block:
    """nGPT's layer: scales on queries and keys, on the gate, on the FFN's channels, and on each residual step."""
    d, bias, channels = c.hidden_size, c.attention_bias, c.num_attention_heads * head_dim(c)
    scale, hidden, step = Param(shape=(channels,)), Param(shape=(c.intermediate_size,)), Param(shape=(d,))
    gate = block(gate_proj=head_gate(d, c.num_attention_heads, head_dim(c)), gate_scale=scale)
    return block(
        attn=gqa(c, bias=bias, window=window, inner=block(qk_scale=scale), gate=gate),
        attn_step=step,
        ffn=Mlp(
            width=d,
            hidden=c.intermediate_size,
            gated=True,
            bias=c.mlp_bias,
            inner=block(gate_scale=hidden, up_scale=hidden),
        ),
        ffn_step=step,
    )


@family("doge")
def doge(c: Config) -> Block:
    """Llama with a learned mask per key head, scaled residuals, and optional one-channel experts (DogeForCausalLM).

    Experts are selected by product keys (PEER, 2407.04153): the router scores two sets of sqrt(E) half-keys.
    """
    d, bias, g, norm = c.hidden_size, c.attention_bias, kv_heads(c), Norm(width=head_dim(c))
    mask = block(A=Param(shape=(g,)), dt_proj=Linear(d_in=g * head_dim(c), d_out=g, bias=bias))
    ffn: Component = glu(c, bias=c.mlp_bias)
    if c.is_moe:
        c.require(
            c.num_experts_per_tok <= c.num_experts,
            f"num_experts_per_tok ({c.num_experts_per_tok}) is more than there are experts ({c.num_experts})",
        )
        keys = symbolic("keys", isqrt(c.num_experts), origin="sqrt(E), rounded down")
        channel = Mlp(width=d, hidden=1, gated=False)
        ffn = block(
            shared=glu(c, bias=c.mlp_bias, category="shared_experts"),
            router=Linear(d_in=d, d_out=2 * keys, category="router"),
            experts=Experts(expert=channel, count=c.num_experts, top_k=c.num_experts_per_tok),
        )
    scale = Param(shape=(d,))
    layer = block(
        input_norm=rms(c),
        attn=gqa(c, bias=bias, qk_norm=norm, inner=mask),
        attn_scale=scale,
        post_norm=rms(c),
        ffn=ffn,
        ffn_scale=scale,
    )
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


# -- Byte Latent Transformer -----------------------------------------------------------------------------------------


UNKNOWN_PATCHES = (
    "the number of patches of a text is unknown; the cache is counted with one patch for every byte, and without the "
    "keys and values that pass between bytes and patches"
)


@family("blt")
def blt(c: Config) -> Block:
    """Bytes merged to patches by a small encoder, a large model of patches, a small decoder (BltForCausalLM).

    Pagnoni et al. 2024 (2412.09871). A separate patcher decides where a patch ends.
    """
    encoder, patches, decoder, patcher = (
        c.section(f"{part}_config") for part in ("encoder", "global", "decoder", "patcher")
    )
    groups = len(c.layer_indices("encoder_hash_byte_group_size") or range(3, 9))
    rows = c.encoder_hash_byte_group_vocab * (c.encoder_hash_byte_group_nb_functions * groups)
    joined = encoder.hidden_size * c.cross_attn_k
    wide = Linear(d_in=joined, d_out=patches.hidden_size, category="other")
    tied = "lm_head" if c.tie_word_embeddings and c.head == "lm" else None
    return block(
        hashes=Embedding(rows=rows, width=encoder.hidden_size),
        embed_tokens=Embedding(rows=encoder.vocab_size, width=encoder.hidden_size, tied_to=tied),
        patcher=blt_patcher(patcher) if c.patch_in_forward else None,
        encoder=blt_local(encoder, "encoder", joined_from=encoder.hidden_size),
        patch_proj=wide if joined != patches.hidden_size else None,
        layers=stack("decoder", Run(patches.num_hidden_layers, blt_layer(patches))),
        decoder=blt_local(decoder, "local decoder", joined_from=decoder.hidden_size_global),
        norm=rms(decoder),
        lm_head=Linear(d_in=decoder.hidden_size, d_out=c.vocab_size, category="head") if c.head == "lm" else None,
    )


def blt_layer(part: Config) -> Block:
    """Llama's layer; the default FFN width is 8 d / 3, rounded down."""
    d = part.hidden_size
    hidden = part.intermediate_size or symbolic("d_ff", 8 * d // 3, origin="8 d / 3, rounded down")
    layer: Block = pre_norm(rms(part), gqa(part, cache_doubt=UNKNOWN_PATCHES), glu(part, hidden))
    return layer.replace(inexact="every byte is counted as a patch of its own")


def blt_local(part: Config, role: str, *, joined_from: int) -> Block:
    """Layers over bytes, and cross attention between bytes and patches after one layer or after each."""
    d, norm = part.hidden_size, rms(part)
    cross = sized_attention(
        d, part.num_attention_heads, equal_heads(part), kv_heads=kv_heads(part), qk_norm=norm, source="cross"
    )
    times = part.num_hidden_layers if part.cross_attn_all_layers else 1
    return block(
        patch_proj=Linear(d_in=joined_from, d_out=d * part.cross_attn_k, category="other"),
        layers=stack(role, Run(part.num_hidden_layers, blt_layer(part)), causal=True),
        cross=block(**{str(i): cross for i in range(times)}),
    )


def blt_patcher(part: Config) -> Block:
    """A language model of bytes, whose entropy ends a patch."""
    return block(
        embed_tokens=Embedding(rows=part.vocab_size, width=part.hidden_size),
        layers=stack("patcher", Run(part.num_hidden_layers, blt_layer(part))),
        norm=rms(part),
        lm_head=Linear(d_in=part.hidden_size, d_out=part.vocab_size, category="head"),
    )


# -- OpenELM ---------------------------------------------------------------------------------------------------------


@family("openelm")
def openelm(c: Config) -> Block:
    """Widths that grow with depth: per-layer multipliers for heads and FFN (OpenELMForCausalLM).

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
    """One multiplier for each layer: from one number, from the two ends of a line (to two decimals), or from a list."""
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
