"""A grid of models around a base: over depth, over width, over any field."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from paramcalc.count import Figures, describe
from paramcalc.errors import ParamcalcError
from paramcalc.footprint.assumptions import assume
from paramcalc.model import Model
from paramcalc.scaling.ladders import references
from paramcalc.scaling.point import Bench, Question
from paramcalc.scaling.rules import ImpossibleError, Rules, deepened, field, reshaped, rules, widened
from paramcalc.version import SCHEMA_VERSION, __version__

if TYPE_CHECKING:
    from paramcalc import readers
    from paramcalc.footprint.devices import Device
    from paramcalc.scaling.report import ScaleReport

Grid = Mapping[str, Sequence[Any]]
MOST_POINTS = 10**6
DEPTH, WIDTH = "depth", "width"


def scale(
    base: Model | readers.Source,
    grid: Grid,
    *,
    rule: Mapping[str, str | int] | None = None,
    training_tokens: int | None = None,
    gpu: str | None = None,
    overlay: Sequence[str] = (),
    context: int = 8192,
    **assumptions: Any,
) -> ScaleReport:
    """Figures of every model on a grid around a base: `{"depth": [12, 24], "width": [768, 1536], "vocab_size": [...]}`.

    `depth` and `width` change the fields that belong to them (see `scaling.rules`; `rule` changes how), any other name
    one field. Further assumptions are those of `memory`. Points that cannot be are in the report, with the reason;
    `overlay` names published ladders to set beside. Raises ParamcalcError for grids that are not understood.
    """
    from paramcalc.scaling.report import ScaleReport

    asked = question(training_tokens=training_tokens, gpu=gpu, context=context, **assumptions)
    with uncollected():
        found = figures(as_model(base), grid, follow=rules(rule or {}), asked=asked, overlay=overlay)
        return ScaleReport.model_validate(found)


def as_model(base: Model | readers.Source) -> Model:
    """A loaded model, or whatever `load` takes."""
    from paramcalc.loading import load

    return base if isinstance(base, Model) else load(base)


def question(*, training_tokens: int | None, gpu: str | None, **assumptions: Any) -> Question:
    """What is asked of every point, checked."""
    return Question(assumed=assume(**assumptions), training_tokens=training_tokens, device=device_named(gpu))


def device_named(name: str | None) -> Device | None:
    """The device of that name. Raises ParamcalcError with the choices."""
    if name is None:
        return None
    from paramcalc.footprint.devices import device

    return device(name)


def figures(
    base: Model,
    grid: Grid,
    *,
    follow: Rules,
    asked: Question,
    overlay: Sequence[str] = (),
    each: Callable[[int, int], None] | None = None,
) -> Figures:
    """The report as plain data; `each` is told how many points are done, and of how many."""
    many, beside = checked(grid), list(references(overlay, asked))
    bench = Bench(base, asked)
    rows: list[Figures] = []
    with uncollected():
        for row in points(bench, grid, follow):
            rows.append(row)
            if each is not None:
                each(len(rows), many)
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": describe(base),
        "warnings": bench.warnings(),
        "assumptions": asked.stated(base, follow),
        "base": bench.figures(base),
        "axes": {name: list(values) for name, values in grid.items()},
        "rows": rows,
        "overlay": beside,
    }


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the search for cycles: a point leaves none behind, and it would go through all rows again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def checked(grid: Grid) -> int:
    """How many points it has. Raises ParamcalcError for an empty axis, too many points, no axis at all."""
    for name, values in grid.items():
        if isinstance(values, str) or not values:
            raise ParamcalcError(f"{name}: no values to sweep", "give a list, like depth=12,24 or depth=12:48:12")
        if name in (DEPTH, WIDTH) and not all(type(value) is int and value > 0 for value in values):
            raise ParamcalcError(f"{name} is a whole number from 1 on: {', '.join(map(str, values))}", "like 12,24,48")
    many = prod(map(len, grid.values()))
    if not grid or many > MOST_POINTS:
        what = f"{many:,} points" if grid else "nothing to sweep"
        raise ParamcalcError(f"{what}; a grid has 1 to {MOST_POINTS:,}", "sweep fewer values of fewer fields")
    return many


def points(bench: Bench, grid: Grid, follow: Rules) -> Iterator[Figures]:
    """Every point, the last axis running fastest. What a field says holds, whatever follows a width or a depth."""
    base = bench.values

    def wider(size: int) -> Mapping[str, Any]:
        return bench.checked(widened(base, size, follow), WIDTH)

    def deeper(size: int) -> Mapping[str, Any]:
        return bench.checked(deepened(base, size), DEPTH)

    # Depths first: what is made for one width is made again when more fields turn out to differ (`Shelf.vary`).
    deep = {size: _attempt(deeper, size) for size in grid.get(DEPTH, ())}
    wide = {size: _attempt(wider, size) for size in grid.get(WIDTH, ())}
    stated = bench.base.variants.stated()
    keys = {name: field(base, name, stated) for name in grid if name not in (DEPTH, WIDTH)}
    for values in product(*grid.values()):
        at = dict(zip(grid, values, strict=True))
        found = wide[at[WIDTH]] if wide else {}, deep[at[DEPTH]] if deep else {}, at.get(DEPTH)
        problem = next((one for one in found[:2] if isinstance(one, ImpossibleError)), None)
        shape = problem or _attempt(reshaped, *found)
        if isinstance(shape, ImpossibleError):
            yield {"at": at, "valid": False, "problem": shape.message, "fields": {}}
        else:
            yield {"at": at, **bench.point({**shape, **{key: at[name] for name, key in keys.items()}})}


def _attempt(change: Callable[..., Mapping[str, Any]], *given: Any) -> Mapping[str, Any] | ImpossibleError:
    """The changes, or why there are none."""
    try:
        return change(*given)
    except ImpossibleError as error:
        return error
