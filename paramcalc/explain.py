"""The arithmetic of a count, line by line: each tensor's formula, its numbers and its result, then the sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from math import prod

from paramcalc import dims
from paramcalc.count import count
from paramcalc.dims import Monomial
from paramcalc.model import Model
from paramcalc.report import Explanation, Line, Symbol
from paramcalc.spec import Component, Mtp, Part, Stack, Weight

Polynomial = Counter[Monomial]
SHIPPED = "with its own copies of the embedding and the head"
ROLES = {"parameter": "", "buffer": "a buffer: not a parameter", "mtp": "apart: not built by the class"}


def explain(model: Model) -> Explanation:
    """Show how each figure of `count(model)` comes about: terms, sums and the rule of thumb beside them."""
    report = count(model)
    story = _Story()
    for part in model.tree.children():
        story.part(part, 0)
    total, active = report.parameters.total, report.parameters.active
    lines = [
        *story.lines,
        *_sums(model, total, active),
        *_rule_of_thumb(story.legend, model, total, report.parameters.non_embedding),
    ]
    return Explanation(
        model=report.model, warnings=report.warnings, symbols=tuple(story.legend.values()), lines=tuple(lines)
    )


# -- one line per tensor -----------------------------------------------------------------------------------------


class _Story:
    """The lines so far, the symbols they use, and the parts that were told in full and need not be again."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.legend: dict[str, Symbol] = {}
        self.told: dict[tuple[Weight, ...], str] = {}

    def part(self, part: Part, level: int) -> None:
        """A part, down to its tensors, and its sum."""
        component, name = part.component, part.name
        if isinstance(component, Stack):
            for run in component.children():
                self._layers(run, component.role, level)
            return
        for tie in component.ties():
            self.lines.append(Line(level=level, name=name, result=0, remark=f"tied to {tie.owner}, counted there"))
        if not list(component.children()):
            self._leaf(component, name, level)
        elif not self._told_before(component, name, level):
            self._group(component, name, level)

    def _group(self, component: Component, name: str, level: int) -> None:
        self.lines.append(Line(level=level, name=name, remark=_apart(component)))
        for child in component.children():
            self.part(child, level + 1)
            if child.copies != 1:
                self._repeated(child, level + 1)
        self.lines.append(_sum(component, name, level + 1))
        if isinstance(component, Mtp):
            shipped = _elements(component.weights()) + component.copied
            self.lines.append(Line(level=level + 1, name="= as shipped", result=shipped, remark=SHIPPED))

    def _told_before(self, component: Component, name: str, level: int) -> bool:
        key = tuple(component.weights())
        if key in self.told:
            self.lines.append(
                Line(level=level, name=name, result=_elements(key), remark=f"the same as {self.told[key]} above")
            )
            return True
        self.told[key] = name
        return False

    def _layers(self, run: Part, role: str, level: int) -> None:
        title = f"{role} layer{'s' if run.copies > 1 else ''} {run.name}"
        self.lines.append(Line(level=level, name=title, remark=run.component.label()))
        for child in run.component.children():
            self.part(child, level + 1)
        one = _sum(run.component, "one layer", level + 1)
        self.lines.append(one)
        self.told[tuple(run.component.weights())] = title
        if run.copies > 1 and one.result is not None:
            numbers, result = f"{run.copies:,} x {one.result:,}", int(run.copies) * one.result
            self.lines.append(Line(level=level + 1, name="= all of them", numbers=numbers, result=result))

    def _repeated(self, child: Part, level: int) -> None:
        """Experts: so many in all, so many for one token."""
        one = _elements(child.component.weights())
        formula = dims.formula(_polynomial(child.component))
        for copies, name in ((child.copies, f"all {child.name}s"), (child.active, "one token uses")):
            self._note((copies,))
            symbol, number = dims.spelled(copies)
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
        tensors = list(component.tensors())
        for weight in tensors:
            sizes = (*((weight.copies,) if weight.copies != 1 else ()), *weight.shape)
            self._note(sizes)
            spelled = [dims.spelled(size) for size in sizes if size != 1 or len(sizes) == 1]
            self.lines.append(
                Line(
                    level=level,
                    name=name if len(tensors) == 1 else f"{name}.{weight.name}",
                    formula=" ".join(_factor(symbol, spelled) for symbol, _ in spelled),
                    numbers=" x ".join(_factor(number, spelled) for _, number in spelled),
                    result=prod(int(size) for size in sizes),
                    remark=ROLES[weight.role],
                )
            )

    def _note(self, sizes: Iterable[int]) -> None:
        for size in sizes:
            for symbol, (value, origin) in dims.symbols(size).items():
                self.legend.setdefault(symbol, Symbol(symbol=symbol, value=value, origin=origin))


