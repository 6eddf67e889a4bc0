"""A model step by step: one layer of each kind, with the shape, parameters, work and bytes kept of every step.

From the component tree alone: each component states its steps, as it states its tensors and its work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from paramcalc.assumptions import assume
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.compute.flops import workload_for, workload_info
from paramcalc.compute.workload import workload
from paramcalc.counting.count import model_info
from paramcalc.counting.tree_rows import layer_name
from paramcalc.footprint.cache import entries_under
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
    """Where a walk through the tree is: in a stack of this role, which keeps what it has seen or not."""

    model: Model
    workload: Workload
    role: str = "decoder"
    causal: bool = False

    def sizes(self) -> Mapping[str, int]:
        """What the words for axes stand for here: an encoder's tokens are those it reads."""
        a = self.workload
        read = a.tokens if a.alone else a.source
        inside = self.role == "encoder"
        return {
            BATCH: a.batch,
            TOKENS: read if inside else a.tokens,
            CONTEXT: read if inside else a.context,
            SOURCE: a.source,
        }

    def shape(self, shape: StepShape) -> list[int]:
        """A shape in numbers."""
        sizes = self.sizes()
        return [sizes[axis] if isinstance(axis, str) else int(axis) for axis in shape]

    def ops(self, component: Component) -> dict[str, int]:
        """FLOPs of each matrix and product below a component, for the whole batch."""
        found: dict[str, int] = {}
        for work in component.ops():
            times = work._replace(per=per_in_stack(work.per, self.role)).times(self.workload)
            found[work.name] = found.get(work.name, 0) + int(work.flops) * int(work.copies) * times
        return found


class StepRow(NamedTuple):
    """A step and its figures; a shape that repeats the last one is filled in later."""

    step: Step
    shape: list[int] | None = None  # in numbers; None where the step repeats the last shape, or has no output
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
    """One layer of each kind, step by step in data-flow order: shapes, parameters, FLOPs and bytes kept.

    The arguments are those of `flops`. Raises ParamcalcError for what is not understood.
    """
    from paramcalc.reports.trace import TraceReport

    if not isinstance(model, Model):
        raise ParamcalcError(f"trace wants a Model, not a {type(model).__name__}", "make one with paramcalc.load(...)")
    asked = workload(tokens=tokens, batch=batch, context=context, causal=causal, source=source, counting=counting)
    return TraceReport.model_validate(trace_figures(model, asked))


def trace_figures(model: Model, asked: Workload) -> TraceReportDict:
    """The steps of a model as plain data: the keys and the order of `TraceReport`."""
    asked = workload_for(model.tree, asked)
    place = TracePosition(model, asked)
    blocks = trace_blocks(language_model(model.tree), place)
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": model_info(model),
        "warnings": list(model.warnings),
        "assumptions": workload_info(asked),
        "blocks": block_figures(blocks, place),
    }


# -- the walk ----------------------------------------------------------------------------------------------------


def trace_blocks(tree: Component, place: TracePosition, prefix: str = "") -> Iterator[TraceBlock]:
    """The parts of a tree in data-flow order: each that holds no layers, and of each stack one layer of each kind."""
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
    """The parts of a layer, each with the sum that is made of its output, if there is one."""
    parts = list(layer.children())
    norms = [isinstance(part.component, Norm) for part in parts]
    mixers = [i for i, part in enumerate(parts) if part.component.label()]
    how = layer.residual if isinstance(layer, Block) else "each"
    if len(mixers) > 1 and not any(norms[mixers[0] : mixers[1]]):
        how = "together"  # side by side behind one norm
    places = residual_positions(norms, mixers, how)
    for i, part in enumerate(parts):
        if i not in places:
            yield part, ""
        elif how == "together":
            yield part, " + ".join(["input", *(parts[m].name for m in mixers)])
        else:
            yield part, f"{'input' if i == min(places) else 'last sum'} + {part.name}"


