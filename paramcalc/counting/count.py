"""The fold: from a component tree to counts. No family names, no config keys, no branch on a component's type.

The figures are plain data; `CountReport` is their schema. A JSON answer is the figures written out, which is what the
report's dump would be, and loads no schema library for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from paramcalc.base.dtypes import dtype
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.model import Model
from paramcalc.tree.component import Component
from paramcalc.tree.containers import stacks
from paramcalc.tree.weights import CATEGORIES, Category, Weight

if TYPE_CHECKING:
    from paramcalc.reports.count import CountReport
    from paramcalc.reports.shapes.base import ModelInfoDict
    from paramcalc.reports.shapes.count import CountReportDict, LayerRunDict, ShareDict


def count(model: Model, *, include_mtp: bool = False) -> CountReport:
    """Count a model's parameters: total, active, by category, by layer.

    `include_mtp` adds the multi-token-prediction modules that the checkpoint ships to the total. Raises ParamcalcError
    for anything but a Model.
    """
    from paramcalc.reports.count import CountReport

    if not isinstance(model, Model):
        raise ParamcalcError(f"count wants a Model, not a {type(model).__name__}", "make one with paramcalc.load(...)")

    return CountReport.model_validate(count_figures(model, include_mtp=include_mtp))


def count_figures(model: Model, *, include_mtp: bool = False) -> CountReportDict:
    """The same as plain data: the keys and the order of `CountReport`."""
    counted = {"parameter", "mtp"} if include_mtp else {"parameter"}
    weights, ties = list(model.tree.weights()), list(model.tree.ties())
    shares = parameters_by_category(w for w in weights if w.role in counted)
    total, active = sum(one["total"] for one in shares.values()), sum(one["active"] for one in shares.values())
    embedding, head = (shares[c]["total"] if c in shares else 0 for c in ("embedding", "head"))
    multiplied = matrices_of_heads(weights, {tie.owner for tie in ties if tie.category == "head"})
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": model_info(model),
        "warnings": [*model.warnings, *quantised_bytes_note(model)],
        "parameters": {
            "total": total,
            "active": active,
            "active_without_input_embedding": active - embedding + multiplied,
            "non_embedding": total - embedding - head,
            "buffers": elements(w for w in weights if w.role == "buffer"),
            "mtp": elements(w for w in weights if w.role == "mtp"),
        },
        "components": shares,
        "layers": layer_runs(model.tree),
        "tied": [[tie.name, tie.owner] for tie in ties],
        "weights": {"dtype": model.dtype, "bytes": dtype(model.dtype).bytes(total)},
    }


def model_info(model: Model) -> ModelInfoDict:
    """Which model was counted, as what, and how far the figures are to be trusted."""
    return {
        "name": model.name,
        "family": model.family,
        "architecture": model.architecture,
        "source": model.source,
        "status": model.status,
        "dtype": model.dtype,
    }


def quantised_bytes_note(model: Model) -> list[str]:
    """That a quantised checkpoint takes other bytes than its parameters in one dtype."""
    if not model.quantization:
        return []
    method = model.quantization.get("quant_method", "quantised")
    return [f"{model.family}: the checkpoint is {method}; the bytes are those of unquantised {model.dtype}"]


def elements(weights: Iterable[Weight]) -> int:
    """All scalars in these tensors."""
    return sum(w.elements * int(w.copies) for w in weights)


def active_elements(weights: Iterable[Weight]) -> int:
    """The scalars that one token uses."""
    return sum(w.elements * int(w.active) for w in weights)


def parameters_by_category(weights: Iterable[Weight]) -> dict[str, ShareDict]:
    """Total and active parameters per category, in the order of CATEGORIES, only those present."""
    found: dict[Category, list[Weight]] = defaultdict(list)
    for w in weights:
        found[w.category].append(w)
    shares: dict[str, ShareDict] = {
        c: {"total": elements(found[c]), "active": active_elements(found[c])} for c in CATEGORIES if c in found
    }
    return {category: share for category, share in shares.items() if share["total"]}


def matrices_of_heads(weights: Iterable[Weight], owners: set[str]) -> int:
    """Elements of embedding tables that are an output matrix too, and so not merely looked up."""
    return elements(w for w in weights if w.category == "embedding" and w.name.removesuffix(".weight") in owners)


def layer_runs(tree: Component) -> list[LayerRunDict]:
    """The layers of every stack, in order, run-length encoded; the figures are those of one layer."""
    runs: list[LayerRunDict] = []
    for stack in stacks(tree):
        kinds = [(kind.layer.label(), layer_share(kind.layer)) for kind in stack.layer_kinds()]
        for run, number in zip(stack.runs, stack.kind_of_run(), strict=True):
            kind, share = kinds[number]
            runs.append({"stack": stack.role, "repeat": int(run.repeat), "kind": kind, **share})
    return runs


def layer_share(layer: Component) -> ShareDict:
    """Parameters of one layer."""
    weights = [w for w in layer.weights() if w.role == "parameter"]
    return {"total": elements(weights), "active": active_elements(weights)}
