"""Parameter counts: a fold over the component tree, without family names, config keys or branches on component types.

The figures are plain dicts; `CountReport` is their schema. The JSON output is the dict itself, which equals the dump of
the report, so that the command need not import pydantic.
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

    `include_mtp` adds the multi-token-prediction modules in the checkpoint to the total. Raises ParamcalcError if
    `model` is not a Model.
    """
    from paramcalc.reports.count import CountReport

    if not isinstance(model, Model):
        raise ParamcalcError(f"count needs a Model, not a {type(model).__name__}", "make one with paramcalc.load(...)")

    return CountReport.model_validate(count_figures(model, include_mtp=include_mtp))


def count_figures(model: Model, *, include_mtp: bool = False) -> CountReportDict:
    """`count` as a dict, with the keys of `CountReport` in their order."""
    counted = {"parameter", "mtp"} if include_mtp else {"parameter"}
    weights, ties = list(model.tree.weights()), list(model.tree.ties())
    shares = parameters_by_category(w for w in weights if w.role in counted)
    total, active = sum(s["total"] for s in shares.values()), sum(s["active"] for s in shares.values())
    embedding, head = (shares[c]["total"] if c in shares else 0 for c in ("embedding", "head"))
    shared_with_head = embedding_elements_of_heads(weights, {tie.owner for tie in ties if tie.category == "head"})
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": model_info(model),
        "warnings": [*model.warnings, *quantised_bytes_note(model)],
        "parameters": {
            "total": total,
            "active": active,
            "active_without_input_embedding": active - embedding + shared_with_head,
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
    """Identity of the model, and whether its figures are exact."""
    return {
        "name": model.name,
        "family": model.family,
        "architecture": model.architecture,
        "source": model.source,
        "status": model.status,
        "dtype": model.dtype,
    }


def quantised_bytes_note(model: Model) -> list[str]:
    """A note for a quantised checkpoint: its bytes differ from those in one dtype."""
    if not model.quantization:
        return []
    method = model.quantization.get("quant_method", "quantised")
    return [f"{model.family}: the checkpoint is {method}; bytes are for unquantised {model.dtype}"]


def elements(weights: Iterable[Weight]) -> int:
    """Number of scalars in these tensors, with all copies."""
    return sum(w.elements * int(w.copies) for w in weights)


def active_elements(weights: Iterable[Weight]) -> int:
    """Number of scalars that one token uses."""
    return sum(w.elements * int(w.active) for w in weights)


def parameters_by_category(weights: Iterable[Weight]) -> dict[str, ShareDict]:
    """Total and active parameters per category, in the order of CATEGORIES; empty categories are omitted."""
    groups: dict[Category, list[Weight]] = defaultdict(list)
    for w in weights:
        groups[w.category].append(w)
    shares: dict[str, ShareDict] = {
        c: {"total": elements(groups[c]), "active": active_elements(groups[c])} for c in CATEGORIES if c in groups
    }
    return {category: share for category, share in shares.items() if share["total"]}


def embedding_elements_of_heads(weights: Iterable[Weight], owners: set[str]) -> int:
    """Elements of embedding tables that are tied to an output head, and are therefore also multiplied."""
    return elements(w for w in weights if w.category == "embedding" and w.name.removesuffix(".weight") in owners)


def layer_runs(tree: Component) -> list[LayerRunDict]:
    """The layers of every stack, in order, run-length encoded; the figures are per layer."""
    runs: list[LayerRunDict] = []
    for stack in stacks(tree):
        kinds = [(kind.layer.label(), layer_share(kind.layer)) for kind in stack.layer_kinds()]
        for run, number in zip(stack.runs, stack.kind_of_run(), strict=True):
            kind, share = kinds[number]
            runs.append({"stack": stack.role, "repeat": int(run.repeat), "kind": kind, **share})
    return runs


def layer_share(layer: Component) -> ShareDict:
    """Total and active parameters of one layer."""
    weights = [w for w in layer.weights() if w.role == "parameter"]
    return {"total": elements(weights), "active": active_elements(weights)}
