"""EXAONE 4 and EXAONE-MoE."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import qk_norm_per_head, sliding
from paramcalc.families.builders.decoder import decoder, norms_after
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, SPARSE, first_dense, full_every, mlp_types
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("exaone4")
def exaone4(c: Config) -> Block:
    """Norms after attention and FFN, QK norms; full attention in every fourth layer (Exaone4ForCausalLM)."""
    unbuilt_mtp(c)
    unasked = c.raw("layer_types") is not None or c.sliding_window is None
    words = full_every(c, 1 if unasked else c.sliding_window_pattern)
    return decoder(c, sliding(qk_norm_per_head(c), c.sliding_window), glu(c), words, layer=norms_after)


@family("exaone_moe")
def exaone_moe(c: Config) -> Block:
    """QK norms, sliding layers, dense layers first, then experts (ExaoneMoeForCausalLM)."""
    window, e, n = c.sliding_window, c.moe_intermediate_size, c.num_shared_experts
    c.require(bool(c.raw("layer_types")) or window is not None, "sliding_window is null and layer_types is missing")
    words = full_every(c, c.sliding_window_pattern)
    ffn = {DENSE: glu(c), SPARSE: moe(c, e, experts=c.num_experts, shared=n * e, shared_count=n, correction=True)}
    ffn_words = mlp_types(c, first_dense(c, c.first_k_dense_replace))
    unbuilt_mtp(c)
    return decoder(c, sliding(qk_norm_per_head(c), window), ffn, words, ffn_words)
