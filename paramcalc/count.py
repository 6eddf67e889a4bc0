"""The fold: from a component tree to counts. No family names, no config keys, no branch on a component's type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from paramcalc.dtypes import dtype
from paramcalc.model import Model
from paramcalc.report import CountReport, LayerRun, Parameters, Share, WeightBytes
from paramcalc.spec import CATEGORIES, Category, Component, Weight


def count(model: Model, *, include_mtp: bool = False) -> CountReport:
    """Count a model's parameters: total, active, by category, by layer.

    `include_mtp` adds the multi-token-prediction modules that the checkpoint ships to the total.
    """
    counted = {"parameter", "mtp"} if include_mtp else {"parameter"}
    weights = list(model.tree.weights())
    ties = list(model.tree.all_ties())
    shares = by_category(w for w in weights if w.role in counted)
    total = sum(share.total for share in shares.values())
    active = sum(share.active for share in shares.values())
    embedding, head = (shares[c].total if c in shares else 0 for c in ("embedding", "head"))
    return CountReport(
        model=model.info,
        warnings=model.warnings,
        parameters=Parameters(
            total=total,
            active=active,
            active_without_input_embedding=active
            - embedding
            + multiplied(weights, {tie.owner for tie in ties if tie.category == "head"}),
            non_embedding=total - embedding - head,
            buffers=elements(w for w in weights if w.role == "buffer"),
            mtp=elements(w for w in weights if w.role == "mtp"),
        ),
        components=shares,
        layers=tuple(layer_runs(model.tree)),
        tied=tuple((tie.name, tie.owner) for tie in ties),
        weights=WeightBytes(dtype=model.info.dtype, bytes=dtype(model.info.dtype).bytes(total)),
    )


def elements(weights: Iterable[Weight]) -> int:
    """All scalars in these tensors."""
    return sum(w.elements * int(w.copies) for w in weights)


def by_category(weights: Iterable[Weight]) -> dict[str, Share]:
    """Total and active parameters per category, in the order of CATEGORIES, only those present."""
    total: dict[Category, int] = defaultdict(int)
    active: dict[Category, int] = defaultdict(int)
    for w in weights:
        total[w.category] += w.elements * int(w.copies)
        active[w.category] += w.elements * int(w.active)
    return {c: Share(total=total[c], active=active[c]) for c in CATEGORIES if total.get(c)}


def multiplied(weights: Iterable[Weight], owners: set[str]) -> int:
    """Elements of embedding tables that are also an output matrix: not merely looked up."""
    return elements(w for w in weights if w.category == "embedding" and w.name.removesuffix(".weight") in owners)


def layer_runs(tree: Component) -> Iterator[LayerRun]:
    """The layers of every stack, in order, run-length encoded."""
    for stack in tree.stacks():
        for run in stack.runs:
            weights = [w for w in run.layer.weights() if w.role == "parameter"]
            yield LayerRun(
                stack=stack.role,
                repeat=int(run.repeat),
                kind=run.layer.label(),
                total=elements(weights),
                active=sum(w.elements * int(w.active) for w in weights),
            )
