"""dots.llm1, and dots3 with latent attention of two sizes."""

from __future__ import annotations

from typing import Any

from paramcalc.components import LatentAttention
from paramcalc.components.sparse import IndexKeys
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import head_gate, qk_norm_per_head, sliding, with_options
from paramcalc.families.builders.decoder import decoder, ignored_fields
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import (
    DENSE,
    FULL,
    SLIDING,
    SPARSE,
    attention_types,
    first_dense,
    mlp_types,
    per_layer_overrides,
)
from paramcalc.families.builders.mla import INDEXED, lightning_indexer, moe_layer_freq_types
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block
from paramcalc.tree.state import FLOAT32


@family("dots1")
def dots1(c: Config) -> Block:
    """Qwen3's attention, dense layers first, then routed and shared experts (Dots1ForCausalLM)."""
    window, e = c.sliding_window, c.moe_intermediate_size
    ignored_fields(c, moe_layer_freq=1)
    attn = sliding(qk_norm_per_head(c, bias=c.attention_bias), window)
    ffn: dict[str, Component] = {DENSE: glu(c)}
    if c.first_k_dense_replace < c.num_hidden_layers:
        n, count = c.required("n_shared_experts"), c.required("num_local_experts")
        ffn[SPARSE] = moe(c, e, experts=count, shared=n * e, shared_count=n, correction=True)
    first = c.num_hidden_layers if window is None else c.max_window_layers
    words = attention_types(c, [FULL if i < first else SLIDING for i in range(c.num_hidden_layers)])
    return decoder(c, attn, ffn, words, first_dense(c, c.first_k_dense_replace))


# -- dots3 -----------------------------------------------------------------------------------------------------------


ATTENTION_SIZES = dict(num_attention_heads=64, q_lora_rank=1024, kv_lora_rank=1024, qk_nope_head_dim=192) | dict(
    qk_rope_head_dim=None, v_head_dim=128
)


@family("dots3_note_text")
def dots3_note_text(c: Config) -> Block:
    """Gated latent attention: sliding layers with sizes of their own, other layers indexed (Dots3NoteForCausalLM)."""
    n, e = c.n_shared_experts, c.moe_intermediate_size
    c.require(n >= 1, "n_shared_experts must be at least 1")
    shared = n * c.shared_experts_intermediate_size
    sparse = moe(c, e, experts=c.num_local_experts, shared=shared, shared_count=n, correction=True)
    sizes = [
        tuple({**layer, "word": word}.items())
        for word, layer in zip(dots3_layer_types(c), dots3_attention_sizes(c), strict=True)
    ]
    attn = {size: dots3_attention(c, **dict(size)) for size in dict.fromkeys(sizes)}
    unbuilt_mtp(c)
    return decoder(c, attn, {DENSE: glu(c), SPARSE: sparse}, sizes, mlp_types(c, moe_layer_freq_types(c)))


def dots3_layer_types(c: Config) -> list[str]:
    """The attention of each layer. use_dsa turns full layers into indexed ones or back; original files imply true."""
    dsa, original = c.raw("use_dsa"), not c.has("per_layer_config")
    c.require(dsa is None or isinstance(dsa, bool), f"use_dsa must be true or false, not {dsa!r}")
    full_type = FULL if dsa is False else INDEXED
    slides = [c.use_sliding_window and i >= 2 and i % 4 != 1 for i in range(c.num_hidden_layers)]
    words = c.layer_words("layer_types", (FULL, SLIDING, INDEXED)) or [
        SLIDING if slide else full_type for slide in slides
    ]
    decided = original or dsa is not None
    return [full_type if decided and word != SLIDING else word for word in words]


def dots3_attention_sizes(c: Config) -> list[dict[str, Any]]:
    """The attention sizes of each layer: the model's, overridden for single layers or for sliding ones."""
    model = {name: getattr(c, name) for name in ATTENTION_SIZES}
    overrides = per_layer_overrides(c, [*ATTENTION_SIZES, "num_key_value_heads", "head_dim"])
    if overrides is not None:
        return [{name: layer.get(name, size) for name, size in model.items()} for layer in overrides]
    sliding = {name: getattr(c, f"swa_{name}") for name in ATTENTION_SIZES}
    if sliding["qk_rope_head_dim"] is None:
        sliding["qk_rope_head_dim"] = c.swa_head_dim - c.swa_qk_nope_head_dim
    return [sliding if word == SLIDING else model for word in dots3_layer_types(c)]


def dots3_attention(c: Config, *, word: str, **sizes: Any) -> LatentAttention:
    """Latent attention of these sizes with a normalised rotary key and a gate per head."""
    indexer = lightning_indexer(c, sizes["q_lora_rank"]).replace(index_keys=IndexKeys(dtype=FLOAT32))
    plain = LatentAttention(
        width=c.hidden_size,
        heads=sizes["num_attention_heads"],
        q_rank=sizes["q_lora_rank"],
        kv_rank=sizes["kv_lora_rank"],
        nope_dim=sizes["qk_nope_head_dim"],
        rope_dim=sizes["qk_rope_head_dim"],
        value_dim=sizes["v_head_dim"],
        bias=c.attention_bias,
        indexer=indexer if word == INDEXED else None,
    )
    window = c.sliding_window if word == SLIDING else None
    gate = head_gate(c.hidden_size, sizes["num_attention_heads"])
    return with_options(plain, window=window, rope_norm=True, gate=gate)
