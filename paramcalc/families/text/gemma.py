"""Gemma: wide heads, large tied vocabularies, and from Gemma 2 on norms before and after each sublayer."""

from __future__ import annotations

from paramcalc.components import Attention
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, head_dim, kv_heads, qk_norm_per_head, sized_attention, sliding
from paramcalc.families.builders.decoder import causal_lm, decoder, norms_around, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import FULL, SLIDING, full_every, per_layer_overrides
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param, Product


@family("gemma")
def gemma(c: Config) -> Block:
    """Llama's layer with wide heads and a tied head (GemmaForCausalLM)."""
    return decoder(c, gqa(c, bias=c.attention_bias), glu(c))


@family("gemma2")
def gemma2(c: Config) -> Block:
    """Four norms a layer; alternating sliding and full attention, sliding first (Gemma2ForCausalLM)."""
    attn = sliding(gqa(c, bias=c.attention_bias), c.sliding_window)
    return decoder(c, attn, glu(c), full_every(c, 2), layer=norms_around)


@family("vaultgemma")
def vaultgemma(c: Config) -> Block:
    """Gemma 2 without the norms after attention and FFN (VaultGemmaForCausalLM)."""
    return decoder(c, sliding(gqa(c, bias=c.attention_bias), c.sliding_window), glu(c), full_every(c, 2))


@family("gemma3_text")
def gemma3_text(c: Config) -> Block:
    """Gemma 2 with norms on query and key heads; full attention in every sixth layer (Gemma3ForCausalLM)."""
    attn = sliding(qk_norm_per_head(c, bias=c.attention_bias), c.sliding_window)
    return decoder(c, attn, glu(c), full_every(c, c.sliding_window_pattern), layer=norms_around)


# -- parts of Gemma 3n and 4 -----------------------------------------------------------------------------------------


def layers_sharing_kv(c: Config, words: list[str], shared: int) -> list[bool]:
    """The last `shared` layers, marked True: each uses the keys and values of an earlier layer of its own type."""
    depth = len(words)
    first = depth - shared
    c.require(first >= 0, f"num_kv_shared_layers ({shared}) is more than there are layers ({depth})")
    lent = shared == depth or set(words[:first]) == set(words)
    c.require(lent, "num_kv_shared_layers leaves no layer of a kind that has keys and values")
    return [i >= first for i in range(depth)]


def per_layer_embedding(c: Config) -> dict[str, Component]:
    """A separate embedding for each layer, mixed with a projection of the token embedding (Gemma 3n)."""
    p, channels = c.hidden_size_per_layer_input, c.num_hidden_layers * c.hidden_size_per_layer_input
    return {
        "embed_per_layer": Embedding(rows=c.vocab_size_per_layer_input, width=channels),
        "per_layer_proj": Linear(d_in=c.hidden_size, d_out=channels),
        "per_layer_norm": Norm(width=p),
    }


def per_layer_input(c: Config) -> Block:
    """The gate, projection and norm that add a layer's own embedding to its output."""
    d, p = c.hidden_size, c.hidden_size_per_layer_input
    return block(gate=Linear(d_in=d, d_out=p), proj=Linear(d_in=p, d_out=d), norm=rms(c))


def gemma_attention(c: Config, *, d_h: int, kv: int, window: int | None, borrowed: bool, tied: bool) -> Attention:
    """Attention with QK norms; its keys and values may come from another layer, or its keys may be its values."""
    norm, source = Norm(width=d_h), "borrowed" if borrowed else "keys as values" if tied else "self"
    norms = dict(q_norm=norm, k_norm=None if borrowed else norm)
    options = dict(kv_heads=kv, bias=c.attention_bias, window=window, source=source, **norms)
    return sized_attention(c.hidden_size, c.num_attention_heads, d_h, **options)


# -- Gemma 3n --------------------------------------------------------------------------------------------------------


@family("gemma3n_text")
def gemma3n_text(c: Config) -> Block:
    """Streams of which each layer updates one, an embedding for each layer, shared keys (Gemma3nForCausalLM)."""
    c.require(c.hidden_size % c.num_attention_heads == 0, "hidden_size is not a multiple of num_attention_heads")
    depth, others = c.num_hidden_layers, (c.altup_num_inputs - 1) * c.hidden_size
    widths = c.per_layer("intermediate_size") if isinstance(c.raw("intermediate_size"), list) else None
    widths = [c.size("intermediate_size", width) for width in widths] if widths else [c.intermediate_size] * depth
    words = full_every(c, 5)
    c.require(c.num_kv_shared_layers < depth, "num_kv_shared_layers leaves no layer with keys and values")
    plan = list(zip(words, widths, layers_sharing_kv(c, words, c.num_kv_shared_layers), strict=True))
    layers = {kind: gemma3n_layer(c, *kind) for kind in dict.fromkeys(plan)}
    before = per_layer_embedding(c) | {"altup_proj": Linear(d_in=c.hidden_size, d_out=others)}
    after = block(altup_unembed=Linear(d_in=c.hidden_size, d_out=others), norm=rms(c))
    return causal_lm(c, [layers[kind] for kind in plan], norm=after, before=before)