def _factor(text: str, factors: list[tuple[str, str]]) -> str:
    return dims.bracketed(text) if len(factors) > 1 else text


def _apart(component: Component) -> str:
    return "multi-token prediction: reported apart, not in the total" if isinstance(component, Mtp) else ""


# -- sums --------------------------------------------------------------------------------------------------------


def _elements(weights: Iterable[Weight]) -> int:
    return sum(w.elements * int(w.copies) for w in weights if w.role != "buffer")


def _polynomial(component: Component) -> Polynomial:
    """All parameters of a component as one sum of products."""
    total: Polynomial = Counter()
    for w in component.weights():
        if w.role != "buffer":
            term = dims.polynomial(w.copies)
            for size in w.shape:
                term = dims.product(term, dims.polynomial(size))
            total.update(term)
    return total


def _sum(component: Component, name: str, level: int) -> Line:
    """The sum of a component's parts; as a remark the shorter formula where sizes coincide (h d_h = d)."""
    # Within a module that is reported apart, buffers belong to what is reported.
    roles = {"parameter", "mtp", "buffer"} if isinstance(component, Mtp) else {"parameter", "mtp"}
    results = [
        sum(w.elements * int(w.copies) for w in part.component.weights() if w.role in roles) * int(part.copies)
        for part in component.children()
    ]
    terms = _polynomial(component)
    values = {s: v for w in component.weights() for size in w.shape for s, (v, _) in dims.symbols(size).items()}
    short, facts = dims.simplified(terms, values)
    return Line(
        level=level,
        name=f"= {name}",
        formula=dims.formula(terms),
        numbers=" + ".join(f"{result:,}" for result in results if result),
        result=sum(results),
        remark=f"= {dims.formula(short)} as {', '.join(facts)}" if facts else "",
    )


def _sums(model: Model, total: int, active: int) -> Iterator[Line]:
    yield Line(level=0, name="sum")
    for part in model.tree.children():
        if isinstance(part.component, Mtp):
            continue
        weights = [w for w in part.component.weights() if w.role == "parameter"]
        yield Line(level=1, name=part.name, result=_elements(weights))
    yield Line(level=1, name="= total", result=total)
    if active != total:
        idle = total - active
        yield Line(level=1, name="- experts one token does not use", result=-idle)
        yield Line(level=1, name="= active", result=active)


def _rule_of_thumb(legend: dict[str, Symbol], model: Model, total: int, non_embedding: int) -> Iterator[Line]:
    """12 L d^2, with and without V d, beside the exact figures (Kaplan et al. 2020, table 1)."""
    depth = sum(int(run.repeat) * run.passes for stack in model.tree.stacks() for run in stack.runs)
    if "d" not in legend or not depth:
        return
    d, vocab = legend["d"].value, legend["V"].value if "V" in legend else 0
    layers = 12 * depth * d * d
    thumb = f"12 x {depth:,} x {d:,}^2"
    yield Line(level=0, name="rule of thumb", remark="dense layers, heads that fill the width, a plain FFN of 4 d")
    yield Line(level=1, name="the layers", formula="12 L d^2", numbers=thumb, result=layers)
    yield _against(non_embedding, layers, "without embeddings and head")
    if vocab:
        guess, numbers = layers + vocab * d, f"{thumb} + {vocab:,} x {d:,}"
        yield Line(level=1, name="with embedding", formula="12 L d^2 + V d", numbers=numbers, result=guess)
        yield _against(total, guess, "in all")


def _against(exact: int, guess: int, what: str) -> Line:
    return Line(level=1, name="exactly", result=exact, remark=f"{what}; the rule is off by {_error(guess, exact)}")


def _error(guess: int, exact: int) -> str:
    if not exact:
        return "n/a"
    return f"{Decimal(100 * (guess - exact)) / exact:+.1f} %"
