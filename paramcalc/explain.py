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
TENSOR_ROLES = {"parameter": "", "buffer": "a buffer: not a parameter", "mtp": "apart: not built by the class"}


def explain(model: Model) -> Explanation:
    """Show how each figure of `count(model)` comes about: terms, sums and the rule of thumb beside them."""
    report = count(model)
    legend: dict[str, Symbol] = {}
    lines: list[Line] = []
    for part in model.tree.children():
        lines += _part(part, 0, legend)
    lines += _sums(model, report.parameters.total, report.parameters.active)
    lines += _rule_of_thumb(legend, model, report.parameters.total, report.parameters.non_embedding)
    return Explanation(
        model=report.model, warnings=report.warnings, symbols=tuple(legend.values()), lines=tuple(lines)
    )


# -- one line per tensor -----------------------------------------------------------------------------------------


def _part(part: Part, level: int, legend: dict[str, Symbol]) -> Iterator[Line]:
    component = part.component
    if isinstance(component, Stack):
        for run in component.children():
            yield from _layer(run, component.role, level, legend)
        return
    children = list(component.children())
    tensors = list(component.tensors())
    yield from _tie_lines(component, part.name, level)
    if not children:
        for weight in tensors:
            name = part.name if len(tensors) == 1 else f"{part.name}.{weight.name}"
            yield _tensor(weight, name, level, legend)
        return
    yield Line(level=level, name=part.name, remark=_apart(component))
    for child in children:
        yield from _part(child, level + 1, legend)
        if child.copies != 1:
            yield from _repeated(child, level + 1, legend)
    yield _sum(component, part.name, level + 1)


def _layer(run: Part, role: str, level: int, legend: dict[str, Symbol]) -> Iterator[Line]:
    plural = "layers" if run.copies > 1 else "layer"
    yield Line(level=level, name=f"{role} {plural} {run.name}", remark=run.component.label())
    for child in run.component.children():
        yield from _part(child, level + 1, legend)
    one = _sum(run.component, "one layer", level + 1)
    yield one
    if run.copies > 1:
        times = f"{run.copies:,} x {one.result:,}"
        yield Line(level=level + 1, name="all of them", numbers=times, result=int(run.copies) * (one.result or 0))


def _repeated(child: Part, level: int, legend: dict[str, Symbol]) -> Iterator[Line]:
    """Experts: so many in all, so many for one token."""
    one = _elements(child.component.weights())
    formula = _formula(child.component)
    for copies, what in ((child.copies, "all"), (child.active, "one token uses")):
        _note_symbols((copies,), legend)
        symbol, number = dims.spelled(copies)
        yield Line(
            level=level,
            name=f"{child.name}s, {what}" if what == "all" else what,
            formula=f"{symbol} ({formula})",
            numbers=f"{number} x {one:,}",
            result=int(copies) * one,
        )


def _tensor(weight: Weight, name: str, level: int, legend: dict[str, Symbol]) -> Line:
    sizes = (*((weight.copies,) if weight.copies != 1 else ()), *weight.shape)
    _note_symbols(sizes, legend)
    spelled = [dims.spelled(size) for size in sizes if size != 1 or len(sizes) == 1]
    many = len(spelled) > 1
    return Line(
        level=level,
        name=name,
        formula=" ".join(dims.bracketed(symbol) if many else symbol for symbol, _ in spelled),
        numbers=" x ".join(dims.bracketed(number) if many else number for _, number in spelled),
        result=prod(int(size) for size in sizes),
        remark=TENSOR_ROLES[weight.role],
    )


def _tie_lines(component: Component, name: str, level: int) -> Iterator[Line]:
    for tie in component.ties():
        yield Line(level=level, name=name, result=0, remark=f"tied: the matrix of {tie.owner}, counted there")


def _apart(component: Component) -> str:
    return "multi-token prediction: reported apart, not in the total" if isinstance(component, Mtp) else ""


def _note_symbols(sizes: Iterable[int], legend: dict[str, Symbol]) -> None:
    for size in sizes:
        for symbol, (value, origin) in dims.symbols(size).items():
            legend.setdefault(symbol, Symbol(symbol=symbol, value=value, origin=origin))


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


def _formula(component: Component) -> str:
    """The component's formula; beside it the shorter one where sizes coincide (h d_h = d)."""
    values = {s: v for w in component.weights() for size in w.shape for s, (v, _) in dims.symbols(size).items()}
    terms = _polynomial(component)
    short, facts = dims.simplified(terms, values)
    if not facts:
        return dims.formula(terms)
    return f"{dims.formula(terms)}  =  {dims.formula(short)}  as {', '.join(facts)}"


def _sum(component: Component, name: str, level: int) -> Line:
    results = [_elements(part.component.weights()) * int(part.copies) for part in component.children()]
    numbers = " + ".join(f"{result:,}" for result in results if result)
    return Line(level=level, name=f"= {name}", formula=_formula(component), numbers=numbers, result=sum(results))


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
    yield Line(level=0, name="rule of thumb", remark="for dense layers with heads that fill the width and a plain FFN of 4 d")
    rows = [("12 L d^2", f"12 x {depth:,} x {d:,}^2", layers, non_embedding, "without embeddings and head")]
    if vocab:
        numbers = f"12 x {depth:,} x {d:,}^2 + {vocab:,} x {d:,}"
        rows.append(("12 L d^2 + V d", numbers, layers + vocab * d, total, "in all"))
    for formula, numbers, guess, exact, what in rows:
        remark = f"exactly {exact:,} {what}: off by {_error(guess, exact)}"
        yield Line(level=1, name="", formula=formula, numbers=numbers, result=guess, remark=remark)


def _error(guess: int, exact: int) -> str:
    if not exact:
        return "n/a"
    return f"{Decimal(100 * (guess - exact)) / exact:+.1f} %"
