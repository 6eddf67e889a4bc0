"""Comparison of models: the figures of `count`, `memory` and `flops`, and the shape, with differences and ratios."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from paramcalc.assumptions import assume
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.compute import flops
from paramcalc.compute.workload import check_workload
from paramcalc.counting.count import count_figures as counts
from paramcalc.counting.count import model_info
from paramcalc.footprint import memory
from paramcalc.model import Model
from paramcalc.scaling import changes
from paramcalc.scaling.dimensions import ShapeValue, model_shape
from paramcalc.tree.weights import CATEGORIES

if TYPE_CHECKING:
    from paramcalc.reports.compare import CompareReport
    from paramcalc.reports.shapes.compare import ComparedDict, ComparedReport, CompareReportDict, Number

COMPARE_CONTEXT = 8192  # default context in tokens; the report states it
DIGITS = 6  # significant digits of a ratio
ALWAYS = ("kv_cache.bytes_per_token",)  # shown even if it is 0 for all models
# The figures of each report that are compared, by their names there.
COUNTED = (
    "parameters.total",
    "parameters.active",
    "parameters.active_without_input_embedding",
    "parameters.non_embedding",
    "parameters.buffers",
    "parameters.mtp",
    *(f"components.{category}.total" for category in CATEGORIES),
)
STORED = (
    "working.logits.vocabulary",
    "weights.bytes",
    "kv_cache.bytes_per_token",
    "kv_cache.per_sequence.bytes",
    "state.per_sequence",
)
COMPUTED = ("per_token.total", "per_token.attention")
# The report that each name belongs to; "shape" is this comparison's own.
Name = tuple["ComparedReport", str]


class Named(Protocol):
    """An object with a name, and a source that distinguishes it from others of that name."""

    @property
    def name(self) -> str:
        """The name of the model."""

    @property
    def source(self) -> str:
        """The source of the model."""


def compare(models: Sequence[Model], *, context: int = COMPARE_CONTEXT, only_different: bool = False) -> CompareReport:
    """Compare several models, with differences and ratios to the first, at `context` tokens.

    For two models of one family, the report also has the config fields that differ and the effect of each on the count.
    `only_different` leaves out figures that are the same for all. Raises ParamcalcError for fewer than two models.
    """
    from paramcalc.reports.compare import CompareReport

    return CompareReport.model_validate(compare_figures(models, context=context, only_different=only_different))


def compare_figures(
    models: Sequence[Model], *, context: int = COMPARE_CONTEXT, only_different: bool = False
) -> CompareReportDict:
    """The comparison as plain data: the keys and the order of `CompareReport`."""
    check_models(models)
    found = [compared_figures(model, context) for model in models]
    rows = [row for row in compare_rows_data([one.values for one in found]) if row["differs"] or not only_different]
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "models": [model_info(model) for model in models],
        "warnings": labelled(models, [one.warnings for one in found]),
        "notes": labelled(models, [one.notes for one in found]) + format_notes(models, [one.formats for one in found]),
        "assumptions": {"context": context},
        "rows": rows,
        "change": changes.change_figures(models),
    }


def check_models(models: Any) -> None:
    """Check the arguments of an untyped caller. Raises ParamcalcError unless they are two or more Models."""
    several = isinstance(models, Sequence) and not isinstance(models, str)
    wrong = [type(model).__name__ for model in models if not isinstance(model, Model)] if several else []
    if not several or wrong:
        raise ParamcalcError(
            f"compare needs a list of Models, not {', '.join(wrong) or type(models).__name__}",
            "make them with paramcalc.load(...)",
        )
    if len(models) < 2:
        given = "one" if models else "none"
        raise ParamcalcError(
            f"compare needs at least two models, not {given}",
            "paramcalc compare --preset llama3-8b --preset qwen3-8b, or paramcalc compare old.json new.json",
        )


def model_labels(models: Sequence[Named]) -> list[str]:
    """A label for each model: its name, or its source if names repeat, with a number if sources repeat too."""
    names = Counter(model.name for model in models)
    labels = [model.name if names[model.name] == 1 else model.source for model in models]
    return [
        text if labels.count(text) == 1 else f"{text} ({labels[: i + 1].count(text)})" for i, text in enumerate(labels)
    ]


def labelled(models: Sequence[Model], texts: Sequence[Sequence[str]]) -> list[str]:
    """The warnings or notes of each model, labelled with its name."""
    return [f"{label}: {text}" for label, own in zip(model_labels(models), texts, strict=True) for text in own]


def format_notes(models: Sequence[Model], formats: Sequence[str]) -> list[str]:
    """A note with the format of each model's weights where formats differ, because byte figures then differ too."""
    return labelled(models, [[f"weights in {text}"] for text in formats]) if len(set(formats)) > 1 else []


class ComparedFigures(NamedTuple):
    """One model's figures by name, with warnings and notes."""

    values: Mapping[Name, ShapeValue]
    warnings: Sequence[str]
    notes: Sequence[str]
    formats: str  # of the weights


def compared_figures(model: Model, context: int) -> ComparedFigures:
    """Every compared figure of a model, as in the reports of `count`, `memory` and `flops`."""
    counted = counts(model)
    stored = memory.memory_figures(model, assume(context=context))
    computed = flops.flops_figures(model, check_workload(tokens=context))
    values: dict[Name, ShapeValue] = {("count", name): figure_at(counted, name) for name in COUNTED}
    values |= {("shape", name): value for name, value in model_shape(model.tree).items()}
    values |= {("memory", name): figure_at(stored, name) for name in STORED}
    values |= {("flops", name): figure_at(computed, name) for name in COMPUTED}
    return ComparedFigures(values, stored["warnings"], computed["notes"], ", ".join(stored["weights"]["by_format"]))


def figure_at(report: Mapping[str, object], name: str) -> int:
    """The figure under a dotted name; 0 if the report has no such part."""
    place: object = report
    for step in name.split("."):
        place = place.get(step) if isinstance(place, Mapping) else None
    return place if isinstance(place, int) else 0


def compare_rows_data(found: Sequence[Mapping[Name, ShapeValue]]) -> Iterator[ComparedDict]:
    """A row for each figure that any of the models has."""
    for report, name in found[0]:
        values = [one[report, name] for one in found]
        if any(values) or name in ALWAYS:
            yield {
                "report": report,
                "name": name,
                "values": list(map(json_numbers, values)),
                "differences": [difference_to(value, values[0]) for value in values],
                "ratios": [ratio_to(value, values[0]) for value in values],
                "differs": any(value != values[0] for value in values),
            }


def difference_to(value: ShapeValue, base: ShapeValue) -> Number | None:
    """The difference to the first model; None unless both have one number."""
    if not isinstance(value, int | Fraction) or not isinstance(base, int | Fraction):
        return None
    return json_number(value - base)


def ratio_to(value: ShapeValue, base: ShapeValue) -> float | None:
    """The ratio to the first model, to six significant digits."""
    if not isinstance(value, int | Fraction) or not isinstance(base, int | Fraction) or not base:
        return None
    return significant(Fraction(value) / base)


def significant(value: Fraction) -> float:
    """The nearest number with six significant digits."""
    return float(f"{float(value):.{DIGITS}g}")


def json_numbers(value: ShapeValue) -> Number | list[Number] | None:
    """A figure as JSON data: a number, a list of numbers, or null."""
    if value is None:
        return None
    return list(map(json_number, value)) if isinstance(value, tuple) else json_number(value)


def json_number(value: int | Fraction) -> Number:
    """An integer as it is, a fraction rounded to six significant digits."""
    return significant(value) if isinstance(value, Fraction) else value
