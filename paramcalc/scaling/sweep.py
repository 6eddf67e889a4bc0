"""Sweeps: a grid of models around a base, over depth, width or any field."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from paramcalc.assumptions import accepts_assumptions, assume
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.config.field_roles import WIDTH_FIELD as WIDTH_FIELD
from paramcalc.config.fields import DEPTH_FIELDS
from paramcalc.counting.count import model_info
from paramcalc.model import Model
from paramcalc.scaling.evaluate import Evaluator, SweepSettings
from paramcalc.scaling.latency import untimed_note
from paramcalc.scaling.model_series import reference_points
from paramcalc.scaling.scaling_rules import (
    ImpossibleError,
    ScalingRules,
    changes_for_depth,
    changes_for_shape,
    changes_for_width,
    field_key,
    scaling_rules,
)
from paramcalc.sources.document import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from paramcalc.assumptions import AssumptionOptions
    from paramcalc.footprint.devices import Device
    from paramcalc.reports.scaling import ScaleReport
    from paramcalc.reports.shapes.scaling import PointDict, ScaleReportDict

Grid = Mapping[str, Sequence[Any]]
MOST_POINTS = 10**6
DEPTH, WIDTH = "depth", "width"


@accepts_assumptions
def scale(
    base: Model | Source,
    grid: Grid,
    *,
    rule: Mapping[str, str | int] | None = None,
    training_tokens: int | None = None,
    gpu: str | None = None,
    overlay: Sequence[str] = (),
    context: int = 8192,
    **assumptions: Unpack[AssumptionOptions],
) -> ScaleReport:
    """Figures of every model on a grid around a base: `{"depth": [12, 24], "width": [768, 1536], "vocab_size": [...]}`.

    `depth` and `width` change the fields that scale with them (see `scaling/scaling_rules.py`; `rule` selects the
    rules); any other name changes one field. Further assumptions are those of `memory`. Impossible points are in the
    report with the reason; `overlay` names published ladders for comparison. Raises ParamcalcError for invalid grids.
    """
    from paramcalc.reports.scaling import ScaleReport

    settings = sweep_settings(training_tokens=training_tokens, gpu=gpu, context=context, **assumptions)
    with without_gc():
        found = sweep_figures(as_model(base), grid, rules=scaling_rules(rule or {}), settings=settings, overlay=overlay)
        return ScaleReport.model_validate(found)


def as_model(base: Model | Source) -> Model:
    """The model itself, or the one that `load` reads."""
    from paramcalc.loading.load import load

    return base if isinstance(base, Model) else load(base)


def sweep_settings(
    *, training_tokens: int | None, gpu: str | None, context: int, **assumptions: Unpack[AssumptionOptions]
) -> SweepSettings:
    """The settings for every point, checked."""
    assumed = assume(context=context, **assumptions)
    return SweepSettings(assumed=assumed, training_tokens=training_tokens, device=device_named(gpu))


def device_named(name: str | None) -> Device | None:
    """The device of that name. Raises ParamcalcError with the choices."""
    if name is None:
        return None
    from paramcalc.footprint.devices import find_device

    return find_device(name)


def sweep_figures(
    base: Model,
    grid: Grid,
    *,
    rules: ScalingRules,
    settings: SweepSettings,
    overlay: Sequence[str] = (),
    each: Callable[[int, int], None] | None = None,
) -> ScaleReportDict:
    """The sweep as plain data, like `ScaleReport`; `each` is called with the numbers of finished and of all points."""
    count, references = check_grid(grid), list(reference_points(overlay, settings))
    evaluator = Evaluator(base, settings)
    rows: list[PointDict] = []
    with without_gc():
        for row in sweep_points(evaluator, grid, rules):
            rows.append(row)
            if each is not None:
                each(len(rows), count)
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": model_info(base),
        "warnings": [*evaluator.warnings(), *untimed_note(settings.device)],
        "assumptions": settings.stated(base, rules),
        "base": evaluator.figures(base),
        "axes": {name: list(values) for name, values in grid.items()},
        "rows": rows,
        "overlay": references,
    }


@contextmanager
def without_gc() -> Iterator[None]:
    """Pause the garbage collector: points leave no reference cycles, and each collection would traverse all rows."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def check_grid(grid: Grid) -> int:
    """The number of points. Raises ParamcalcError for an empty axis, too many points, or no axis."""
    for name, values in grid.items():
        if not _listed(values):
            raise ParamcalcError(f"{name}: no values to sweep", "give a list, like depth=12,24 or depth=12:48:12")
        if name in (DEPTH, WIDTH) and not all(type(value) is int and value > 0 for value in values):
            raise ParamcalcError(
                f"{name} must be positive integers, not {', '.join(map(str, values))}", "write it like 12,24,48"
            )
    count = prod(map(len, grid.values()))
    if not grid or count > MOST_POINTS:
        what = f"{count:,} points" if grid else "nothing to sweep"
        raise ParamcalcError(f"{what}; a grid has 1 to {MOST_POINTS:,}", "sweep fewer values of fewer fields")
    return count


def _listed(values: Any) -> bool:
    """True for a list, range or the like that is not empty."""
    return isinstance(values, Sequence) and not isinstance(values, str) and len(values) > 0


def sweep_points(evaluator: Evaluator, grid: Grid, rules: ScalingRules) -> Iterator[PointDict]:
    """Every point, the last axis running fastest. An explicit field overrides what depth and width change."""
    base, keys = evaluator.values, keys_of(evaluator, grid)

    @cache
    def wider(size: int) -> Mapping[str, Any] | ImpossibleError:
        return _attempt(lambda: evaluator.checked(changes_for_width(base, size, rules), WIDTH))

    @cache
    def deeper(size: int) -> Mapping[str, Any] | ImpossibleError:
        return _attempt(lambda: evaluator.checked(changes_for_depth(base, size), DEPTH))

    for values in product(*grid.values()):
        at = dict(zip(grid, values, strict=True))
        deep = deeper(at[DEPTH]) if DEPTH in at else {}
        found = wider(at[WIDTH]) if WIDTH in at else {}, deep, at.get(DEPTH)
        problem = next((one for one in found[:2] if isinstance(one, ImpossibleError)), None)
        shape = problem or _attempt(changes_for_shape, *found)
        if isinstance(shape, ImpossibleError):
            yield {"at": at, "valid": False, "problem": shape.message, "fields": {}}
        else:
            yield {"at": at, **evaluator.point({**shape, **{key: at[name] for name, key in keys.items()}})}


def keys_of(evaluator: Evaluator, grid: Grid) -> dict[str, str]:
    """The key of each field on the grid. Raises ParamcalcError if two axes vary the same field."""
    values, stated = evaluator.values, evaluator.base.variants.stated_config()
    axes = {
        WIDTH: {values[WIDTH_FIELD].key} if WIDTH in grid and WIDTH_FIELD in values else set(),
        DEPTH: {values[name].key for name in DEPTH_FIELDS if name in values} if DEPTH in grid else set(),
    }
    keys: dict[str, str] = {}
    for name in grid:
        if name in (DEPTH, WIDTH):
            continue
        key = field_key(values, name, stated)
        same = next((axis for axis, taken in axes.items() if key in taken), None)
        if same is not None:
            raise ParamcalcError(f"{name} is the same axis as {same}", "sweep one of the two")
        axes[name], keys[name] = {key}, key
    return keys


def _attempt(change: Callable[..., Mapping[str, Any]], *given: Any) -> Mapping[str, Any] | ImpossibleError:
    """The changes, or the error that explains why they are impossible."""
    try:
        return change(*given)
    except ImpossibleError as error:
        return error
