"""One point of a sweep: a model that differs from the base in some fields, and the figures one compares it by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcalc.compute.flops import text_part
from paramcalc.containers import Block, Run
from paramcalc.count import Figures
from paramcalc.errors import ParamcalcError
from paramcalc.footprint import weights
from paramcalc.footprint.assumptions import Assumptions
from paramcalc.footprint.formats import ALL
from paramcalc.footprint.formats_known import format_named
from paramcalc.footprint.gguf import is_gguf
from paramcalc.frozen import Frozen
from paramcalc.model import Model
from paramcalc.scaling import latency
from paramcalc.scaling.amounts import Adder, Amounts
from paramcalc.spec import Component

if TYPE_CHECKING:
    from paramcalc.footprint.devices import Device
    from paramcalc.scaling.rules import Rules

TRAINING = 3  # forward, and twice as much backward
CHINCHILLA = 20  # tokens for each parameter (Hoffmann et al. 2022, 2203.15556, table 3)


class Question(Frozen):
    """What is asked of every point."""

    assumed: Assumptions
    training_tokens: int | None = None  # None: Chinchilla's 20 for each parameter that a token uses
    device: Device | None = None

    def stated(self, base: Model, follow: Rules) -> Figures:
        """The assumptions that a report states."""
        return {
            "context": self.assumed.context,
            "batch": self.assumed.batch,
            "dtype": self.assumed.dtype or base.dtype,
            "rules": follow.values(),
            "training_tokens": self.training_tokens,
            "gpu": self.device.name if self.device else None,
            "latency": latency.assumed(self.device) if self.device else None,
        }


class Bench:
    """The base, and what is asked of the models around it."""

    def __init__(self, base: Model, question: Question) -> None:
        self.base, self.question = base, question
        self.adder = Adder(base, question.assumed)
        self.size = element_bytes(base, question.assumed)
        self.by_layers = weights.told_by_layers(base, question.assumed)
        self.known: dict[Any, list[tuple[int, tuple[range, ...]]]] = {}
        self.decodes = any(stack.causal for stack in text_part(base.tree).stacks())

    def warnings(self) -> list[str]:
        """What is to be said of the base, and of the format its weights are in."""
        return [*self.base.warnings, *weights.plan(self.base, self.question.assumed).warnings]

    def model(self, changes: Mapping[str, Any]) -> Model:
        """The base with other values in some fields. Raises ParamcalcError where there is no such model."""
        return self.base.but(tree=self.base.variants.tree(changes))

    def point(self, changes: Mapping[str, Any]) -> Figures:
        """Its figures, or why there is no such model."""
        try:
            tree = self.base.variants.tree(changes)
            return {"valid": True, "problem": None, "fields": dict(changes), **self.figures(tree)}
        except ParamcalcError as error:
            return {"valid": False, "problem": error.message, "fields": dict(changes)}

    def figures(self, tree: Component) -> Figures:
        """The figures of a model under the same names as `count` and `memory` have."""
        sums = self.adder.amounts(tree)
        length, tokens = self.question.assumed.context, self.question.training_tokens or CHINCHILLA * sums.active
        forward = sums.forward if self.decodes else sums.forward // length
        stored = self.weight_bytes(tree, sums)
        return {
            "parameters": {
                "total": sums.total,
                "active": sums.active,
                "non_embedding": sums.total - sums.embedding - sums.head,
                "embedding": sums.embedding,
            },
            "embedding_share": sums.embedding / sums.total if sums.total else 0.0,
            "weights": {"bytes": stored},
            "kv_cache": {"bytes_per_token": sums.kept_per_token},
            "state": {"bytes": sums.state},
            "flops": {
                "forward_per_token": forward,
                "training": TRAINING * sums.reading * tokens // length,
                "training_tokens": tokens,
            },
            "depth": sums.depth,
            "latency": self.latency(tree, sums, stored=stored, forward=forward),
        }

    def weight_bytes(self, tree: Component, sums: Amounts) -> int:
        """Bytes of the weights in the format that is assumed: what `memory` says."""
        if self.size is not None and not sums.buffers:
            return self.size * sums.total
        short = None if self.by_layers else shortened(tree)
        if short is None:
            return sum(one.bytes for one in self.stored(tree))
        key = short.tree.key()
        if key not in self.known:
            self.known[key] = [(one.bytes, one.weight.layers) for one in self.stored(short.tree)]
        return sum(size * (short.repeats[layers[0].start] if layers else 1) for size, layers in self.known[key])

    def stored(self, tree: Component) -> tuple[weights.Stored, ...]:
        """Every tensor as it is stored."""
        return weights.plan(self.base.but(tree=tree), self.question.assumed).stored

    def latency(self, tree: Component, sums: Amounts, *, stored: int, forward: int) -> Figures | None:
        """The estimate for one decoding step of the batch, where a device is asked for and the model decodes."""
        device, batch = self.question.device, self.question.assumed.batch
        if device is None or not self.decodes:
            return None
        tied = any(tie.category == "head" for tie in tree.all_ties())
        elements = latency.read(
            total=sums.total,
            active=sums.active,
            routed=sums.routed,
            looked_up=0 if tied else sums.embedding,
            batch=batch,
        )
        moved = stored * elements // max(1, sums.total) + sums.kept + sums.state
        return latency.latency(device, moved=moved, flops=batch * forward, layers=sums.depth)


def element_bytes(model: Model, assumed: Assumptions) -> int | None:
    """Bytes of each parameter, where all have the same; None where tensors must be asked one by one."""
    simple = model.dtype if assumed.dtype is None and model.quantization is None else assumed.dtype
    if simple is None or assumed.dtype_of or is_gguf(simple):
        return None
    form = format_named(simple)
    if form.reach != ALL or form.extras or form.values.block_elements != 1:
        return None
    return form.values.block_bytes


class Shortened(NamedTuple):
    """A model with one layer of each kind, and how many there are of the layer with each number."""

    tree: Component
    repeats: list[int]


def shortened(tree: Component) -> Shortened | None:
    """A model that stands for all depths of it; None where its layers are not in one stack that it holds itself."""
    stacks = list(tree.stacks())
    name = next((name for name, part in tree.parts().items() if part is stacks[0]), None) if len(stacks) == 1 else None
    if name is None or not isinstance(tree, Block):
        return None
    kinds = [(layer, copies) for _, layer, copies in stacks[0].kinds()]
    short = stacks[0].but(runs=tuple(Run(1, layer) for layer, _ in kinds), first=0)
    return Shortened(tree.but(items={**tree.items, name: short}), [int(copies) for _, copies in kinds])
