"""Other values for some fields of a config, under whatever name they are given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from paramcalc.config_keys import known_keys
from paramcalc.config_reading import SAME_IN_ALL, Reading
from paramcalc.errors import ConfigError, nearest


def known_fields(reading: Reading) -> set[str]:
    """Every key that may stand in a config of this family: what it reads, and what is known to change no shape."""
    harmless, when_off, _ = known_keys()
    return {*reading.defaults, *reading.names.values(), *reading.unused, *harmless, *when_off}


class Place(NamedTuple):
    """Where a field stands in a config: the sections around it, its key, and other keys that say the same."""

    path: tuple[str, ...]
    key: str
    others: tuple[str, ...] = ()


def overridden(
    fields: Mapping[str, Any],
    overrides: Mapping[str, Any],
    names: Mapping[str, str],
    known: Callable[[], Collection[str]],
    family: str,
    origin: str,
) -> dict[str, Any]:
    """The fields with the overrides applied. Raises ConfigError for a field that neither file nor family knows.

    `names` are other names of fields, `known` what the family reads, in sections with dots.
    """
    result = dict(fields)
    for name, value in overrides.items():
        result = filled(result, [place(result, name, names, known, family, origin)], [value])
    return result


def filled(fields: Mapping[str, Any], places: Iterable[Place], values: Iterable[Any]) -> dict[str, Any]:
    """The fields with a value in each of the places; sections that change are copied."""
    result = dict(fields)
    for (path, key, others), value in zip(places, values, strict=True):
        section = result
        for step in path:
            section[step] = dict(section.get(step) or {})
            section = section[step]
        for other in others:
            section.pop(other, None)  # what an override says, holds, under whatever name the file has it
        section[key] = value
    return result


def place(
    fields: Mapping[str, Any],
    name: str,
    names: Mapping[str, str],
    known: Callable[[], Collection[str]],
    family: str,
    origin: str,
) -> Place:
    """Where a field belongs that is given under some name. Raises ConfigError as `overridden` does."""
    *path, last = name.split(".")
    section: Mapping[str, Any] = fields
    for step in path:
        inner = section.get(step)
        if inner is None and step in known():
            inner = {}
        if not isinstance(inner, dict):
            whole = f"`paramcalc families {family}` lists the fields it reads"
            if step in known():
                whole = f"replace the whole of it: --set '{step}={{\"{last}\": ...}}'"
            raise ConfigError(f"--set {name}: {step} is not a section of {origin}", whole)
        section = inner
    key, *others = _spellings(last, SAME_IN_ALL if path else names, section)
    if key not in section and ".".join([*path, key]) not in known():
        raise ConfigError(
            f"--set {name}: no such field in {origin}", _meant(name, {*known(), *section, *names}, family)
        )
    return Place(tuple(path), key, tuple(others))


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


def other_names(reading: Reading) -> Mapping[str, str]:
    """The names under which fields may be given, and those they stand for."""
    return {**SAME_IN_ALL, **reading.names}
