"""The dicts that folds build have the keys and types of the pydantic classes, which are the JSON contract."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from pydantic import Field

import paramcalc
from paramcalc import reports
from paramcalc.assumptions import assume
from paramcalc.compute.flops import flops_figures
from paramcalc.compute.trace import trace_figures
from paramcalc.compute.workload import check_workload
from paramcalc.counting.count import count_figures
from paramcalc.footprint.devices import find_device, known_devices
from paramcalc.footprint.fit import device_info, fit_figures, utilization
from paramcalc.footprint.memory import memory_figures
from paramcalc.reports import shapes
from paramcalc.reports.base import Report
from paramcalc.reports.compare import Change, CompareReport
from paramcalc.reports.count import CountReport
from paramcalc.reports.fit import DeviceInfo, FitReport
from paramcalc.reports.flops import FlopsReport
from paramcalc.reports.memory import MemoryReport, PerDevice, WorkingPart
from paramcalc.reports.scaling import DesignReport, Point, ScaleReport
from paramcalc.reports.trace import TraceReport
from paramcalc.scaling.compare import COMPUTED, COUNTED, STORED, compare_figures
from paramcalc.scaling.design import design_figures
from paramcalc.scaling.scaling_rules import scaling_rules
from paramcalc.scaling.search import make_goal
from paramcalc.scaling.sweep import sweep_figures, sweep_settings


def classes_of(package: types.ModuleType, wanted: Callable[[Any], bool]) -> dict[str, Any]:
    """`module.Name` of each class that a module of the package defines."""
    found = {}
    for module in iter_modules(package.__path__):
        content = vars(import_module(f"{package.__name__}.{module.name}"))
        for name, one in content.items():
            if isinstance(one, type) and one.__module__.endswith(f".{module.name}") and wanted(one):
                found[f"{module.name}.{name}"] = one
    return found


SHAPES = classes_of(shapes, is_typeddict)
REPORTS = classes_of(reports, lambda one: issubclass(one, Report))
# Built as pydantic objects, whose constructors mypy checks: their answers are not needed in a hurry.
BUILT_AS_OBJECTS = {
    *("base.Report", "count.Explanation", "count.Symbol", "count.Line"),
    *("count.PresetInfo", "count.FamilyField", "count.FamilyInfo", "count.DtypeInfo"),
}
# Some keys of a report part, which the folds put together.
PARTIAL: dict[str, type[Report]] = {
    "memory.CachesDict": MemoryReport,
    "memory.WorkingSizesDict": WorkingPart,
    "memory.StageLoadDict": PerDevice,
    "scaling.PlaceDict": Point,
    "scaling.VerdictDict": Point,
    "scaling.OutcomeDict": Point,
    "compare.DifferenceDict": Change,
}


def label(one: type) -> str:
    """The name under which a TypedDict and its pydantic class are the same."""
    name = f"{one.__module__.rpartition('.')[2]}.{one.__name__}"
    return label(PARTIAL[name]) if name in PARTIAL else name.removesuffix("Dict")


def json_type(annotation: Any) -> Any:
    """What an annotation means in JSON: tuples are lists, and a TypedDict is its pydantic class."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        return json_type(arguments[0])
    if origin is Literal:
        return "one of", frozenset(arguments)
    if origin in (typing.Union, types.UnionType):
        return "union", frozenset(map(json_type, arguments))
    if origin in (tuple, list):
        return "list", frozenset(json_type(one) for one in arguments if one is not ...)
    if origin is dict:
        return "dict", *map(json_type, arguments)
    if is_typeddict(annotation) or (isinstance(annotation, type) and issubclass(annotation, Report)):
        return label(annotation)
    return annotation


def without_none(kind: Any) -> Any:
    """The type of a key that is left out where the class has None."""
    match kind:
        case ("union", kinds) if len(kinds) == 2:
            return next(iter(kinds - {type(None)}))
    return kind


def fields_of(one: Any) -> dict[str, Any]:
    """The keys in their order and the types of a TypedDict or a pydantic class."""
    hints = get_type_hints(one)
    names = hints if is_typeddict(one) else one.model_fields
    return {name: json_type(hints[name]) for name in names}


def differences(shape: Any, report: type[Report], *, partial: bool = False) -> Iterator[str]:
    """In what a TypedDict is not the dump of a pydantic class, or of some of its fields if it is `partial`."""
    found, wanted = fields_of(shape), fields_of(report)
    keys = [name for name in wanted if name in found] if partial else list(wanted)
    if list(found) != keys:
        yield f"keys {list(found)}, not {keys}"
    for name in found.keys() & wanted.keys():
        optional, default = name not in shape.__required_keys__, report.model_fields[name].default
        kinds = {wanted[name], without_none(wanted[name])} if optional and default is None else {wanted[name]}
        if found[name] not in kinds:
            yield f"{name} is {found[name]}, not {wanted[name]}"
        if optional and report.model_fields[name].is_required():
            yield f"{name} may be missing, and has no default"


@pytest.mark.parametrize("name", SHAPES)
def test_a_dict_has_the_keys_and_types_of_its_report(name: str) -> None:
    partial = name in PARTIAL
    report = PARTIAL[name] if partial else REPORTS[name.removesuffix("Dict")]

    assert list(differences(SHAPES[name], report, partial=partial)) == []


