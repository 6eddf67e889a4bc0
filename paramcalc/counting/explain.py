"""`count --explain`: the formula, numbers and result of each tensor, then the sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from math import prod

from paramcalc.base import symbolic
from paramcalc.base.symbolic import Monomial
from paramcalc.counting.count import count
from paramcalc.counting.symbols import SymbolTable
from paramcalc.counting.tree_rows import BUILT, SHIPPED, tree_parts
from paramcalc.model import Model
from paramcalc.reports.count import Explanation, Line, Symbol
from paramcalc.tree.component import Component, Part
from paramcalc.tree.containers import Mtp, Stack, stacks
from paramcalc.tree.weights import Weight, WeightRole

Polynomial = Counter[Monomial]
COPIES_REMARK = "with its own copies of embedding and head"
MTP_REMARK = "multi-token prediction: reported separately"
ROLE_REMARKS = {
    "parameter": "",
    "buffer": "a buffer: not a parameter",
    "mtp": "reported separately: not built by the class",
}


def explain_count(model: Model, *, include_mtp: bool = False) -> Explanation:
    """Explain each figure of `count(model)`: terms, sums, and the rule of thumb for comparison."""
    report = count(model, include_mtp=include_mtp)
    explanation = _CountLines()
    for part in model.tree.children():
        explanation.part(part, 0)
    total, active = report.parameters.total, report.parameters.active
    lines = [
        *explanation.lines,
        *_sums(model, total, active, include_mtp),
        *_rule_of_thumb(explanation.legend.symbols, model, total, report.parameters.non_embedding),
    ]
    return Explanation(
        model=report.model,
        warnings=report.warnings,
        symbols=tuple(explanation.legend.symbols.values()),
        lines=tuple(lines),
    )


# -- one line per tensor -----------------------------------------------------------------------------------------


class _CountLines:
    """Collects the lines and their symbols, and remembers the explained parts, so that none is explained twice."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.legend = SymbolTable()
        self.explained: dict[tuple[Weight, ...], str] = {}  # from the weights of a part to its name
        self.layer_title = ""  # the layers that are being explained
        self.counted: frozenset[WeightRole] = BUILT  # roles that count; an MTP module has more

    def part(self, part: Part, level: int) -> None:
        """Add a part, down to its tensors, and its sum."""
        component, name = part.component, part.name
        if isinstance(component, Stack):
            for kind in tree_parts(component):
                self._layers(kind, component.role, level)
            return
        for tie in component.own_ties():
            self.lines.append(Line(level=level, name=name, result=0, remark=f"tied to {tie.owner}, counted there"))
        if not list(component.children()):
            self._leaf(component, name, level)
        elif not self._explained_before(component, name, level):
            self._group(component, name, level)

    def _group(self, component: Component, name: str, level: int) -> None:
        """Add a part with children."""
        is_mtp = isinstance(component, Mtp)
        self.counted = SHIPPED if is_mtp else self.counted
        self.lines.append(Line(level=level, name=name, remark=MTP_REMARK if is_mtp else ""))
        for child in component.children():
            self.part(child, level + 1)
            if child.copies != 1:
                self._repeated(child, level + 1)
        self.lines.append(self._sum(component, name, level + 1))
        if isinstance(component, Mtp):
            shipped = self._elements(component.weights()) + component.copied
            self.lines.append(Line(level=level + 1, name="= as shipped", result=shipped, remark=COPIES_REMARK))
            self.counted = BUILT

    def _explained_before(self, component: Component, name: str, level: int) -> bool:
        """If an equal part is explained already, add a line that refers to it and return True; else record the part."""
        key = tuple(component.weights())
        if key in self.explained:
            remark = f"the same as {self.explained[key]}"
            if self._elements(key) != sum_of(key, BUILT):
                remark += ", with its buffers"
            self.lines.append(Line(level=level, name=name, result=self._elements(key), remark=remark))
            return True
        self.explained[key] = f"{name} of {self.layer_title}" if self.layer_title else name
        return False

    def _layers(self, kind: Part, role: str, level: int) -> None:
        """Add all layers of one kind."""
        title = f"{role} {kind.name}"
        if self._explained_before(kind.component, title, level):
            self._times(kind, self._elements(kind.component.weights()), level + 1)
            return
        self.explained[tuple(kind.component.weights())] = self.layer_title = title
        self.lines.append(Line(level=level, name=title, remark=kind.component.label()))
        for child in kind.component.children():
            self.part(child, level + 1)
        one = self._sum(kind.component, "one layer", level + 1)
        self.lines.append(one)
        self._times(kind, one.result or 0, level + 1)
        self.layer_title = ""

    def _times(self, kind: Part, one: int, level: int) -> None:
        """Add the product of one layer and the number of layers, if there are several."""
        if kind.copies > 1:
            numbers, result = f"{kind.copies:,} x {one:,}", int(kind.copies) * one
            self.lines.append(Line(level=level, name="= all layers", numbers=numbers, result=result))

    def _repeated(self, child: Part, level: int) -> None:
        """Add the totals of a repeated part, such as an expert: all copies, and those that one token uses."""
        one = self._elements(child.component.weights())
        formula = symbolic.formula(self._polynomial(child.component))
        for copies, name in ((child.copies, f"all {child.name}s"), (child.active, "active per token")):
            symbol, number = symbolic.symbols_and_numbers(self.legend.distinct(copies))
            self.lines.append(
                Line(
                    level=level,
                    name=name,
                    formula=f"{symbol} ({formula})",
                    numbers=f"{number} x {one:,}",
                    result=int(copies) * one,
                )
            )

    def _leaf(self, component: Component, name: str, level: int) -> None:
        """Add one line per tensor, and their sum."""
        tensors = list(component.own_weights())
        for weight in tensors:
            sizes = (*((weight.copies,) if weight.copies != 1 else ()), *weight.shape)
            factors = [
                symbolic.symbols_and_numbers(self.legend.distinct(size))
                for size in sizes
                if size != 1 or len(sizes) == 1
            ]
            many = len(factors) > 1
            symbols = [symbolic.bracketed(symbol) if many else symbol for symbol, _ in factors]
            numbers = [symbolic.bracketed(number) if many else number for _, number in factors]
            self.lines.append(
                Line(
                    level=level,
                    name=name if len(tensors) == 1 else f"{name}.{weight.name}",
                    formula=(" x " if any(text[:1].isdigit() for text in symbols[1:]) else " ").join(symbols),
                    numbers=" x ".join(numbers),
                    result=prod(int(size) for size in sizes),
                    remark=ROLE_REMARKS[weight.role],
                )
            )
        if len(tensors) > 1:
            results = [prod(map(int, weight.shape)) for weight in tensors]
            added = " + ".join(f"{result:,}" for result in results)
            self.lines.append(Line(level=level, name=f"= {name}", numbers=added, result=sum(results)))

    def _sum(self, component: Component, name: str, level: int) -> Line:
        """The sum of a component's parts; the remark gives a shorter formula if sizes coincide (h d_h = d)."""
        results = [self._elements(part.component.weights()) * int(part.copies) for part in component.children()]
        terms = self._polynomial(component)
        values = {symbol: entry.value for symbol, entry in self.legend.symbols.items()}
        short, facts = symbolic.simplify(terms, values)
        return Line(
            level=level,
            name=f"= {name}",
            formula=symbolic.formula(terms),
            numbers=" + ".join(f"{result:,}" for result in results if result),
            result=sum(results),
            remark=f"= {symbolic.formula(short)} as {', '.join(facts)}" if facts else "",
        )

    def _elements(self, weights: Iterable[Weight]) -> int:
        return sum_of(weights, self.counted)

    def _polynomial(self, component: Component) -> Polynomial:
        """The parameters of a component as a sum of products."""
        total: Polynomial = Counter()
        for w in component.weights():
            if w.role in self.counted:
                term = symbolic.polynomial(self.legend.distinct(w.copies))
                for size in w.shape:
                    term = symbolic.polynomial_product(term, symbolic.polynomial(self.legend.distinct(size)))
                total.update(term)
        return total