def gemma3n_layer(c: Config, word: str, width: int, borrowed: bool) -> Block:
    """Gemma 2's layer within AltUp's streams, with a low-rank path parallel to attention (LAuReL, 2411.07501)."""
    d, n, r = c.hidden_size, c.altup_num_inputs, c.laurel_rank
    window = c.sliding_window if word == SLIDING else None
    altup = block(
        router_norm=rms(c),
        router=Linear(d_in=d, d_out=n),
        predict=Linear(d_in=n, d_out=n * n),
        streams=Product(flops=2 * n * n * d),
        router_again=Product(flops=2 * n * d),  # before and after the layer
        correct=Linear(d_in=n, d_out=n),
        scale=Param(shape=(d,)),
    )
    laurel = block(down=Linear(d_in=d, d_out=r), up=Linear(d_in=r, d_out=d), norm=rms(c))
    attn = gemma_attention(c, d_h=head_dim(c), kv=kv_heads(c), window=window, borrowed=borrowed, tied=False)
    layer = norms_around(rms(c), attn, glu(c, width))
    return block(altup=altup, laurel=laurel, **layer.items, per_layer=per_layer_input(c))


# -- Gemma 4 ---------------------------------------------------------------------------------------------------------


@family("gemma4_text", "gemma4_unified_text", "diffusion_gemma_text", borrows_all=False, passes=1)
def gemma4_text(c: Config) -> Block:
    """Full layers with wide heads and keys that may equal values, shared keys, experts (Gemma4ForCausalLM)."""
    depth = c.num_hidden_layers
    words = [*full_every(c, 6)[:-1], FULL]  # the class forces full attention in the last layer
    shared = c.num_kv_shared_layers or (depth if c.borrows_all else 0)
    plan = list(zip(words, gemma4_head_sizes(c, words), layers_sharing_kv(c, words, shared), strict=True))
    layers = {kind: gemma4_layer(c, *kind) for kind in dict.fromkeys(plan)}
    before = per_layer_embedding(c) if c.hidden_size_per_layer_input else {}
    runs = [Run(1, layers[kind], layer_passes(c), 1) for kind in plan]
    return causal_lm(c, runs, norm=rms(c), before=before)


def gemma4_head_sizes(c: Config, words: list[str]) -> list[tuple[int, int]]:
    """Head width and key/value heads of each layer: full layers have their own, or per_layer_config states all."""
    local = c.head_dim, c.num_key_value_heads
    overrides = per_layer_overrides(c, ("head_dim", "num_key_value_heads"))
    if overrides is not None:
        return [
            (layer["head_dim"] if "head_dim" in layer else local[0], layer.get("num_key_value_heads", local[1]))
            for layer in overrides
        ]
    few = c.num_global_key_value_heads if c.attention_k_eq_v else None
    return [(c.global_head_dim, few or local[1]) if word == FULL else local for word in words]


def gemma4_layer(c: Config, word: str, heads: tuple[int, int], borrowed: bool) -> Block:
    """Gemma 2's layer with a scalar buffer, and optionally experts parallel to the FFN and a per-layer embedding."""
    full, (d_h, kv) = word == FULL, heads
    c.require(c.num_attention_heads % kv == 0, f"{c.num_attention_heads} heads do not share {kv} key/value heads")
    window = None if full else c.sliding_window
    attn = gemma_attention(c, d_h=d_h, kv=kv, window=window, borrowed=borrowed, tied=full and c.attention_k_eq_v)
    wide = c.use_double_wide_mlp and borrowed
    items = norms_around(rms(c), attn, glu(c, 2 * c.intermediate_size if wide else None)).items
    beside = gemma4_experts(c) if c.enable_moe_block else None
    per_layer = per_layer_input(c) if c.hidden_size_per_layer_input else None
    return block(**items, beside=beside, per_layer=per_layer, scalar=Param(shape=(layer_passes(c),), buffer=True))


def layer_passes(c: Config) -> int:
    """The number of passes through the layers; a second pass with biases of its own is a separate stack."""
    return 1 if c.attention_bias else int(c.passes)


def gemma4_experts(c: Config) -> Block:
    """Experts parallel to the FFN with their own norms; the router scales its input and every expert."""
    d, count = c.hidden_size, c.required("num_experts")
    router = block(
        "router",
        scale=Param(shape=(d,)),
        proj=Linear(d_in=d, d_out=count),
        expert_scale=Param(shape=(count,)),
    )
    width, top_k = c.required("moe_intermediate_size"), c.required("top_k_experts")
    experts = moe(c, width, experts=count, top_k=top_k, router=router)
    return block(ffn_norm=rms(c), input_norm=rms(c), moe=experts, output_norm=rms(c))