def test_every_report_that_is_built_as_a_dict_has_its_type() -> None:
    assert {f"{name}Dict" for name in REPORTS.keys() - BUILT_AS_OBJECTS} | PARTIAL.keys() == SHAPES.keys()


class Inner(Report):
    size: int


class Whole(Report):
    name: str
    inner: tuple[Inner, ...]
    kind: Literal["a", "b"] | None = Field(description="x")
    extra: int = 0


class InnerDict(TypedDict):
    size: int


class WholeBase(TypedDict):
    name: str
    inner: list[InnerDict]
    kind: Literal["a", "b"] | None


class WholeDict(WholeBase, total=False):
    extra: int


def typed_dict(fields: Mapping[str, Any], *, total: bool = True) -> Any:
    return vars(typing)["TypedDict"]("Made", dict(fields), total=total)


def changed(**fields: Any) -> Any:
    """`WholeDict` with other types, or None for keys that it has not."""
    hints = {**get_type_hints(WholeDict), **fields}
    return typed_dict({name: kind for name, kind in hints.items() if kind is not None})


def test_the_comparison_can_fail() -> None:
    optional = typed_dict({"name": str}, total=False)
    other_order = typed_dict(dict(reversed(get_type_hints(WholeDict).items())))

    assert list(differences(WholeDict, Whole)) == []
    assert list(differences(changed(name=int), Whole)) == [f"name is {int}, not {str}"]
    assert len(list(differences(changed(inner=list[WholeBase]), Whole))) == 1
    assert len(list(differences(changed(inner=InnerDict), Whole))) == 1
    assert len(list(differences(changed(kind=Literal["a", "c"] | None), Whole))) == 1
    assert len(list(differences(changed(kind=Literal["a", "b"]), Whole))) == 1
    assert len(list(differences(changed(extra=None), Whole))) == 1
    assert len(list(differences(changed(more=int), Whole))) == 1
    assert len(list(differences(other_order, Whole))) == 1
    assert list(differences(optional, Whole, partial=True)) == ["name may be missing, and has no default"]
    assert list(differences(changed(extra=None), Whole, partial=True)) == []
    assert len(list(differences(changed(more=int), Whole, partial=True))) == 1


MODELS = [paramcalc.load(name) for name in ("llama3-8b", "deepseek-v3", "t5-small", "recurrentgemma-2b")]
H100 = find_device("h100")


def fit_answer(model: paramcalc.Model) -> Mapping[str, Any]:
    return fit_figures(model, assume(context=8192), H100, utilization("0.9"))


def sweep_answer(model: paramcalc.Model) -> Mapping[str, Any]:
    settings = sweep_settings(training_tokens=None, gpu="h100", context=8192)
    return sweep_figures(model, {"depth": [5, 8], "width": [1000, 1024]}, rules=scaling_rules({}), settings=settings)


def design_answer(model: paramcalc.Model) -> Mapping[str, Any]:
    settings = sweep_settings(training_tokens=None, gpu=None, context=8192)
    goal, rules = make_goal(10**9, "total", settings), scaling_rules({})
    return design_figures(model, goal, depth=[5, 8], solve=None, multiple_of=None, rules=rules, settings=settings)


ANSWERS: dict[str, tuple[type[Report], Callable[[paramcalc.Model], Mapping[str, Any]]]] = {
    "count": (CountReport, count_figures),
    "memory": (MemoryReport, lambda model: memory_figures(model, assume(context=8192, pipeline_parallel=2))),
    "fit": (FitReport, fit_answer),
    "flops": (FlopsReport, lambda model: flops_figures(model, check_workload(tokens=100))),
    "trace": (TraceReport, lambda model: trace_figures(model, check_workload(tokens=100))),
    "scale": (ScaleReport, sweep_answer),
    "design": (DesignReport, design_answer),
    "compare": (CompareReport, lambda model: compare_figures([model, MODELS[0]])),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_an_answer_is_the_dump_of_its_report(name: str, model: paramcalc.Model) -> None:
    report, answer = ANSWERS[name]
    found = answer(model)
    dump = report.model_validate(found).model_dump(mode="json", exclude_unset=True)

    assert json.dumps(found) == json.dumps(dump)  # the order of the keys too


def test_a_device_is_the_dump_of_its_report() -> None:
    for device in known_devices():
        found = device_info(device)

        assert json.dumps(found) == json.dumps(DeviceInfo.model_validate(found).model_dump(mode="json"))


def field_at(report: type[Report], path: str) -> Any:
    """The type under a path with dots; a KeyError where there is none."""
    first, *rest = path.split(".")
    kind = fields_of(report)[first]
    if isinstance(kind, tuple) and kind[0] == "dict":
        kind, rest = kind[2], rest[1:]
    return field_at(REPORTS[kind], ".".join(rest)) if rest else kind


@pytest.mark.parametrize(
    ("report", "paths"), [(CountReport, COUNTED), (MemoryReport, STORED), (FlopsReport, COMPUTED)], ids=str
)
def test_compared_figures_are_integers_of_their_reports(report: type[Report], paths: tuple[str, ...]) -> None:
    assert {field_at(report, path) for path in paths} == {int}


def test_the_path_guard_can_fail() -> None:
    with pytest.raises(KeyError):
        field_at(CountReport, "parameters.totl")
