"""dots3: latent attention of two sizes, sliding or indexed, with a gate on each head."""

from __future__ import annotations

from typing import Any

from paramcalc.components import LatentAttention
from paramcalc.config import Config
from paramcalc.containers import Block
from paramcalc.families.attentions import head_gate
from paramcalc.families.feedforward import glu, moe
from paramcalc.families.latent_parts import INDEXED, frequent, lightning
from paramcalc.families.mtp import unbuilt_mtp
from paramcalc.families.patterns import DENSE, FULL, SLIDING, SPARSE, mlp_words, per_layer_overrides
from paramcalc.families.registry import family
from paramcalc.families.skeletons import decoder
from paramcalc.kept import FLOAT32

SWA = dict(num_attention_heads=64, q_lora_rank=1024, kv_lora_rank=1024, qk_nope_head_dim=192) | dict(
    qk_rope_head_dim=None, v_head_dim=128
)


@family("dots3_note_text")
def dots3_note_text(c: Config) -> Block:
    """Gated latent attention, sliding layers with sizes of their own, the others indexed (Dots3NoteForCausalLM)."""
    n, e = c.n_shared_experts, c.moe_intermediate_size
    c.require(n >= 1, "n_shared_experts must be at least 1")
    shared = n * c.shared_experts_intermediate_size
    sparse = moe(c, e, experts=c.num_local_experts, shared=shared, shared_count=n, correction=True)
    sizes = [tuple({**layer, "word": word}.items()) for word, layer in zip(dots3_words(c), dots3_sizes(c), strict=True)]
    attn = {size: dots3_attention(c, **dict(size)) for size in dict.fromkeys(sizes)}
    unbuilt_mtp(c)
    return decoder(c, attn, {DENSE: glu(c), SPARSE: sparse}, sizes, mlp_words(c, frequent(c)))


def dots3_words(c: Config) -> list[str]:
    """Each layer's attention. use_dsa makes full layers indexed ones or the reverse; the original files mean true."""
    dsa, original = c.raw("use_dsa"), not c.says("per_layer_config")
    c.require(dsa is None or isinstance(dsa, bool), f"use_dsa must be true or false, not {dsa!r}")
    whole = FULL if dsa is False else INDEXED
    slides = [c.use_sliding_window and i >= 2 and i % 4 != 1 for i in range(c.num_hidden_layers)]
    words = c.words("layer_types", (FULL, SLIDING, INDEXED)) or [SLIDING if slide else whole for slide in slides]
    decided = original or dsa is not None
    return [whole if decided and word != SLIDING else word for word in words]


def dots3_sizes(c: Config) -> list[dict[str, Any]]:
    """Each layer's sizes of attention: the model's, with what the file states for a layer or for sliding ones."""
    model = {name: getattr(c, name) for name in SWA}
    overrides = per_layer_overrides(c, [*SWA, "num_key_value_heads", "head_dim"])
    if overrides is not None:
        return [{name: layer.get(name, size) for name, size in model.items()} for layer in overrides]
    sliding = {name: getattr(c, f"swa_{name}") for name in SWA}
    if sliding["qk_rope_head_dim"] is None:
        sliding["qk_rope_head_dim"] = c.swa_head_dim - c.swa_qk_nope_head_dim
    return [sliding if word == SLIDING else model for word in dots3_words(c)]


def dots3_attention(c: Config, *, word: str, **sizes: Any) -> LatentAttention:
    """Latent attention of these sizes with a normed rotary key and a gate per head."""
    return LatentAttention(
        width=c.hidden_size,
        heads=sizes["num_attention_heads"],
        q_rank=sizes["q_lora_rank"],
        kv_rank=sizes["kv_lora_rank"],
        nope_dim=sizes["qk_nope_head_dim"],
        rope_dim=sizes["qk_rope_head_dim"],
        value_dim=sizes["v_head_dim"],
        bias=c.attention_bias,
        window=c.sliding_window if word == SLIDING else None,
        rope_norm=True,
        inner=head_gate(c.hidden_size, sizes["num_attention_heads"]),
        indexer=lightning(c, sizes["q_lora_rank"]).but(key_dtype=FLOAT32) if word == INDEXED else None,
    )
