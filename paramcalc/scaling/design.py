"""The other way round: for each depth the width whose model is closest to a budget, or one field that meets it.

Found by bisection over exact figures; no approximation formulas. A model never has fewer parameters, operations or
bytes when it grows, but rounding of heads and feed-forward widths can make a step uneven, so the neighbours of the
place found are asked too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from paramcalc.count import Figures, describe
from paramcalc.errors import ParamcalcError
from paramcalc.footprint.assumptions import Assumptions, chosen
from paramcalc.model import Model
from paramcalc.scaling.ladders import references
from paramcalc.scaling.point import Bench, Question
from paramcalc.scaling.rules import WIDTH, ImpossibleError, Rules, deepened, rules, widened, width_step
from paramcalc.scaling.rules import field as rule_field
from paramcalc.scaling.sweep import as_model, question
from paramcalc.version import SCHEMA_VERSION, __version__

if TYPE_CHECKING:
    from paramcalc import readers
    from paramcalc.scaling.report import DesignReport

Match = Literal["total", "non-embedding", "active", "flops", "weight-bytes"]
WIDEST = 10**7  # steps of a width, or values of a field, that are tried at most
NEIGHBOURS = 2
SPREAD = (12, 16, 24, 32, 40, 48, 64, 80, 96)  # depths to choose from where neither they nor a base are given


class Goal(NamedTuple):
    """What the models are to come close to, and what they must not exceed."""

    budget: int | None  # None: as large as the device allows
    match: Match
    at_most: int | None = None  # bytes on the device, with caches at the context

    @property
    def capped(self) -> bool:
        """Whether the budget is a limit: a file or a device is full or it is not, while a count may be missed."""
        return self.match == "weight-bytes"


def design(
    base: Model | readers.Source | None = None,
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
    **assumptions: Any,
) -> DesignReport:
    """Models around `base` that come closest to a budget: of parameters, of operations, of bytes, or of a device.

    For each depth (the base's own where none is given, a spread where there is no base) the width is sought, a multiple
    of `multiple_of` or of the smallest step that gives whole heads; with `solve` one field is, and the width stays.
    `budget` is a count, or bytes for weight-bytes; without one the models are as large as `gpu` holds. `overlay` names
    published ladders to set beside. Raises ParamcalcError for what is not understood.
    """
    from paramcalc.scaling.report import DesignReport

    asked = question(training_tokens=training_tokens, gpu=gpu, context=context, **assumptions)
    model = standard() if base is None else as_model(base)
    aim = goal(budget, match, asked, gpu_memory_utilization)
    depths = depth or (SPREAD if base is None and not solve else ())
    follow = rules(rule or {})
    found = figures(
        model, aim, depth=depths, solve=solve, multiple_of=multiple_of, follow=follow, asked=asked, overlay=overlay
    )
    return DesignReport.model_validate(found)


def standard(*, vocab: int = 32_000, head_dim: int = 64) -> Model:
    """The base where none is given: a decoder as they are built today (RMSNorm, gated FFN of 8/3 d, tied head)."""
    from paramcalc.loading import load

    fields = dict(model_type="transformer", d_model=12 * head_dim, n_layers=12, n_heads=12, head_dim=head_dim)
    return load(fields | dict(d_ff=32 * head_dim, ffn="gated", vocab_size=vocab, name="standard decoder"))


def goal(budget: int | None, match: str, asked: Question, share: str | float = 1) -> Goal:
    """The goal, checked. Raises ParamcalcError where neither a budget nor a device is given."""
    from paramcalc.footprint.fit import utilization

    word = chosen(match, get_args(Match), "match")
    if budget is None and asked.device is None:
        raise ParamcalcError("nothing to come close to", "give a budget, like 1.1B or 8GiB, or a device")
    if budget is not None and budget < 1:
        raise ParamcalcError(f"a budget of {budget:,} holds no model")
    limit = None if asked.device is None else int(asked.device.memory * utilization(share))
    return Goal(budget, "weight-bytes" if budget is None else word, limit)  # type: ignore[arg-type]


def figures(
    base: Model,
    aim: Goal,
    *,
    depth: Sequence[int],
    solve: str | None,
    multiple_of: int | None,
    follow: Rules,
    asked: Question,
    overlay: Sequence[str] = (),
) -> Figures:
    """The report as plain data."""
    beside = list(references(overlay, asked))
    bench = Bench(base, asked)
    rows = [
        {**row, **closeness(row, aim)}
        for row in (
            solved(bench, aim, depth, solve, multiple_of or 1)
            if solve
            else widths(bench, aim, depth, follow, multiple_of)
        )
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": describe(base),
        "warnings": list(base.warnings),
        "assumptions": {
            "context": asked.assumed.context,
            "batch": asked.assumed.batch,
            "dtype": asked.assumed.dtype or base.dtype,
            "rules": follow.values(),
            "training_tokens": asked.training_tokens,
            "gpu": asked.device.name if asked.device else None,
        },
        "goal": {"budget": aim.budget, "match": aim.match, "at_most_bytes": aim.at_most, "solve": solve or "width"},
        "rows": rows,
        "best": best(rows),
        "overlay": beside,
    }


def best(rows: Sequence[Figures]) -> int | None:
    """The number of the row that comes closest; of a device, the one with the most parameters."""
    valid = [(i, row) for i, row in enumerate(rows) if row["valid"]]
    if not valid:
        return None
    if valid[0][1]["deviation"] is None:
        return max(valid, key=lambda item: item[1]["parameters"]["total"])[0]
    return min(valid, key=lambda item: abs(item[1]["deviation"]))[0]


def closeness(row: Figures, aim: Goal) -> Figures:
    """How far a model is from the budget, and its aspect ratio."""
    if not row["valid"]:
        return {"deviation": None, "aspect_ratio": None}
    width = row["at"].get("width")
    return {
        "deviation": None if aim.budget is None else measure(row, aim.match) - aim.budget,
        "aspect_ratio": width / row["depth"] if width and row["depth"] else None,
    }


def measure(row: Figures, match: Match) -> int:
    """The figure that is compared with the budget."""
    found = {
        "total": row["parameters"]["total"],
        "non-embedding": row["parameters"]["non_embedding"],
        "active": row["parameters"]["active"],
        "flops": row["flops"]["forward_per_token"],
        "weight-bytes": row["weights"]["bytes"],
    }
    return int(found[match])


# -- what is sought -----------------------------------------------------------------------------------------------


def widths(bench: Bench, aim: Goal, depths: Sequence[int], follow: Rules, multiple_of: int | None) -> Iterator[Figures]:
    """For each depth the best width."""
    values = bench.base.variants.values()
    step = multiple_of or width_step(values, follow)
    for depth in _each(depths):
        try:
            deep = {} if depth is None else deepened(values, depth)
        except ImpossibleError as error:
            yield {"at": {"depth": depth}, "valid": False, "problem": error.message, "fields": {}}
            continue

        def changes(count: int, deep: Mapping[str, Any] = deep) -> dict[str, Any]:
            return {**deep, **widened(values, count * step, follow)}

        def place(count: int, depth: int | None = depth) -> dict[str, Any]:
            return ({} if depth is None else {"depth": depth}) | {"width": count * step}

        yield nearest_to(bench, aim, changes, place)


def solved(bench: Bench, aim: Goal, depths: Sequence[int], field: str, multiple_of: int) -> Iterator[Figures]:
    """For each depth the best value of one field, the width being the base's."""
    values = bench.base.variants.values()
    key = rule_field(values, field)
    for depth in _each(depths):
        deep = {} if depth is None else deepened(values, depth)

        def changes(count: int, deep: Mapping[str, Any] = deep) -> dict[str, Any]:
            return {**deep, key: count * multiple_of}

        def place(count: int, depth: int | None = depth) -> dict[str, Any]:
            at = {} if depth is None else {"depth": depth}
            return at | {"width": values[WIDTH].value, field: count * multiple_of} if WIDTH in values else at

        yield nearest_to(bench, aim, changes, place)


def nearest_to(
    bench: Bench, aim: Goal, changes: Callable[[int], dict[str, Any]], place: Callable[[int], dict[str, Any]]
) -> Figures:
    """The point that comes closest to the goal among `changes(1)`, `changes(2)`, ..."""
    known: dict[int, Figures] = {}

    def point(count: int) -> Figures:
        if count not in known:
            try:
                known[count] = bench.point(changes(count))
            except ImpossibleError as error:
                known[count] = {"valid": False, "problem": error.message, "fields": {}}
        return known[count]

    turn = turning(lambda count: within(bench, point(count), aim))
    near = [count for count in range(max(1, turn - NEIGHBOURS), turn + NEIGHBOURS + 2) if point(count)["valid"]]
    allowed = [count for count in near if allowed_at(bench, point(count), aim)]
    if not allowed:
        first = point(1)
        problem = first["problem"] or "even the smallest model is beyond the budget"
        return {"at": place(1), "valid": False, "problem": problem, "fields": {}}
    if aim.budget is None or aim.capped:
        best = max(allowed, key=lambda count: measure(point(count), aim.match))
    else:
        budget = aim.budget
        best = min(allowed, key=lambda count: abs(measure(point(count), aim.match) - budget))
    return {"at": place(best), **point(best)}


def turning(inside: Callable[[int], bool]) -> int:
    """The largest count that is inside, 0 where not even 1 is; larger ones are taken to be outside too."""
    low, high = 0, 1
    while high <= WIDEST and inside(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if inside(middle) else (low, middle)
    return low


def within(bench: Bench, row: Figures, aim: Goal) -> bool:
    """Whether a larger model may still be closer. A point that cannot be is passed over as if it were small."""
    if not row["valid"]:
        return bool(row["problem"])
    return (aim.budget is None or measure(row, aim.match) <= aim.budget) and on_device(bench, row, aim)


def allowed_at(bench: Bench, row: Figures, aim: Goal) -> bool:
    """Whether a model may be chosen at all."""
    over = aim.capped and aim.budget is not None and measure(row, aim.match) > aim.budget
    return not over and on_device(bench, row, aim)


def on_device(bench: Bench, row: Figures, aim: Goal) -> bool:
    """Whether weights, caches and all fit where a device is given: what `memory` says of the fullest device."""
    if aim.at_most is None:
        return True
    return device_bytes(bench.model(row["fields"]), bench.question.assumed) <= aim.at_most


def device_bytes(model: Model, assumed: Assumptions) -> int:
    """What the fullest device holds."""
    from paramcalc.footprint import per_device

    return int(per_device.figures(model, assumed)["total"]["bytes"])


def _each(depths: Sequence[int]) -> list[int | None]:
    """The depths, or one that is the base's own."""
    return list(depths) or [None]


def as_yaml(base: Model, answer: Figures) -> str:
    """The closest model as a file that `count` reads."""
    import yaml

    goal, row = answer["goal"], answer["rows"][answer["best"]]
    place = ", ".join(f"{name} {size}" for name, size in row["at"].items())
    about = {"description": f"{base.name} with {place}, made for {goal['match']} {goal['budget'] or 'on a device'}"}
    fields = base.variants.changed_fields(row["fields"])
    return str(yaml.safe_dump(about | fields, sort_keys=False, allow_unicode=True))
