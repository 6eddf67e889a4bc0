"""The published rules of thumb beside the exact figures, and why they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramcalc.model import Model
from paramcalc.tree.workload import Workload

if TYPE_CHECKING:
    from paramcalc.reports.shapes.count import ShareDict
    from paramcalc.reports.shapes.flops import RulesDict

FLOPS_PER_PARAMETER = 6  # forward and backward: three products, each of a multiplication and an addition


def training_rules(model: Model, asked: Workload, square: int) -> RulesDict:
    """Training FLOPs by published rules, for the same tokens; `square` is what attention takes without any mask.

    6ND (Kaplan et al. 2020, 2001.08361, section 2.1; Hoffmann et al. 2022, 2203.15556, appendix F): N are the
    parameters a token uses, D the tokens. Kaplan's N has no embeddings and no head; Chinchilla's has all. Neither
    counts attention's products of activations.

    PaLM (Chowdhery et al. 2022, 2204.02311, appendix B): 6N + 12 L H Q T for each token; its second term is three
    times the attention term here, the whole square.

    Narayanan et al. 2021 (2104.04473, section 5.1): 96 B s l h^2 (1 + s / 6h + V / 16 l h) holds for GPT layers (four
    matrices of h x h, two of h x 4h) that are recomputed in the backward pass; it has no biases, counts the head three
    times and everything else four times. It is not evaluated here: `with_recomputation` is four times all.
    """
    from paramcalc.counting.count import count_figures

    counted = count_figures(model)
    none: ShareDict = {"total": 0, "active": 0}
    p, components = counted["parameters"], counted["components"]
    outside = components.get("embedding", none)["active"] + components.get("head", none)["active"]
    tokens = asked.tokens * asked.batch
    return {
        "six_nd": FLOPS_PER_PARAMETER * p["active"] * tokens,
        "six_nd_non_embedding": FLOPS_PER_PARAMETER * (p["active"] - outside) * tokens,
        "palm": FLOPS_PER_PARAMETER * p["active"] * tokens + 3 * square,
    }
