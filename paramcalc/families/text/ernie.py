"""ERNIE 4.5, dense and with experts."""

from __future__ import annotations

from typing import Any

from paramcalc.components import Router
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.decoder import decoder, ignored_fields
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, SPARSE, first_dense, mlp_types
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, block


@family("ernie4_5")
def ernie4_5(c: Config) -> Block:
    """Llama with one flag for all biases (Ernie4_5ForCausalLM)."""
    return decoder(c, gqa(c, bias=c.use_bias), glu(c, bias=c.use_bias))


@family("ernie4_5_moe")
def ernie4_5_moe(c: Config) -> Block:
    """Llama with experts in every moe_layer_interval-th layer of a range of layers (Ernie4_5_MoeForCausalLM)."""
    bias = c.use_bias
    ignored_fields(c, moe_use_aux_free=True)
    unbuilt_mtp(c)
    shared: dict[str, Any] = dict(shared_count=c.moe_num_shared_experts, shared_bias=bias)
    corrected: dict[str, Any] = dict(correction=True, correction_counted=True)
    experts = moe(c, c.moe_intermediate_size, experts=c.num_experts, **shared, **corrected)
    ffn = {DENSE: glu(c, bias=bias), SPARSE: experts}
    return decoder(c, gqa(c, bias=bias), ffn, ffn_words=ernie_ffn_types(c), head_bias=bias)


def ernie_ffn_types(c: Config) -> list[str]:
    """The FFN of each layer, dense or sparse; an end index of -1 is the last layer."""
    depth, last = c.num_hidden_layers, c.raw("moe_layer_end_index")
    end = depth - 1 if last in (None, -1) else c.moe_layer_end_index
    step, start = c.moe_layer_interval, c.moe_layer_start_index
    return [SPARSE if (i + 1) % step == 0 and start <= i <= end else DENSE for i in range(depth)]


@family("ernie4_5_vl_moe_text")
def ernie4_5_vl_moe_text(c: Config) -> Block:
    """ERNIE 4.5 with experts for text, experts for images, and shared ones for both (Ernie4_5_VLMoeTextModel).

    The active parameters are those of a text token.
    """
    bias, widths = c.use_bias, c.list_of("moe_intermediate_size") or [1536, 512]
    c.require(len(widths) == 2, f"moe_intermediate_size has {len(widths)} entries, not one for text and one for images")
    text, image = (c.size("moe_intermediate_size", width) for width in widths)
    router: dict[str, Any] = dict(correction=True, correction_counted=True)
    n = c.moe_num_shared_experts
    experts = moe(
        c, text, experts=c.num_experts, shared=n * text if n else None, shared_count=n, shared_bias=bias, **router
    )
    images = Router(width=c.hidden_size, experts=c.num_experts, correction=True, correction_counted=True, per="tower")
    image_experts = moe(c, image, experts=c.num_experts, router=images).replace(top_k=0)
    ffn = {DENSE: glu(c, bias=bias), SPARSE: block(text=experts, image=image_experts)}
    return decoder(c, gqa(c, bias=bias), ffn, ffn_words=mlp_types(c, first_dense(c, 1)))
