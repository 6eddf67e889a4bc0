"""Inverse of a sweep: for each depth the width (or another field) whose model comes closest to a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import lcm
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcalc.assumptions import accepts_assumptions
from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.config.field_roles import WIDTH_FIELD
from paramcalc.counting.count import model_info
from paramcalc.model import Model
from paramcalc.scaling.evaluate import Evaluator, SweepSettings
from paramcalc.scaling.model_series import reference_points
from paramcalc.scaling.scaling_rules import (
    ImpossibleError,
    ScalingRules,
    Values,
    changes_for_depth,
    changes_for_shape,
    changes_for_width,
    is_size,
    scaling_rules,
    width_step,
)
from paramcalc.scaling.scaling_rules import field_key as rule_field
from paramcalc.scaling.search import Goal, Search, make_goal
from paramcalc.scaling.sweep import DEPTH, as_model, sweep_settings
from paramcalc.sources.document import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from paramcalc.assumptions import AssumptionOptions
    from paramcalc.config.schema import StatedConfig
    from paramcalc.reports.scaling import DesignReport
    from paramcalc.reports.shapes.scaling import DesignPointDict, DesignReportDict, GoalInfoDict, PointDict

DEFAULT_DEPTHS = (12, 16, 24, 32, 40, 48, 64, 80, 96)  # default depths without a base


@accepts_assumptions
def design(
    base: Model | Source | None = None,
    budget: int | None = None,
    *,
    depth: Sequence[int] = (),
    match: str = "total",
    solve: str | None = None,
    multiple_of: int | None = None,
    rule: Mapping[str, str | int] | None = None,
    gpu: str | None = None,
    training_tokens: int | None = None,
    context: int = 8192,
    gpu_memory_utilization: str | float = 1,
    overlay: Sequence[str] = (),
    **assumptions: Unpack[AssumptionOptions],
) -> DesignReport:
    """Models around `base` that come closest to a budget of parameters, FLOPs or bytes, or to the memory of a device.

    For each depth (by default the base's own, or a spread without a base) the search varies the width, in multiples of
    the smallest step that gives whole heads and of `multiple_of`; with `solve` it varies one field and keeps the width.
    `budget` is a count, or bytes for weight-bytes; without one, the models are the largest that fit on `gpu`. `overlay`
    names published ladders for comparison. Raises ParamcalcError for invalid arguments.
    """
    from paramcalc.reports.scaling import DesignReport

    settings = sweep_settings(training_tokens=training_tokens, gpu=gpu, context=context, **assumptions)
    model = default_base() if base is None else as_model(base)
    goal = make_goal(budget, match, settings, gpu_memory_utilization)
    depths = depth or (DEFAULT_DEPTHS if base is None and not solve else ())
    rules = scaling_rules(rule or {})
    found = design_figures(
        model, goal, depth=depths, solve=solve, multiple_of=multiple_of, rules=rules, settings=settings, overlay=overlay
    )
    return DesignReport.model_validate(found)


def default_base(*, vocab: int = 32_000, head_dim: int = 64) -> Model:
    """The default base: a decoder of current design.

    RMSNorm, rotary positions, four query heads per key/value head, a gated FFN of width 8/3 d, a tied head.
    """
    from paramcalc.loading.load import load

    fields = dict(model_type="transformer", d_model=12 * head_dim, n_layers=12, n_heads=12, n_kv_heads=3)
    return load(
        fields | dict(head_dim=head_dim, d_ff=32 * head_dim, ffn="gated", vocab_size=vocab, name="standard decoder")
    )


def design_figures(
    base: Model,
    goal: Goal,
    *,
    depth: Sequence[int],
    solve: str | None,
    multiple_of: int | None,
    rules: ScalingRules,
    settings: SweepSettings,
    overlay: Sequence[str] = (),
) -> DesignReportDict:
    """The design as plain data: the keys and the order of `DesignReport`."""
    references = list(reference_points(overlay, settings))
    evaluator = Evaluator(base, settings)
    values = evaluator.values
    space = (
        field_space(values, solve, multiple_of or 1, base.variants.stated_config())
        if solve
        else width_space(evaluator, rules, multiple_of)
    )
    depths: Sequence[int | None] = depth or [None]
    found = [closest_at(one, space, evaluator=evaluator, goal=goal, values=values) for one in depths]
    rows = [with_closeness(row, goal) for row, _ in found]
    best = best_row(rows, goal)
    reason = None if best is None else found[best][1]
    missed = [f"the budget is out of reach: {reason}"] if reason else []
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": model_info(base),
        "warnings": [*evaluator.warnings(), *missed],
        "assumptions": settings.stated(base, rules),
        "goal": {"budget": goal.budget, "match": goal.match, "at_most_bytes": goal.at_most, "solve": solve or "width"},
        "rows": rows,
        "best": best,
        "overlay": references,
    }


def best_row(rows: Sequence[PointDict], goal: Goal) -> int | None:
    """The index of the closest row; under a limit of bytes, of the row with the most parameters."""
    valid = [i for i, row in enumerate(rows) if row["valid"]]
    return max(valid, key=lambda i: goal.merit(rows[i])) if valid else None


def with_closeness(row: PointDict, goal: Goal) -> DesignPointDict:
    """The row with its distance from the budget and its aspect ratio."""
    if not row["valid"]:
        return {**row, "deviation": None, "aspect_ratio": None}
    width = row["at"].get("width")
    return {
        **row,
        "deviation": None if goal.budget is None else goal.excess(row),
        "aspect_ratio": width / row["depth"] if width and row["depth"] else None,
    }


# -- the search space ---------------------------------------------------------------------------------------------


class SearchSpace(NamedTuple):
    """The size that varies at one depth: its step, and the config changes and the axes for a number of steps."""

    step: int
    changes: Callable[[int], dict[str, Any]]
    place: Callable[[int], dict[str, Any]]
    probes: Sequence[int] = ()  # numbers of steps that show if the model grows or shrinks with them


def width_space(evaluator: Evaluator, rules: ScalingRules, multiple_of: int | None) -> SearchSpace:
    """Widths in whole steps, with the fields that scale. Raises ImpossibleError if the width changes nothing."""
    values = evaluator.values
    step = lcm(multiple_of or 1, width_step(values, rules))
    first = step if values[WIDTH_FIELD].value != step else 2 * step
    try:
        other = changes_for_width(values, first, rules)
    except ImpossibleError:
        other = {}
    evaluator.checked(other, WIDTH_FIELD)
    return SearchSpace(
        step, lambda count: changes_for_width(values, count * step, rules), lambda count: {"width": count * step}
    )


def field_space(values: Values, name: str, multiple_of: int, stated: StatedConfig) -> SearchSpace:
    """The values of one field; the width stays that of the base."""
    key = rule_field(values, name, stated)
    width = values[WIDTH_FIELD].value if is_size(values, WIDTH_FIELD) else 0
    own, step = bool(width) and key == values[WIDTH_FIELD].key, multiple_of
    # Powers of two, and possible numbers of heads.
    probes = {1 << power for power in range(18)} | {n for n in range(1, width + 1) if width % n == 0}

    def place(count: int) -> dict[str, Any]:
        size = count * step
        return ({"width": size if own else width} if width else {}) | {name: size}

    return SearchSpace(step, lambda count: {key: count * step}, place, probes=sorted(probes))


def closest_at(
    depth: int | None, space: SearchSpace, *, evaluator: Evaluator, goal: Goal, values: Values
) -> tuple[PointDict, str | None]:
    """The closest model of one depth (None: the base's own), and why none is closer if the budget is out of reach."""
    at = {} if depth is None else {"depth": depth}
    try:
        deep = {} if depth is None else evaluator.checked(changes_for_depth(values, depth), DEPTH)
    except ImpossibleError as error:
        return {"at": at, "valid": False, "problem": error.message, "fields": {}}, None

    def changes(count: int) -> dict[str, Any]:
        return changes_for_shape(space.changes(count), deep, depth)

    search = Search(evaluator, goal, changes, step=space.step, probes=space.probes)
    try:
        count, row = search.closest()
    except ImpossibleError as error:
        return {"at": at, "valid": False, "problem": error.message, "fields": {}}, None
    return {"at": at | space.place(count), **row}, search.shortfall(count)


def as_yaml(base: Model, goal: GoalInfoDict, row: PointDict) -> str:
    """The model of a row as YAML for `count`."""
    import yaml

    place = ", ".join(f"{name} {size}" for name, size in row["at"].items())
    about = {"description": f"{base.name} with {place}, made for {goal['match']} {goal['budget'] or 'on a device'}"}
    fields = base.variants.changed_fields(row["fields"])
    return str(yaml.safe_dump(about | fields, sort_keys=False, allow_unicode=True))
