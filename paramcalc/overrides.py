"""Other values for some fields of a config, under whatever name they are given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any

from paramcalc.config_keys import known_keys
from paramcalc.config_reading import SAME_IN_ALL, Reading
from paramcalc.errors import ConfigError, nearest


def known_fields(reading: Reading) -> set[str]:
    """Every key that may stand in a config of this family: what it reads, and what is known to change no shape."""
    harmless, when_off, _ = known_keys()
    return {*reading.defaults, *reading.names.values(), *reading.unused, *harmless, *when_off}


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
        *path, last = name.split(".")
        place = result
        for step in path:
            if place.get(step) is None and step in known():
                place[step] = {}
            if not isinstance(place.get(step), dict):
                whole = f"`paramcalc families {family}` lists the fields it reads"
                if step in known():
                    whole = f"replace the whole of it: --set '{step}={{\"{last}\": ...}}'"
                raise ConfigError(f"--set {name}: {step} is not a section of {origin}", whole)
            place[step] = dict(place[step])
            place = place[step]
        key, *others = _spellings(last, SAME_IN_ALL if path else names, place)
        if key not in place and ".".join([*path, key]) not in known():
            raise ConfigError(
                f"--set {name}: no such field in {origin}", _meant(name, {*known(), *place, *names}, family)
            )
        for other in others:
            place.pop(other, None)  # what an override says, holds, under whatever name the file has it
        place[key] = value
    return result


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
