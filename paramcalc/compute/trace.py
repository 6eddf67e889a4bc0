"""The trace of a model: one layer of each kind, with the output shape, parameters, FLOPs and cache bytes of each step.

It uses only the component tree: each component states its steps, next to its weights and operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from paramcalc.assumptions import assume
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.compute.flops import workload_for, workload_info
from paramcalc.compute.workload import check_workload
from paramcalc.counting.count import model_info
from paramcalc.counting.tree_rows import layer_name
from paramcalc.footprint.cache import apply_policies
from paramcalc.footprint.cache_dtypes import EntryBytes
from paramcalc.model import Model
from paramcalc.tree.component import Component, Part
from paramcalc.tree.containers import TOWER_ROLES, Block, Mtp, Stack, per_in_stack, stacks
from paramcalc.tree.language import language_model
from paramcalc.tree.leaves import Norm
from paramcalc.tree.state import CacheEntry
from paramcalc.tree.steps import BATCH, CONTEXT, NO_OUTPUT, SAME_SHAPE, SOURCE, TOKENS, Step, StepShape
from paramcalc.tree.weights import TOWER_CATEGORIES
from paramcalc.tree.workload import Workload

if TYPE_CHECKING:
    from paramcalc.reports.shapes.trace import TraceBlockDict, TraceReportDict, TraceStepDict
    from paramcalc.reports.trace import TraceReport


class TracePosition(NamedTuple):
    """The position in a walk through the tree: the role of the stack, and whether it is causal (and has a cache)."""

    model: Model
    workload: Workload
    role: str = "decoder"
    causal: bool = False

    def sizes(self) -> Mapping[str, int]:
        """The sizes of the named axes here: in an encoder, tokens and context are those that it reads."""
        workload = self.workload
        read = workload.tokens if workload.encoder_only else workload.source
        in_encoder = self.role == "encoder"
        return {
            BATCH: workload.batch,
            TOKENS: read if in_encoder else workload.tokens,
            CONTEXT: read if in_encoder else workload.context,
            SOURCE: workload.source,
        }

    def shape(self, shape: StepShape) -> list[int]:
        """A shape in numbers."""
        sizes = self.sizes()
        return [sizes[axis] if isinstance(axis, str) else int(axis) for axis in shape]

    def ops(self, component: Component) -> dict[str, int]:
        """FLOPs of each matrix term below a component, by name, for the whole batch."""
        flops: dict[str, int] = {}
        for term in component.ops():
            times = term._replace(per=per_in_stack(term.per, self.role)).times(self.workload)
            flops[term.name] = flops.get(term.name, 0) + int(term.flops) * int(term.copies) * times
        return flops


class StepRow(NamedTuple):
    """A step and its figures. A shape that repeats the previous one is filled in later."""

    step: Step
    shape: list[int] | None = None  # in numbers; None if the step repeats the previous shape or has no output
    parameters: int = 0
    flops: int = 0
    kept_bytes: int = 0
    add: bool = False  # a residual connection


class TraceBlock(NamedTuple):
    """A part of the model outside its layers, or one layer of a kind."""

    name: str
    rows: list[StepRow]
    kind: str = ""
    role: str = ""
    layers: int = 0
    passes: int = 1
    caches: int = 0


def trace(
    model: Model,
    *,
    tokens: int,
    batch: int = 1,
    context: int | None = None,
    causal: bool = False,
    source: int | None = None,
    counting: str = "needed",
) -> TraceReport:
    """One layer of each kind, step by step in data-flow order: shapes, parameters, FLOPs and cache bytes.

    The arguments and errors are those of `flops`.
    """
    from paramcalc.reports.trace import TraceReport

    if not isinstance(model, Model):
        raise ParamcalcError(f"trace wants a Model, not a {type(model).__name__}", "make one with paramcalc.load(...)")
    workload = check_workload(
        tokens=tokens, batch=batch, context=context, causal=causal, source=source, counting=counting
    )
    return TraceReport.model_validate(trace_figures(model, workload))


def trace_figures(model: Model, workload: Workload) -> TraceReportDict:
    """The trace as a dict with the keys and the order of `TraceReport`."""
    workload = workload_for(model.tree, workload)
    place = TracePosition(model, workload)
    blocks = trace_blocks(language_model(model.tree), place)
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": model_info(model),
        "warnings": list(model.warnings),
        "assumptions": workload_info(workload),
        "blocks": block_figures(blocks, place),
    }


# -- the walk ----------------------------------------------------------------------------------------------------


def trace_blocks(tree: Component, place: TracePosition, prefix: str = "") -> Iterator[TraceBlock]:
    """The blocks of a tree in data-flow order: parts outside the stacks, and one layer of each kind in each stack."""
    for part in tree.children():
        component, name = part.component, f"{prefix}{part.name}"
        if isinstance(component, Mtp) or component.category in TOWER_CATEGORIES:
            continue
        if isinstance(component, Stack):
            yield from trace_layers(name, component, place._replace(role=component.role, causal=component.causal))
        elif stacks(component):
            yield from trace_blocks(component, place, f"{name}.")
        else:
            alone = Block(items={part.name: component})
            role = "encoder" if prefix == "encoder." else "decoder"
            rows = list(step_rows(alone, place._replace(role=role)))
            yield TraceBlock(name, rows)


def trace_layers(name: str, stack: Stack, place: TracePosition) -> Iterator[TraceBlock]:
    """One layer of each kind of a stack."""
    if stack.role in TOWER_ROLES:
        return
    for kind in stack.layer_kinds():
        marked = list(with_residuals(kind.layer))
        yield TraceBlock(
            name=f"{name.rpartition('.')[0]} {layer_name(kind)}".strip(),
            rows=list(step_rows(kind.layer, place, marked)),
            kind=kind.layer.label(),
            role=stack.role,
            layers=int(kind.copies),
            passes=kind.passes,
            caches=kind.cached if stack.causal else 0,
        )


def with_residuals(layer: Component) -> Iterator[tuple[Part, str]]:
    """The parts of a layer, each with the residual sum after it as text, or an empty string."""
    parts = list(layer.children())
    norms = [isinstance(part.component, Norm) for part in parts]
    mixers = [i for i, part in enumerate(parts) if part.component.label()]
    residual = layer.residual if isinstance(layer, Block) else "each"
    if len(mixers) > 1 and not any(norms[mixers[0] : mixers[1]]):
        residual = "together"  # in parallel after one norm
    positions = residual_positions(norms, mixers, residual)
    for i, part in enumerate(parts):
        if i not in positions:
            yield part, ""
        elif residual == "together":
            yield part, " + ".join(["input", *(parts[m].name for m in mixers)])
        else:
            yield part, f"{'input' if i == min(positions) else 'last sum'} + {part.name}"


def residual_positions(norms: list[bool], mixers: list[int], residual: str) -> set[int]:
    """The indices of the parts after which a residual connection is added: see `Block.residual`."""
    if residual == "together":
        return {mixers[-1]} if mixers else set()
    after = {i: i + 1 if i + 1 < len(norms) and norms[i + 1] else i for i in mixers}
    if residual == "normed":
        return set(after.values())
    around = any(norms[i : i + 2] == [True, True] for i in range(min(mixers, default=0), max(mixers, default=0)))
    return set(after.values()) if around else set(mixers)


# -- rows --------------------------------------------------------------------------------------------------------


def step_rows(
    layer: Component, place: TracePosition, parts: Iterable[tuple[Part, str]] | None = None
) -> Iterator[StepRow]:
    """The steps of a layer with their figures; the parameters of all rows add up to those of the layer."""
    flops_by_step, weights = place.ops(layer), parameters(layer)
    bytes_by_step = kept_bytes(layer, place, flops_by_step)
    owners = {tie.name: tie.owner for tie in layer.ties()}
    own_ops = {w.name for w in layer.ops()}
    for part, residual in parts or ((part, "") for part in layer.children()):
        for step in named_steps(part):
            flops = flops_by_step.get(step.name, 0)
            if step.name in own_ops and not flops and step.name not in weights and step.name not in owners:
                continue  # a product that this workload does not execute
            owner = owners.get(step.name)
            if owner:
                step = step._replace(note=f"tied to {owner}")
            shape = None if step.shape in (SAME_SHAPE, NO_OUTPUT) else place.shape(step.shape)
            yield StepRow(step, shape, weights.get(step.name, 0), flops, bytes_by_step.get(step.name, 0))
        if residual:
            yield StepRow(Step("add", SAME_SHAPE, residual), add=True)


def named_steps(part: Part) -> Iterator[Step]:
    """The steps of a part, with names that start with its name."""
    for step in part.component.steps():
        yield step._replace(name=f"{part.name}.{step.name}".removesuffix("."))


def parameters(layer: Component) -> dict[str, int]:
    """Parameters by the path of their part; all experts count, not only those of one token."""
    found: dict[str, int] = {}
    for weight in layer.weights():
        if weight.role == "parameter":
            path = weight.name.rpartition(".")[0]
            found[path] = found.get(path, 0) + weight.elements * int(weight.copies)
    return found


def kept_bytes(layer: Component, place: TracePosition, flops_by_step: Mapping[str, int]) -> dict[str, int]:
    """Bytes of KV cache and state for the whole batch, by the step that produces them.

    `flops_by_step` shows which recurrences this workload executes.
    """
    if not place.causal:
        return {}
    assumed = assume(context=place.workload.context, batch=place.workload.batch, source=place.workload.source)
    entries = EntryBytes(place.model, assumed)
    bytes_by_step: dict[str, int] = {}
    for prefix, component in descendants(layer):
        steps = [step.name for step in component.steps()]
        recurrences = [
            term.name
            for term in component.own_ops()
            if term.term == "recurrence" and flops_by_step.get(prefix + term.name)
        ]
        for entry in apply_policies(component.own_state(), assumed):
            if steps:
                name = f"{prefix}{producing_step(entry, steps, recurrences)}".removesuffix(".")
                bytes_by_step[name] = bytes_by_step.get(name, 0) + assumed.batch * entries.total(entry)
    return bytes_by_step


def producing_step(entry: CacheEntry, steps: list[str], recurrences: list[str]) -> str:
    """The step that produces a cache entry: a recurrence for its state, else `produced_by`, else the last step."""
    if entry.kind.recurrent and recurrences:
        return recurrences[-1]
    return entry.kind.produced_by if entry.kind.produced_by in steps else steps[-1]


def descendants(component: Component, prefix: str = "") -> Iterator[tuple[str, Component]]:
    """A component and all components in it, with the prefix of the names of their steps."""
    yield prefix, component.executed()
    for part in component.executed().children():
        yield from descendants(part.component, f"{prefix}{part.name}.")


def block_figures(blocks: Iterable[TraceBlock], place: TracePosition) -> list[TraceBlockDict]:
    """The blocks as dicts, with every shape in numbers. A residual connection restores the input shape."""
    sizes = place.sizes()
    shape = [sizes[BATCH], sizes[TOKENS]]
    found: list[TraceBlockDict] = []
    for block in blocks:
        shape_in = residual_shape(block.rows) or shape
        steps, shape = step_figures(block.rows, shape_in)
        found.append(
            {
                "name": block.name,
                "kind": block.kind,
                "role": block.role,
                "layers": block.layers,
                "passes": block.passes,
                "caches": block.caches,
                "shape_in": shape_in,
                "shape_out": shape,
                "steps": steps,
            }
        )
    return found


def step_figures(rows: Iterable[StepRow], shape_in: list[int]) -> tuple[list[TraceStepDict], list[int]]:
    """The steps of a block as dicts, and the shape of the last step."""
    shape = shape_in
    found: list[TraceStepDict] = []
    for row in rows:
        if row.add:
            shape = shape_in
        elif row.shape is not None:
            shape = row.shape
        found.append(
            {
                "name": row.step.name,
                "shape": None if row.step.shape == NO_OUTPUT else shape,
                "parameters": row.parameters,
                "flops": row.flops,
                "kept_bytes": row.kept_bytes,
                "add": row.add,
                "note": row.step.note,
            }
        )
    return found, shape


def residual_shape(rows: Sequence[StepRow]) -> list[int] | None:
    """The shape of the first output that is added to the input of the block, which must be that of the input."""
    sums = [i for i, row in enumerate(rows) if row.add]
    shapes = [row.shape for row in rows[: sums[0]] if row.shape is not None] if sums else []
    return shapes[-1] if shapes else None
