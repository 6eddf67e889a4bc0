"""Other values for some fields of a config, under whatever name they are given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from paramcalc.base.errors import ConfigError, nearest
from paramcalc.config.known_keys import known_keys
from paramcalc.config.schema import COMMON_ALIASES, ConfigSchema, StatedConfig

TEXT_SECTION = "text_config"  # the section that would hide the same fields at the top, where older files have them


def known_field_names(reading: ConfigSchema) -> set[str]:
    """Every key that may stand in a config of this family: what it reads, and what is known to change no shape."""
    harmless, when_off, _ = known_keys()
    return {*reading.defaults, *reading.names.values(), *reading.unused, *harmless, *when_off}


class FieldNames(NamedTuple):
    """How the fields of a family are called in the file at hand."""

    family: str
    origin: str
    others: Mapping[str, str]  # other names of fields, and those they stand for
    known: Callable[[], Collection[str]]  # what may stand in the file, in sections with dots
    absent: Callable[[Sequence[str]], Mapping[str, Any]]  # what holds in a section that the file does not have


class FieldPath(NamedTuple):
    """Where a field stands in a config: the sections around it, its key, and other keys that say the same."""

    path: tuple[tuple[str, Mapping[str, Any]], ...]  # each with what holds in it where the file does not have it
    key: str
    others: tuple[str, ...] = ()

    def changed(self) -> tuple[str, ...]:
        """The keys of the file, not of sections in it, whose values are others once this place is filled."""
        return (self.path[0][0],) if self.path else (self.key, *self.others)


def with_overrides(fields: Mapping[str, Any], overrides: Mapping[str, Any], names: FieldNames) -> dict[str, Any]:
    """The fields with the overrides applied. Raises ConfigError for a field that neither file nor family knows."""
    result = dict(fields)
    for name, value in overrides.items():
        result = with_values(result, [field_path(result, name, names)], [value])
    return result


def with_values(fields: Mapping[str, Any], places: Iterable[FieldPath], values: Iterable[Any]) -> dict[str, Any]:
    """The fields with a value in each of the places; sections that change are copied."""
    result = dict(fields)
    for (path, key, others), value in zip(places, values, strict=True):
        section = result
        for step, absent in path:
            inner = section.get(step)
            section[step] = dict(absent if inner is None else inner)
            section = section[step]
        for other in others:
            section.pop(other, None)  # what an override says, holds, under whatever name the file has it
        section[key] = value
    return result


def field_path(fields: Mapping[str, Any], name: str, names: FieldNames) -> FieldPath:
    """Where a field belongs that is given under some name. Raises ConfigError as `with_overrides` does."""
    *path, last = name.split(".")
    section: Mapping[str, Any] = fields
    found: list[tuple[str, Mapping[str, Any]]] = []
    for depth, word in enumerate(path, start=1):
        step = word if found else _spellings(word, names.others, section)[0]
        inner: Any = section.get(step)
        absent: Mapping[str, Any] = {}
        if inner is None and ".".join(path[:depth]) in names.known():
            if step == TEXT_SECTION and "hidden_size" in section:
                message = f"{names.origin} has no {TEXT_SECTION}; the language model's fields stand at the top of it"
                raise ConfigError(
                    f"--set {name}: {message}", f"--set {name.removeprefix(f'{word}.')}=... changes it there"
                )
            inner = absent = names.absent(path[:depth])
        if not isinstance(inner, Mapping):
            whole = f"`paramcalc families {names.family}` lists the fields it reads"
            if step in names.known():
                whole = f"replace the whole of it: --set '{step}={{\"{last}\": ...}}'"
            raise ConfigError(f"--set {name}: {step} is not a section of {names.origin}", whole)
        found.append((step, absent))
        section = inner
    key, *others = _spellings(last, COMMON_ALIASES if path else names.others, section)
    if key not in section and ".".join([*path, key]) not in names.known():
        choices = {*names.known(), *section, *names.others}
        raise ConfigError(f"--set {name}: no such field in {names.origin}", _meant(name, choices, names.family))
    return FieldPath(tuple(found), key, tuple(others))


def _meant(name: str, choices: set[str], family: str) -> str:
    """A hint for a field that does not exist: one of a similar name, wherever it stands."""
    fallback = f"`paramcalc families {family}` lists the fields it reads"
    return nearest(name, choices, fallback="") or nearest(name.rpartition(".")[2], choices, fallback=fallback)


def _spellings(name: str, names: Mapping[str, str], place: Mapping[str, Any]) -> list[str]:
    """All names of a field, the one that the file uses first: else the family's own."""
    same = _synonyms(tuple(names.items())).get(name)
    if same is None:
        return [name]
    return sorted(dict.fromkeys((same[0], name, *same)), key=lambda key: key not in place)


@cache
def _synonyms(names: tuple[tuple[str, str], ...]) -> Mapping[str, Sequence[str]]:
    """All names of each field that has several, the family's own first."""
    groups: dict[str, list[str]] = {}
    for other, own in names:
        groups.setdefault(own, [own]).append(other)
    return groups | {other: groups[own] for other, own in names}


def fields_below(stated: StatedConfig, path: str = "") -> Iterator[str]:
    """The sections that were read, with dots, and every key that may stand in them."""
    for name, section in stated.sections.items():
        yield f"{path}{name}"
        yield from (f"{path}{name}.{key}" for key in known_field_names(section.reading))
        yield from fields_below(section, f"{path}{name}.")


def field_aliases(reading: ConfigSchema) -> Mapping[str, str]:
    """The names under which fields may be given, and those they stand for."""
    return {**COMMON_ALIASES, **reading.names}