def residual_positions(norms: list[bool], mixers: list[int], how: str) -> set[int]:
    """Behind which parts something is added: see `Block.residual`."""
    if how == "together":
        return {mixers[-1]} if mixers else set()
    after = {i: i + 1 if i + 1 < len(norms) and norms[i + 1] else i for i in mixers}
    if how == "normed":
        return set(after.values())
    around = any(norms[i : i + 2] == [True, True] for i in range(min(mixers, default=0), max(mixers, default=0)))
    return set(after.values()) if around else set(mixers)


# -- rows --------------------------------------------------------------------------------------------------------


def step_rows(
    layer: Component, place: TracePosition, marked: Iterable[tuple[Part, str]] | None = None
) -> Iterator[StepRow]:
    """The steps of a layer, with what each takes; the parameters of all rows are those of the layer."""
    work, weights = place.ops(layer), parameters(layer)
    kept = kept_bytes(layer, place, work)
    owners = {tie.name: tie.owner for tie in layer.ties()}
    own = {w.name for w in layer.ops()}
    for part, mark in marked or ((part, "") for part in layer.children()):
        for step in named_steps(part):
            flops = work.get(step.name, 0)
            if step.name in own and not flops and step.name not in weights and step.name not in owners:
                continue  # a product that this setting does not ask for
            owner = owners.get(step.name)
            if owner:
                step = step._replace(note=f"tied to {owner}")
            shape = None if step.shape in (SAME_SHAPE, NO_OUTPUT) else place.shape(step.shape)
            yield StepRow(step, shape, weights.get(step.name, 0), flops, kept.get(step.name, 0))
        if mark:
            yield StepRow(Step("add", SAME_SHAPE, mark), add=True)


def named_steps(part: Part) -> Iterator[Step]:
    """The steps of a part, under its name."""
    for step in part.component.steps():
        yield step._replace(name=f"{part.name}.{step.name}".removesuffix("."))


def parameters(layer: Component) -> dict[str, int]:
    """Parameters by the path of the part that holds them; all experts, whichever a token uses."""
    found: dict[str, int] = {}
    for weight in layer.weights():
        if weight.role == "parameter":
            path = weight.name.rpartition(".")[0]
            found[path] = found.get(path, 0) + weight.elements * int(weight.copies)
    return found


def kept_bytes(layer: Component, place: TracePosition, work: Mapping[str, int]) -> dict[str, int]:
    """Bytes of caches and states for the whole batch, by the step that makes them; `work` tells which are done."""
    if not place.causal:
        return {}
    assumed = assume(context=place.workload.context, batch=place.workload.batch, source=place.workload.source)
    entries = EntryBytes(place.model, assumed)
    found: dict[str, int] = {}
    for prefix, component in descendants(layer):
        steps = [step.name for step in component.steps()]
        recurs = [own.name for own in component.own_ops() if own.term == "recurrence" and work.get(prefix + own.name)]
        for one in entries_under(component.own_state(), assumed):
            if steps:
                name = f"{prefix}{producing_step(one, steps, recurs)}".removesuffix(".")
                found[name] = found.get(name, 0) + assumed.batch * entries.total(one)
    return found


def producing_step(one: CacheEntry, steps: list[str], recurs: list[str]) -> str:
    """The step of a component that makes what it keeps: a recurrence its states; its last one where there is none."""
    if one.kind.recurrent and recurs:
        return recurs[-1]
    return one.kind.made_by if one.kind.made_by in steps else steps[-1]


def descendants(component: Component, prefix: str = "") -> Iterator[tuple[str, Component]]:
    """A component and all in it, with the paths that precede their steps."""
    yield prefix, component.executed()
    for part in component.executed().children():
        yield from descendants(part.component, f"{prefix}{part.name}.")


def block_figures(blocks: Iterable[TraceBlock], place: TracePosition) -> list[TraceBlockDict]:
    """The blocks as data, with every shape in numbers: a residual connection restores the input shape."""
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
    """The steps of a block as data, and the shape of the last one."""
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
    """The shape of the first output that is added to the block's input, which then must have that shape too."""
    sums = [i for i, row in enumerate(rows) if row.add]
    shapes = [row.shape for row in rows[: sums[0]] if row.shape is not None] if sums else []
    return shapes[-1] if shapes else None
