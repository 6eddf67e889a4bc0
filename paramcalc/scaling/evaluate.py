"""One point of a sweep: a model that differs from the base in some fields, and its figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from operator import mul
from typing import TYPE_CHECKING, Any

from paramcalc.assumptions import Assumptions
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.interning import InternPool
from paramcalc.base.value import Frozen
from paramcalc.model import Model
from paramcalc.scaling import latency
from paramcalc.scaling.scaling_rules import ImpossibleError
from paramcalc.scaling.totals import CountedPart, Totals, TotalsFolder, counted_parts
from paramcalc.storage import weights
from paramcalc.storage.formats.format import ALL_TENSORS
from paramcalc.storage.formats.registry import format_named
from paramcalc.storage.gguf import is_gguf
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, stacks
from paramcalc.tree.language import language_model

if TYPE_CHECKING:
    from paramcalc.footprint.devices import Device
    from paramcalc.reports.shapes.scaling import LatencyDict, OutcomeDict, PointFiguresDict, SweepAssumptionsDict
    from paramcalc.scaling.scaling_rules import ScalingRules

FORWARD_AND_BACKWARD = 3  # forward, and twice as much backward
NO_LAYER = -1  # layer number of tensors outside of layers
TOKENS_PER_PARAMETER = 20  # tokens for each parameter (Hoffmann et al. 2022, 2203.15556, table 3)


class SweepSettings(Frozen):
    """The settings of a sweep: the same for every point."""

    assumed: Assumptions
    training_tokens: int | None = None  # None: 20 for each active parameter (Chinchilla)
    device: Device | None = None

    def stated(self, base: Model, rules: ScalingRules) -> SweepAssumptionsDict:
        """The assumptions that a report states."""
        return {
            "context": self.assumed.context,
            "batch": self.assumed.batch,
            "dtype": self.assumed.dtype or (base.dtype if base.quantization is None else None),
            "rules": {
                "heads": rules.heads,
                "kv_heads": rules.kv_heads,
                "ffn": rules.ffn,
                "multiple_of": rules.multiple_of,
            },
            "training_tokens": self.training_tokens,
            "gpu": self.device.name if self.device else None,
            "latency": latency.latency_assumptions(self.device) if self.device else None,
        }


class Evaluator:
    """Figures of the models around a base, under the same settings."""

    def __init__(self, base: Model, settings: SweepSettings) -> None:
        self.base, self.settings = base, settings
        self.adder = TotalsFolder(base, settings.assumed)
        self.size = element_bytes(base, settings.assumed)
        self.by_layers = weights.depends_on_layer_index(base, settings.assumed)
        self.build = base.variants.builder()
        self.values = base.variants.values()
        self.stated = {one.key: one.value for one in self.values.values()}
        self.pool = InternPool()
        self.known: dict[Hashable, tuple[list[int] | None, Sequence[tuple[Hashable, CountedPart]]]] = {}
        self.base_sums = self.sums(base)
        self.decodes = any(stack.causal for stack in stacks(language_model(base.tree)))

    def warnings(self) -> list[str]:
        """Warnings about the base and about the format of its weights."""
        return [*self.base.warnings, *weights.storage_plan(self.base, self.settings.assumed).warnings]

    def model(self, changes: Mapping[str, Any]) -> Model:
        """The base with other values in some fields. Raises ParamcalcError for impossible values."""
        return self.base.replace(tree=self.pool.call(self.build, changes))

    def checked(self, changes: Mapping[str, Any], axis: str) -> Mapping[str, Any]:
        """The changes for another width or depth. Raises ImpossibleError if they leave the model as it is.

        That happens if a recipe takes the size from another field.
        """
        if all(self.stated.get(key) == value for key, value in changes.items()):
            return changes
        try:
            same = self.sums(self.model(changes)) == self.base_sums
        except ParamcalcError:  # reported at the point
            return changes
        if same:
            names = ", ".join(changes)
            raise ImpossibleError(
                f"{axis}: {names} does not change this model", "sweep another field: --sweep FIELD=VALUES"
            )
        return changes

    def sums(self, model: Model) -> Totals:
        """The totals of a model."""
        return self.adder.of_parts([(unit.key(), unit) for unit in counted_parts(model.tree)])

    def point(self, changes: Mapping[str, Any]) -> OutcomeDict:
        """The figures of the model with these changes, or the reason why it is impossible."""
        try:
            return self.row(changes, self.model(changes))
        except ParamcalcError as error:
            return {"valid": False, "problem": error.message, "fields": dict(changes)}

    def row(self, changes: Mapping[str, Any], model: Model) -> OutcomeDict:
        """The row of a valid model."""
        return {"valid": True, "problem": None, "fields": dict(changes), **self.figures(model)}

    def figures(self, model: Model) -> PointFiguresDict:
        """The figures of a model under the same names as `count` and `memory` have."""
        found = [(unit.key(), unit) for unit in counted_parts(model.tree)]
        sums = self.adder.of_parts(found)
        length, tokens = (
            self.settings.assumed.context,
            self.settings.training_tokens or TOKENS_PER_PARAMETER * sums.active,
        )
        forward = sums.forward if self.decodes else sums.forward // length
        stored = self.weight_bytes(model, found, sums)
        return {
            "parameters": {
                "total": sums.total,
                "active": sums.active,
                "non_embedding": sums.total - sums.embedding - sums.head,
                "embedding": sums.embedding,
            },
            "embedding_share": sums.embedding / sums.total if sums.total else 0.0,
            "weights": {"bytes": stored},
            "kv_cache": {"bytes_per_token": sums.cache_per_token},
            "state": {"bytes": sums.state},
            "flops": {
                "forward_per_token": forward,
                "training": FORWARD_AND_BACKWARD * sums.reading * tokens // length,
                "training_tokens": tokens,
            },
            "depth": sums.depth,
            "latency": self.latency(sums, stored=stored, forward=forward),
        }

    def weight_bytes(self, model: Model, found: Sequence[tuple[Hashable, CountedPart]], sums: Totals) -> int:
        """Bytes of the weights in the assumed format, as `memory` reports them."""
        if self.size is not None and not sums.buffers:
            return self.size * sums.total
        key = tuple(model.tree.parts()), *[key for key, _ in found]
        one = self.known.get(key)
        if one is None:  # the parts are stored too: their ids are part of the key
            one = self.known[key] = (None if self.by_layers else self.bytes_by_layer(model)), found
        sizes, _ = one
        if sizes is None:
            return sum(one.bytes for one in self.stored(model))
        times: dict[int, int] = defaultdict(int)  # layers of each kind, in order of first appearance
        for _, unit in found:
            if unit.layer is not None:
                times[id(unit.layer.layer)] += unit.times
        return sum(map(mul, sizes, (1, *times.values())))

    def bytes_by_layer(self, model: Model) -> list[int] | None:
        """Bytes outside of the layers, then bytes of one layer of each kind; None if these do not add up to all."""
        short = one_of_each_layer(model.tree)
        if short is None:
            return None
        sizes: dict[int, int] = defaultdict(int)
        for one in self.stored(model.replace(tree=short)):
            sizes[one.weight.layers[0].start if one.weight.layers else NO_LAYER] += one.bytes
        return [sizes[number] for number in range(NO_LAYER, max(sizes) + 1)]

    def stored(self, model: Model) -> tuple[weights.StoredTensors, ...]:
        """Every tensor as it is stored."""
        return weights.storage_plan(model, self.settings.assumed).stored

    def latency(self, sums: Totals, *, stored: int, forward: int) -> LatencyDict | None:
        """The estimate for one decoding step of the batch; None without a device or a decoder."""
        device, batch = self.settings.device, self.settings.assumed.batch
        if device is None or not self.decodes:
            return None
        elements = latency.elements_read(
            total=sums.total,
            active=sums.active,
            routed=sums.routed,
            looked_up=0 if sums.tied_heads else sums.embedding,
            batch=batch,
        )
        moved = stored * elements // max(1, sums.total) + sums.cache + sums.state
        return latency.decode_latency(device, moved=moved, flops=batch * forward, layers=sums.depth)


def element_bytes(model: Model, assumed: Assumptions) -> int | None:
    """Bytes per parameter if they are the same for all; None if they depend on the tensor."""
    simple = model.dtype if assumed.dtype is None and model.quantization is None else assumed.dtype
    if simple is None or assumed.dtype_of or is_gguf(simple):
        return None
    form = format_named(simple)
    if form.applies_to != ALL_TENSORS or form.extras or form.values.block_elements != 1:
        return None
    return form.values.block_bytes


def one_of_each_layer(tree: Component) -> Component | None:
    """The model with one layer of each kind; None unless all layers are in one stack at the top of the tree."""
    found = stacks(tree)
    name = next((name for name, part in tree.parts().items() if part is found[0]), None) if len(found) == 1 else None
    if name is None or not isinstance(tree, Block):
        return None
    runs = tuple(Run(1, kind.layer) for kind in found[0].layer_kinds())
    return tree.replace(items={**tree.items, name: found[0].replace(runs=runs, first=0)})