def sum_of(weights: Iterable[Weight], roles: frozenset[WeightRole]) -> int:
    """Number of scalars in the tensors that have one of these roles, with all copies."""
    return sum(w.elements * int(w.copies) for w in weights if w.role in roles)


# -- sums --------------------------------------------------------------------------------------------------------


def _sums(model: Model, total: int, active: int, include_mtp: bool) -> Iterator[Line]:
    yield Line(level=0, name="sum")
    for part in model.tree.children():
        is_mtp = isinstance(part.component, Mtp)
        if include_mtp or not is_mtp:
            result = sum_of(part.component.weights(), SHIPPED if is_mtp else BUILT)
            yield Line(level=1, name=part.name, result=result)
    yield Line(level=1, name="= total", result=total)
    if active != total:
        remark = "routed experts that one token does not use"
        yield Line(level=1, name="- inactive experts", result=active - total, remark=remark)
        yield Line(level=1, name="= active", result=active)


def _rule_of_thumb(legend: dict[str, Symbol], model: Model, total: int, non_embedding: int) -> Iterator[Line]:
    """12 L d^2, with and without V d, compared with the exact figures (Kaplan et al. 2020, table 1)."""
    depth = sum(int(run.repeat) * run.passes for stack in stacks(model.tree) for run in stack.runs)
    if "d" not in legend or not depth:
        return
    legend.setdefault("L", Symbol(symbol="L", value=depth, origin="all layers"))
    if legend["L"].value != depth:
        return  # two stacks of different depth: the rule does not apply
    d, vocab = legend["d"].value, legend["V"].value if "V" in legend else 0
    layers = 12 * depth * d * d
    thumb = f"12 x {depth:,} x {d:,}^2"
    yield Line(level=0, name="rule of thumb", remark="for dense layers with h d_h = d and an ungated FFN of width 4 d")
    yield Line(level=1, name="all layers", formula="12 L d^2", numbers=thumb, result=layers)
    yield _comparison(non_embedding, layers, "without embeddings and head")
    if vocab:
        estimate, numbers = layers + vocab * d, f"{thumb} + {vocab:,} x {d:,}"
        yield Line(level=1, name="with embedding", formula="12 L d^2 + V d", numbers=numbers, result=estimate)
        yield _comparison(total, estimate, "total")


def _comparison(exact: int, estimate: int, scope: str) -> Line:
    return Line(level=1, name="exactly", result=exact, remark=f"{scope}; error of the rule {_error(estimate, exact)}")


def _error(estimate: int, exact: int) -> str:
    if not exact:
        return "n/a"
    return f"{Decimal(100 * (estimate - exact)) / exact:+.1f} %"
