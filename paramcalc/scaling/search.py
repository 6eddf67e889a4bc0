"""The search for the model that comes closest to a goal: bisection over exact figures, no approximation formulas.

A model never has fewer parameters, operations or bytes when it grows, but rounding of heads and feed-forward widths can
make a step uneven, so the neighbours of the place found are asked too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

from paramcalc.count import Figures
from paramcalc.errors import ParamcalcError
from paramcalc.footprint.assumptions import chosen
from paramcalc.scaling.point import Bench, Question
from paramcalc.scaling.rules import ImpossibleError

Match = Literal["total", "non-embedding", "active", "flops", "weight-bytes"]
Changes = Callable[[int], dict[str, Any]]
MOST = 10**7  # steps of a width, or values of a field, that are tried at most
NEIGHBOURS = 2


class Goal(NamedTuple):
    """What the models are to come close to, and what they must not exceed."""

    budget: int | None  # None: as large as the device allows
    match: Match
    at_most: int | None = None  # bytes on the device, with caches at the context

    @property
    def capped(self) -> bool:
        """Whether the budget is a limit: a file or a device is full or it is not, while a count may be missed."""
        return self.match == "weight-bytes"

    def measure(self, row: Figures) -> int:
        """The figure of a model that is compared with the budget."""
        found = {
            "total": row["parameters"]["total"],
            "non-embedding": row["parameters"]["non_embedding"],
            "active": row["parameters"]["active"],
            "flops": row["flops"]["forward_per_token"],
            "weight-bytes": row["weights"]["bytes"],
        }
        return int(found[self.match])

    def beyond(self, row: Figures) -> int:
        """How far a model is beyond the budget; below it where negative, 0 without one."""
        return 0 if self.budget is None else self.measure(row) - self.budget


def goal(budget: int | None, match: str, asked: Question, share: str | float = 1) -> Goal:
    """The goal, checked. Raises ParamcalcError where neither a budget nor a device is given."""
    from paramcalc.footprint.fit import utilization

    word = chosen(match, get_args(Match), "match")
    if budget is None and asked.device is None:
        raise ParamcalcError("nothing to come close to", "give a budget, like 1.1B or 8GiB, or a device")
    if budget is not None and budget < 1:
        raise ParamcalcError(f"a budget of {budget:,} holds no model")
    limit = None if asked.device is None else int(asked.device.memory * utilization(share))
    return Goal(budget, "weight-bytes" if budget is None else word, limit)  # type: ignore[arg-type]  # one of Match


class Search:
    """Models that differ from a base in one size, asked as few times as bisection needs."""

    def __init__(self, bench: Bench, aim: Goal, changes: Changes) -> None:
        self.bench, self.aim, self.changes = bench, aim, changes
        self.known: dict[int, Figures] = {}

    def point(self, count: int) -> Figures:
        """The model with so many steps of what is sought."""
        if count not in self.known:
            try:
                self.known[count] = self.bench.point(self.changes(count))
            except ImpossibleError as error:
                self.known[count] = {"valid": False, "problem": error.message, "fields": {}}
        return self.known[count]

    def closest(self) -> tuple[int, Figures]:
        """The number of steps whose model comes closest, and its figures; an invalid point where none may be chosen."""
        turn = turning(self.below)
        near = [count for count in range(max(1, turn - NEIGHBOURS), turn + NEIGHBOURS + 2) if self.allowed(count)]
        if not near:
            problem = self.point(1)["problem"] or "even the smallest model is beyond the budget"
            return 1, {"valid": False, "problem": problem, "fields": {}}
        best = max(near, key=self.merit)
        return best, self.point(best)

    def merit(self, count: int) -> int:
        """Larger is better: close to a budget of counts, large below a limit of bytes."""
        row = self.point(count)
        return self.aim.measure(row) if self.aim.budget is None or self.aim.capped else -abs(self.aim.beyond(row))

    def below(self, count: int) -> bool:
        """Whether a larger model may still be closer. A point that cannot be is passed over as if it were small."""
        row = self.point(count)
        return not row["valid"] or (self.aim.beyond(row) <= 0 and self.fits(row))

    def allowed(self, count: int) -> bool:
        """Whether a model may be chosen at all."""
        row = self.point(count)
        return row["valid"] and not (self.aim.capped and self.aim.beyond(row) > 0) and self.fits(row)

    def fits(self, row: Figures) -> bool:
        """Whether weights, caches and all fit where a device is given: what `memory` says of the fullest device."""
        if self.aim.at_most is None:
            return True
        from paramcalc.footprint import per_device

        held = per_device.figures(self.bench.model(row["fields"]), self.bench.question.assumed)
        return int(held["total"]["bytes"]) <= self.aim.at_most


def turning(inside: Callable[[int], bool]) -> int:
    """The largest count that is inside, 0 where not even 1 is; larger ones are taken to be outside too."""
    low, high = 0, 1
    while high <= MOST and inside(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if inside(middle) else (low, middle)
    return low
