"""Command A Vision and Aya Vision."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.vision_language import wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear, Norm


@family("cohere2_vision", "aya_vision", ties="above")
def cohere2_vision(c: Config) -> Component:
    """SigLIP, merged patches, a gated projection, Command R (AyaVisionForConditionalGeneration)."""
    aya, side = c.family == "aya_vision", c.downsample_factor

    def projector(v: Config, d: int) -> Block:
        d_in, hidden = v.hidden_size * side * side, c.alignment_intermediate_size or d
        half = symbolic("half", hidden // 2, origin="alignment width / 2")
        up, down = Linear(d_in=d_in, d_out=hidden, bias=True), Linear(d_in=half, d_out=d, bias=True)
        return block("projector", norm=Norm(width=d_in, bias=True) if aya else None, linear_1=up, linear_2=down)

    return wrap_any_language_model(c, projector)
