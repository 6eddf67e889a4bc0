"""The review of a change: which fields of a config differ, and what each of them did to the count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcalc.base.errors import ParamcalcError
from paramcalc.config.schema import StatedConfig
from paramcalc.model import Model
from paramcalc.tree.component import Component
from paramcalc.tree.weights import CATEGORIES

if TYPE_CHECKING:
    from paramcalc.reports.shapes.compare import ChangeDict, ChangeStepDict, DifferenceDict, FieldChangeDict

CLASS = "architectures"  # the field that says which class is counted


class ConfigChange(NamedTuple):
    """A field that differs: where it stands, every key it may have there, and what it means in either file."""

    section: tuple[str, ...]
    keys: tuple[str, ...]
    name: str
    old: Any
    new: Any

    @property
    def path(self) -> str:
        """Its canonical name, in sections with dots."""
        return ".".join([*self.section, self.name])


class CountedStep(NamedTuple):
    """Changes that were made together, and what the model then counts by category."""

    changes: tuple[ConfigChange, ...]
    counts: Mapping[str, int]


def change_figures(models: Sequence[Model]) -> ChangeDict | None:
    """What led from one model to another; None unless there are two of one family that differ in fields alone."""
    if len(models) != 2 or models[0].family != models[1].family:
        return None
    old, new = models
    start: Mapping[str, int] = parameters_by_category_total(old.tree)
    before = start
    steps: list[ChangeStepDict] = []
    for step in apply_in_turn(old, new):
        steps.append({"fields": list(map(change_as_json, step.changes)), **difference(before, step.counts)})
        before = step.counts
    end = parameters_by_category_total(new.tree)
    if before != end:
        return None  # the same file, read in another way
    return {"family": new.family, "steps": steps, **difference(start, end)}


def parameters_by_category_total(tree: Component) -> dict[str, int]:
    """Parameters by category."""
    found: dict[str, int] = dict.fromkeys(CATEGORIES, 0)
    for tally in tree.totals():
        if tally.role == "parameter":
            found[tally.category] += int(tally.total)
    return found


def difference(old: Mapping[str, int], new: Mapping[str, int]) -> DifferenceDict:
    """What is more or less, in all and by category."""
    by_category: dict[str, int] = {
        category: new[category] - old[category] for category in CATEGORIES if new[category] != old[category]
    }
    return {"difference": sum(by_category.values()), "components": by_category}


def change_as_json(change: ConfigChange) -> FieldChangeDict:
    """A change as data that JSON can write."""
    return {"name": change.path, "old": json_value(change.old), "new": json_value(change.new)}


def json_value(value: Any) -> Any:
    """A value as JSON knows it; what a YAML file may hold beside is text."""
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value)):
        return value
    return str(value)


# -- which fields differ -----------------------------------------------------------------------------------------


def changed_fields(old: Model, new: Model) -> list[ConfigChange]:
    """The fields that differ, in the order of the new file, then what only the old one states."""
    found = [
        change
        for change in differing_fields(old.variants.stated_config(), new.variants.stated_config())
        if change.path != CLASS
    ]
    if old.architecture == new.architecture:
        return found
    return [ConfigChange((), (CLASS,), CLASS, old.architecture, new.architecture), *found]


def differing_fields(old: StatedConfig, new: StatedConfig, section: tuple[str, ...] = ()) -> Iterator[ConfigChange]:
    """Fields that do not mean the same: that one file leaves out what the other says of a default is no difference."""
    for name in dict.fromkeys([*map(new.canonical_name, new.fields), *map(old.canonical_name, old.fields)]):
        before, after = old.effective_value(name), new.effective_value(name)
        inner, beside = section_of(old, name), section_of(new, name)
        if inner and beside and inner.schema == beside.schema:
            yield from differing_fields(inner, beside, (*section, name))
        elif not same_value(before, after):
            yield ConfigChange(section, tuple(old.keys(name)), name, before, after)


def section_of(stated: StatedConfig, name: str) -> StatedConfig | None:
    """A section that the file has under this very name, as it is read there; None for any other field.

    One that a file leaves out may be another model's by default, and so is no section of which nothing is said.
    """
    value = stated.fields.get(name)
    return stated.sections.get(name, StatedConfig(value)) if isinstance(value, Mapping) else None


def same_value(old: Any, new: Any) -> bool:
    """Whether two values are one: true is not 1, though 1.0 is, and what is no number is itself."""
    return (old == new and isinstance(old, bool) == isinstance(new, bool)) or repr(old) == repr(new)


# -- what they did -----------------------------------------------------------------------------------------------


def apply_in_turn(old: Model, new: Model) -> Iterator[CountedStep]:
    """The changes one after the other, each with the model that it leads to.

    One that leads to no model is set aside, and made with the first further one that makes it possible.
    """
    fields, target, variants = old.config, new.config, old.variants
    aside: list[ConfigChange] = []
    for change in changed_fields(old, new):
        for together in ([*aside, change], [change])[: 2 if aside else 1]:
            moved = with_all(fields, target, together)
            reader = new.variants if any(one.path == CLASS for one in together) else variants
            try:
                tree = reader.tree_of(moved)
            except ParamcalcError:
                continue
            yield CountedStep(tuple(together), parameters_by_category_total(tree))
            fields, variants = moved, reader
            aside = aside if together == [change] else []
            break
        else:
            aside.append(change)
    if aside:
        yield CountedStep(
            tuple(aside), parameters_by_category_total(new.tree)
        )  # with these, all that differs is changed


def with_all(
    fields: Mapping[str, Any], target: Mapping[str, Any], changes: Sequence[ConfigChange]
) -> Mapping[str, Any]:
    """The fields, with what `target` says of those that change."""
    for change in changes:
        fields = with_one(fields, target, change.section, change.keys)
    return fields


def with_one(
    fields: Mapping[str, Any], target: Mapping[str, Any], section: Sequence[str], keys: Sequence[str]
) -> Mapping[str, Any]:
    """The fields, with one of them, in a section perhaps, as `target` has it, or has it not."""
    if not section:
        kept = {key: value for key, value in fields.items() if key not in keys}
        return kept | {key: target[key] for key in keys if key in target}
    first, *rest = section
    return {**fields, first: with_one(fields[first], target[first], rest, keys)}
