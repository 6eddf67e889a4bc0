"""Checkpoints of models that live on the Hub alone: names and shapes of their tensors, from the code beside them.

modeling_internlm2.py, modeling_minicpm.py and modeling_exaone.py of internlm2-7b, MiniCPM-2B-sft-bf16 and
EXAONE-3.0-7.8B-Instruct.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

Fields = Mapping[str, Any]
Shapes = dict[str, tuple[int, ...]]


def internlm2(c: Fields) -> Shapes:
    """Queries, keys and values in one matrix, group by group."""
    d, d_ff, h, g = (c[k] for k in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"))
    layer: Shapes = {"attention.wqkv": ((h + 2 * g) * (d // h), d), "attention.wo": (d, d), "attention_norm": (d,)}
    layer |= {
        "feed_forward.w1": (d_ff, d),
        "feed_forward.w3": (d_ff, d),
        "feed_forward.w2": (d, d_ff),
        "ffn_norm": (d,),
    }
    around = {"model.tok_embeddings": (c["vocab_size"], d), "model.norm": (d,), "output": (c["vocab_size"], d)}
    return around | layers("model.layers", c["num_hidden_layers"], layer)


def minicpm(c: Fields) -> Shapes:
    """Llama whose output matrix is the table of tokens."""
    return {name: shape for name, shape in llama(c).items() if name != "lm_head"}


def llama(c: Fields) -> Shapes:
    """Llama's names."""
    d, d_ff, h = c["hidden_size"], c["intermediate_size"], c["num_attention_heads"]
    kv = c.get("num_key_value_heads", h) * (d // h)
    layer: Shapes = {"self_attn.q_proj": (d, d), "self_attn.k_proj": (kv, d), "self_attn.v_proj": (kv, d)}
    layer |= {
        "self_attn.o_proj": (d, d),
        "mlp.gate_proj": (d_ff, d),
        "mlp.up_proj": (d_ff, d),
        "mlp.down_proj": (d, d_ff),
    }
    layer |= {"input_layernorm": (d,), "post_attention_layernorm": (d,)}
    around = {"model.embed_tokens": (c["vocab_size"], d), "model.norm": (d,), "lm_head": (c["vocab_size"], d)}
    return around | layers("model.layers", c["num_hidden_layers"], layer)


def exaone(c: Fields) -> Shapes:
    """Llama's shapes under names like GPT-2's."""
    d, d_ff, h = c["hidden_size"], c["intermediate_size"], c["num_attention_heads"]
    kv = c["num_key_value_heads"] * (d // h)
    layer: Shapes = {
        "attn.attention.q_proj": (d, d),
        "attn.attention.k_proj": (kv, d),
        "attn.attention.v_proj": (kv, d),
    }
    layer |= {
        "attn.attention.out_proj": (d, d),
        "mlp.c_fc_0": (d_ff, d),
        "mlp.c_fc_1": (d_ff, d),
        "mlp.c_proj": (d, d_ff),
    }
    layer |= {"ln_1": (d,), "ln_2": (d,)}
    around = {"transformer.wte": (c["vocab_size"], d), "transformer.ln_f": (d,), "lm_head": (c["vocab_size"], d)}
    return around | layers("transformer.h", c["num_layers"], layer)


def layers(prefix: str, count: int, layer: Shapes) -> Shapes:
    """The same tensors in each layer."""
    return {f"{prefix}.{i}.{name}": shape for i in range(count) for name, shape in layer.items()}


CHECKPOINTS: dict[str, Callable[[Fields], Shapes]] = {
    "exaone": exaone,
    "internlm2": internlm2,
    "minicpm": minicpm,
}


def checkpoint(fields: Fields) -> dict[str, torch.Tensor]:
    """The tensors of such a checkpoint, without data."""
    shapes = CHECKPOINTS[fields["model_type"]](fields)
    named = {name if name.endswith(".bias") else f"{name}.weight": shape for name, shape in shapes.items()}
    return {name: torch.empty(shape, dtype=torch.float16, device="meta") for name, shape in named.items()}
