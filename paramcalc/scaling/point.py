"""One point of a sweep: a model that differs from the base in some fields, and the figures one compares it by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paramcalc.compute.flops import operations, text_part
from paramcalc.compute.setting import setting
from paramcalc.count import Figures
from paramcalc.errors import ParamcalcError
from paramcalc.footprint import cache, weights
from paramcalc.footprint.assumptions import Assumptions
from paramcalc.footprint.formats import ALL
from paramcalc.footprint.formats_known import format_named
from paramcalc.frozen import Frozen
from paramcalc.model import Model
from paramcalc.scaling.latency import latency
from paramcalc.spec import GENERATING, Component

if TYPE_CHECKING:
    from paramcalc.footprint.devices import Device

TRAINING = 3  # forward, and twice as much backward
CHINCHILLA = 20  # tokens for each parameter (Hoffmann et al. 2022, 2203.15556, table 3)


class Question(Frozen):
    """What is asked of every point."""

    assumed: Assumptions
    training_tokens: int | None = None  # None: Chinchilla's 20 for each parameter that a token uses
    device: Device | None = None


class Bench:
    """The base and what its points share: equal layers are counted once, in however many points they are."""

    def __init__(self, base: Model, question: Question) -> None:
        self.base, self.question = base, question
        context = question.assumed.context
        self.decoding = setting(tokens=1, context=context)
        self.reading = setting(tokens=context, causal=True)
        self.encoding = setting(tokens=context, source=context)
        self.pool: dict[Any, dict[str, Any]] = {}

    def model(self, changes: Mapping[str, Any]) -> Model:
        """The base with other values in some fields. Raises ParamcalcError where there is no such model."""
        tree = self.base.variants.tree(changes)
        for stack in tree.stacks():
            for run in stack.runs:
                run.layer.remembers_in(self.pool)
        return self.base.but(tree=tree)

    def point(self, changes: Mapping[str, Any]) -> Figures:
        """Its figures, or why there is no such model."""
        try:
            return {"valid": True, "problem": None, "fields": dict(changes), **self.figures(self.model(changes))}
        except ParamcalcError as error:
            return {"valid": False, "problem": error.message, "fields": dict(changes)}

    def figures(self, model: Model) -> Figures:
        """The figures of a model under the same names as `count` and `memory` have."""
        assumed, text = self.question.assumed, text_part(model.tree)
        parameters = self.parameters(model.tree)
        total, stored = parameters["total"], weight_bytes(model, assumed)
        kept, stacks = cache.figures(model, assumed), list(text.stacks())
        forward, reading = self.operations(text, generates=any(stack.role in GENERATING for stack in stacks))
        length, tokens = assumed.context, self.question.training_tokens or CHINCHILLA * parameters["active"]
        depth = sum(int(run.repeat) * run.passes for stack in stacks for run in stack.runs)
        return {
            "parameters": parameters,
            "embedding_share": parameters["embedding"] / total if total else 0.0,
            "weights": {"bytes": stored},
            "kv_cache": {"bytes_per_token": kept["kv_cache"]["bytes_per_token"]},
            "state": {"bytes": kept["state"]["bytes"]},
            "flops": {
                "forward_per_token": forward,
                "training": TRAINING * reading * tokens // length,
                "training_tokens": tokens,
            },
            "depth": depth,
            "latency": self.latency(parameters, stored, kept, forward=forward, depth=depth),
        }

    def parameters(self, tree: Component) -> dict[str, int]:
        """Total, active and so on, as `count` has them."""
        total = active = embedding = outside = 0
        for category, role, elements, used in tree.tallies():
            if role == "parameter":
                total += elements
                active += used
                embedding += elements if category == "embedding" else 0
                outside += elements if category in ("embedding", "head") else 0
        return {"total": total, "active": active, "non_embedding": total - outside, "embedding": embedding}

    def operations(self, text: Component, *, generates: bool) -> tuple[int, int]:
        """For one more token at the end of the context, and for reading all of it; of an encoder, the mean of all."""
        reading = self.reading if generates else self.encoding
        works = list(text.work())
        whole = sum(operations(works, reading))
        return sum(operations(works, self.decoding)) if generates else whole // reading.tokens, whole

    def latency(self, parameters: dict[str, int], stored: int, kept: Figures, *, forward: int, depth: int) -> Any:
        """The estimate for one decoding step of the batch, where a device is asked for."""
        device, batch = self.question.device, self.question.assumed.batch
        if device is None:
            return None
        used = stored * min(parameters["total"], batch * parameters["active"]) // max(1, parameters["total"])
        moved = used + kept["kv_cache"]["bytes"] + kept["state"]["bytes"]
        return latency(device, moved=moved, flops=batch * forward, layers=depth)


def weight_bytes(model: Model, assumed: Assumptions) -> int:
    """Bytes of the weights in the format that is assumed: what `memory` says."""
    simple = model.dtype if assumed.dtype is None and model.quantization is None else assumed.dtype
    if simple is not None and not assumed.dtype_of:
        form, tallies = format_named(simple), list(model.tree.tallies())
        linear = form.reach == ALL and not form.extras and form.values.block_elements == 1
        if linear and all(role == "parameter" for _, role, _, _ in tallies):
            return form.values.bytes(sum(total for _, _, total, _ in tallies))
    return sum(one.bytes for one in weights.plan(model, assumed).stored)
