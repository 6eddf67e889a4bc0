"""Published rules of thumb for training FLOPs, for comparison with the exact figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramcalc.model import Model
from paramcalc.tree.workload import Workload

if TYPE_CHECKING:
    from paramcalc.reports.shapes.count import ShareDict
    from paramcalc.reports.shapes.flops import RulesDict

FLOPS_PER_PARAMETER = 6  # forward and backward: three products, each of a multiplication and an addition


def training_rules(model: Model, workload: Workload, square: int) -> RulesDict:
    """Training FLOPs by published rules, for the same tokens; `square` is the FLOPs of attention without a mask.

    6ND (Kaplan et al. 2020, arXiv:2001.08361, section 2.1; Hoffmann et al. 2022, arXiv:2203.15556, appendix F): N is
    the number of active parameters, D the number of tokens. N excludes embeddings and head in Kaplan et al. and
    includes them in Hoffmann et al. Neither counts the attention products of activations.

    PaLM (Chowdhery et al. 2022, arXiv:2204.02311, appendix B): 6N + 12 L H Q T for each token. Its second term is three
    times the forward attention FLOPs here, over the full square.

    Narayanan et al. 2021 (arXiv:2104.04473, section 5.1): 96 B s l h^2 (1 + s / 6h + V / 16 l h) applies to GPT layers
    (four matrices of h x h, two of h x 4h) that are recomputed in the backward pass. It has no biases, counts the head
    three times and everything else four times. It is not evaluated here: `with_recomputation` is four times the total.
    """
    from paramcalc.counting.count import count_figures

    counted = count_figures(model)
    none: ShareDict = {"total": 0, "active": 0}
    p, components = counted["parameters"], counted["components"]
    outside = components.get("embedding", none)["active"] + components.get("head", none)["active"]
    tokens = workload.tokens * workload.batch
    return {
        "six_nd": FLOPS_PER_PARAMETER * p["active"] * tokens,
        "six_nd_non_embedding": FLOPS_PER_PARAMETER * (p["active"] - outside) * tokens,
        "palm": FLOPS_PER_PARAMETER * p["active"] * tokens + 3 * square,
    }
