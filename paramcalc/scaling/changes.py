"""Review of a config change: the fields that differ and the effect of each on the count."""

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

CLASS = "architectures"  # the field that names the counted class


class ConfigChange(NamedTuple):
    """A field that differs: its section, every key it may have there, and its value in both files."""

    section: tuple[str, ...]
    keys: tuple[str, ...]
    name: str
    old: Any
    new: Any

    @property
    def path(self) -> str:
        """The canonical name, after the names of its sections, with dots between them."""
        return ".".join([*self.section, self.name])


class CountedStep(NamedTuple):
    """Changes made together, and the parameters by category after them."""

    changes: tuple[ConfigChange, ...]
    counts: Mapping[str, int]


def change_figures(models: Sequence[Model]) -> ChangeDict | None:
    """The changes from one model to the other; None unless two models of one family differ in fields alone."""
    if len(models) != 2 or models[0].family != models[1].family:
        return None
    old, new = models
    start: Mapping[str, int] = parameters_by_category(old.tree)
    before = start
    steps: list[ChangeStepDict] = []
    for step in apply_in_turn(old, new):
        steps.append({"fields": list(map(change_as_json, step.changes)), **difference(before, step.counts)})
        before = step.counts
    end = parameters_by_category(new.tree)
    if before != end:
        return None  # the models differ in how a file is read, not only in its fields
    return {"family": new.family, "steps": steps, **difference(start, end)}


def parameters_by_category(tree: Component) -> dict[str, int]:
    """The parameters of a tree by category; 0 for absent categories."""
    found: dict[str, int] = dict.fromkeys(CATEGORIES, 0)
    for tally in tree.totals():
        if tally.role == "parameter":
            found[tally.category] += int(tally.total)
    return found


def difference(old: Mapping[str, int], new: Mapping[str, int]) -> DifferenceDict:
    """The difference in parameters, in total and by category."""
    by_category: dict[str, int] = {
        category: new[category] - old[category] for category in CATEGORIES if new[category] != old[category]
    }
    return {"difference": sum(by_category.values()), "components": by_category}


def change_as_json(change: ConfigChange) -> FieldChangeDict:
    """A change as JSON data."""
    return {"name": change.path, "old": json_value(change.old), "new": json_value(change.new)}


def json_value(value: Any) -> Any:
    """A value as JSON; other values of YAML files become text."""
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value)):
        return value
    return str(value)


# -- differing fields -------------------------------------------------------------------------------------------


def changed_fields(old: Model, new: Model) -> list[ConfigChange]:
    """The fields that differ, in the order of the new file, then those that only the old one states."""
    found = [
        change
        for change in differing_fields(old.variants.stated_config(), new.variants.stated_config())
        if change.path != CLASS
    ]
    if old.architecture == new.architecture:
        return found
    return [ConfigChange((), (CLASS,), CLASS, old.architecture, new.architecture), *found]


def differing_fields(old: StatedConfig, new: StatedConfig, section: tuple[str, ...] = ()) -> Iterator[ConfigChange]:
    """Fields with different effective values: a default that only one file states is no difference."""
    for name in dict.fromkeys([*map(new.canonical_name, new.fields), *map(old.canonical_name, old.fields)]):
        before, after = old.effective_value(name), new.effective_value(name)
        old_section, new_section = section_of(old, name), section_of(new, name)
        if old_section and new_section and old_section.schema == new_section.schema:
            yield from differing_fields(old_section, new_section, (*section, name))
        elif not same_value(before, after):
            yield ConfigChange(section, tuple(old.keys(name)), name, before, after)


def section_of(stated: StatedConfig, name: str) -> StatedConfig | None:
    """A section that the file has under this name, with its schema; None for any other field.

    A section that a file leaves out may hold another model by default, so it is not treated as an empty section.
    """
    value = stated.fields.get(name)
    return stated.sections.get(name, StatedConfig(value)) if isinstance(value, Mapping) else None


def same_value(old: Any, new: Any) -> bool:
    """True if two values are equal: 1 equals 1.0 but not true, and NaN equals itself."""
    return (old == new and isinstance(old, bool) == isinstance(new, bool)) or repr(old) == repr(new)


# -- effects -----------------------------------------------------------------------------------------------------


def apply_in_turn(old: Model, new: Model) -> Iterator[CountedStep]:
    """The changes one after the other, each with the parameters of the model after it.

    A change to an invalid model is postponed, and made together with the first later change that makes it valid.
    """
    fields, target, variants = old.config, new.config, old.variants
    postponed: list[ConfigChange] = []
    for change in changed_fields(old, new):
        for together in ([*postponed, change], [change])[: 2 if postponed else 1]:
            changed = with_all(fields, target, together)
            reader = new.variants if any(one.path == CLASS for one in together) else variants
            try:
                tree = reader.tree_of(changed)
            except ParamcalcError:
                continue
            yield CountedStep(tuple(together), parameters_by_category(tree))
            fields, variants = changed, reader
            postponed = postponed if together == [change] else []
            break
        else:
            postponed.append(change)
    if postponed:
        # No fields differ after these, so the model is the new one.
        yield CountedStep(tuple(postponed), parameters_by_category(new.tree))


def with_all(
    fields: Mapping[str, Any], target: Mapping[str, Any], changes: Sequence[ConfigChange]
) -> Mapping[str, Any]:
    """The fields with the values of `target` for those that change."""
    for change in changes:
        fields = with_one(fields, target, change.section, change.keys)
    return fields


def with_one(
    fields: Mapping[str, Any], target: Mapping[str, Any], section: Sequence[str], keys: Sequence[str]
) -> Mapping[str, Any]:
    """The fields with one field, possibly in a section, set or removed as in `target`."""
    if not section:
        others = {key: value for key, value in fields.items() if key not in keys}
        return others | {key: target[key] for key in keys if key in target}
    first, *rest = section
    return {**fields, first: with_one(fields[first], target[first], rest, keys)}
