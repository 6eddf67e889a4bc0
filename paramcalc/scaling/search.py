"""Search for the model that comes closest to a goal: bisection over exact figures, without approximation formulas.

A wider model never has fewer parameters, FLOPs or bytes; for other fields the direction is determined first.
Rounding of heads and feed-forward widths can make steps uneven, so neighbours of the result are evaluated too.
An impossible model counts as the next possible one.
Block formats store rows of whole blocks in far fewer bytes than others: such sizes are searched separately.
Under a limit of bytes, for weights or a device, the closest model is the largest one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import gcd
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from paramcalc.assumptions import one_of
from paramcalc.base.errors import ParamcalcError
from paramcalc.model import Model
from paramcalc.scaling.evaluate import Evaluator, SweepSettings
from paramcalc.scaling.scaling_rules import ImpossibleError
from paramcalc.storage.gguf.types import LONGEST_BLOCK, SHORT_BLOCK

if TYPE_CHECKING:
    from paramcalc.reports.shapes.scaling import OutcomeDict

Match = Literal["total", "non-embedding", "active", "flops", "weight-bytes"]
Changes = Callable[[int], dict[str, Any]]
MOST_STEPS = 10**7  # largest number of steps of the searched size
BUDGET_TOO_SMALL = "even the smallest model exceeds"
NEIGHBOURS_CHECKED = 2  # valid models on each side of the result
SETTLED = 3  # equal figures in a row after which larger values are taken to change nothing
REACH = 64  # steps in which the next valid model is searched


class Goal(NamedTuple):
    """The budget to approach, and the limits not to exceed."""

    budget: int | None  # None: as large as the device allows
    match: Match
    at_most: int | None = None  # bytes on the device, with caches at the context

    @property
    def capped(self) -> bool:
        """True if the budget is a limit (bytes of a file or a device); a count may be missed on both sides."""
        return self.match == "weight-bytes"

    def measure(self, row: OutcomeDict) -> int:
        """The figure of a model that is compared with the budget."""
        found: dict[Match, int] = {
            "total": row["parameters"]["total"],
            "non-embedding": row["parameters"]["non_embedding"],
            "active": row["parameters"]["active"],
            "flops": row["flops"]["forward_per_token"],
            "weight-bytes": row["weights"]["bytes"],
        }
        return found[self.match]

    def merit(self, row: OutcomeDict) -> int:
        """The score of a model, larger is better: its closeness to a count, or its parameters under a limit of bytes.

        Bytes are no score: rows that do not divide into blocks take more bytes for fewer parameters.
        """
        return row["parameters"]["total"] if self.budget is None or self.capped else -abs(self.excess(row))

    def excess(self, row: OutcomeDict) -> int:
        """The excess of a model over the budget: negative below it, 0 without a budget."""
        return 0 if self.budget is None else self.measure(row) - self.budget


def make_goal(budget: int | None, match: str, settings: SweepSettings, share: str | float = 1) -> Goal:
    """The goal, checked. Raises ParamcalcError for an invalid budget, and for neither a budget nor a device."""
    from paramcalc.footprint.fit import utilization

    word = one_of(match, get_args(Match), "match")
    if budget is None and settings.device is None:
        raise ParamcalcError("no budget given", "give a budget, like 1.1B or 8GiB, or a device")
    if budget is not None and type(budget) is not int:
        message = f"budget must be an integer, not {budget!r}"
        raise ParamcalcError(message, "write it like 1_100_000_000; the command line takes 1.1B and 8GiB too")
    if budget is not None and budget < 1:
        raise ParamcalcError(f"budget must be a positive integer, not {budget:,}", "write it like 1.1B or 8GiB")
    limit = None if settings.device is None else int(settings.device.memory * utilization(share))
    return Goal(budget, "weight-bytes" if budget is None else word, limit)  # type: ignore[arg-type]  # one of Match


class Search:
    """Search over models that differ from a base in one size, with as few evaluations as bisection needs."""

    def __init__(
        self, evaluator: Evaluator, goal: Goal, changes: Changes, *, step: int = 1, probes: Sequence[int] = ()
    ) -> None:
        self.evaluator, self.goal, self.changes, self.probes = evaluator, goal, changes, probes
        self.falling = False  # True if a larger value makes a smaller model
        self.most = MOST_STEPS
        blocks = () if evaluator.size is not None else (SHORT_BLOCK, LONGEST_BLOCK)
        self.strides = sorted({1, *(block // gcd(step, block) for block in blocks)})
        self.models: dict[int, Model] = {}
        self.known: dict[int, OutcomeDict] = {}
        self.fitting: dict[int, bool] = {}

    def point(self, count: int) -> OutcomeDict:
        """The point with this number of steps of the searched size."""
        if count not in self.known:
            try:
                changes = self.changes(count)
                self.models[count] = self.evaluator.model(changes)
                self.known[count] = self.evaluator.row(changes, self.models[count])
            except ParamcalcError as error:
                self.known[count] = {"valid": False, "problem": error.message, "fields": {}}
        return self.known[count]

    def closest(self) -> tuple[int, OutcomeDict]:
        """The number of steps whose model comes closest, and its figures; an invalid point if none may be chosen."""
        self.evaluate_probes()
        near = 0
        for stride in self.strides:
            near = self.approach(stride, near // stride) * stride
        found = list(filter(self.allowed, sorted(self.known)))
        if not found:
            limit = "budget" if self.goal.budget is not None else "device"
            problem = self.point(1)["problem"] or f"{BUDGET_TOO_SMALL} the {limit}"
            return 1, {"valid": False, "problem": problem, "fields": {}}
        best = max(found, key=self.merit)
        return best, self.point(best)

    def evaluate_probes(self) -> None:
        """Evaluate the probes: they show if more steps make a larger model, and where it stops growing."""
        sizes = [(count, self.goal.measure(row)) for count in self.probes if (row := self.point(count))["valid"]]
        if len(sizes) < 2:
            return
        (first, *_), (*_, last) = sizes, sizes
        self.falling = last[1] < first[1]
        same = [count for count, size in sizes if size == last[1]]
        if len(same) == len(sizes):
            raise ImpossibleError(
                f"all values from {first[0]:,} to {last[0]:,} give the same model", "solve another field"
            )
        if len(same) >= SETTLED:
            self.most = same[0]

    def shortfall(self, best: int) -> str | None:
        """The reason why no model is closer, if all models lie on one side of the budget; else None."""
        row = self.point(best)
        far = self.goal.excess(row) if row["valid"] and not self.goal.capped else 0
        if not far:
            return None
        valid = {count: self.goal.excess(other) for count, other in self.known.items() if other["valid"]}
        across = [count for count, other in valid.items() if (other > 0) is (far < 0)]
        if far > 0:
            return None if across else "no model is smaller"
        if any(map(self.fits, across)):
            return None
        return "no model is larger" if all(map(self.fits, valid)) else "the device holds no larger model"

    def merit(self, count: int) -> int:
        """The score of a model; larger is better."""
        return self.goal.merit(self.point(count))

    def approach(self, stride: int, near: int) -> int:
        """Evaluate the models around the budget whose number of steps is a multiple of the stride, starting at `near`.

        Returns the last multiple inside the budget.
        """

        def valid(first: int, to: int) -> Iterator[int]:
            counts = range(first, to, 1 if to > first else -1)
            return (n for n in counts if n > 0 and self.point(n * stride)["valid"])

        def below(count: int) -> bool:
            first = next(valid(count, count + REACH), None)
            return first is None or self.inside(first * stride) is not self.falling

        turn = largest_inside(below, near, self.most // stride)
        for neighbours in (valid(turn, turn + REACH), valid(turn - 1, turn - REACH)):
            for _ in islice(neighbours, NEIGHBOURS_CHECKED + 1):
                pass
        return turn

    def inside(self, count: int) -> bool:
        """True if a model is within the budget and the device, so that a larger one may be closer."""
        return self.goal.excess(self.point(count)) <= 0 and self.fits(count)

    def allowed(self, count: int) -> bool:
        """True if a model may be chosen."""
        row = self.point(count)
        return row["valid"] and not (self.goal.capped and self.goal.excess(row) > 0) and self.fits(count)

    def fits(self, count: int) -> bool:
        """True if the fullest device holds the model, as `memory` reports it; also without a device."""
        if self.goal.at_most is None:
            return True
        if count not in self.fitting:
            from paramcalc.footprint import per_device

            held = per_device.per_device_figures(self.models[count], self.evaluator.settings.assumed)
            self.fitting[count] = int(held["total"]["bytes"]) <= self.goal.at_most
        return self.fitting[count]


def largest_inside(inside: Callable[[int], bool], near: int = 0, most: int = MOST_STEPS) -> int:
    """The largest count inside, 0 if 1 is outside; assumes that every larger count is outside.

    Steps double away from `near`; bisection follows between the last two.
    """
    low, high, step = near, near + 1, 1
    if near and not inside(near):
        while low > 0 and not inside(low):
            low, high, step = max(0, low - step), low, 2 * step
    else:
        while high <= most and inside(high):
            low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if inside(middle) else (low, middle)
    return low
