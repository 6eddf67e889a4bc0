"""Overrides: replace fields of a config, under any name that the family accepts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from paramcalc.base.errors import ConfigError, nearest
from paramcalc.config.known_keys import known_keys
from paramcalc.config.schema import COMMON_ALIASES, ConfigSchema, StatedConfig

TEXT_SECTION = "text_config"  # older files state its fields at the top instead


def known_field_names(schema: ConfigSchema) -> set[str]:
    """Every key that a config of this schema may have: fields, their aliases, and keys known to change no shape."""
    harmless, when_off, _ = known_keys()
    return {*schema.defaults, *schema.names.values(), *schema.unused, *harmless, *when_off}


class FieldNames(NamedTuple):
    """The names of a family's fields, and the file to name in messages."""

    family: str
    origin: str
    aliases: Mapping[str, str]  # from each alias to the family's own key
    known_keys: Callable[[], Collection[str]]  # keys that the file may have, those of sections with dots
    section_defaults: Callable[[Sequence[str]], Mapping[str, Any]]  # the fields of a section that the file omits


class FieldPath(NamedTuple):
    """The place of a field in a config: the sections around it, its key, and other keys for the same field."""

    sections: tuple[tuple[str, Mapping[str, Any]], ...]  # name, and its fields if the file omits it; outermost first
    key: str
    aliases: tuple[str, ...] = ()

    def changed_keys(self) -> tuple[str, ...]:
        """The keys at the top of the file whose values change if a value is written to this place."""
        return (self.sections[0][0],) if self.sections else (self.key, *self.aliases)


def with_overrides(fields: Mapping[str, Any], overrides: Mapping[str, Any], names: FieldNames) -> dict[str, Any]:
    """The fields with the overrides applied. Raises ConfigError for a field unknown to file and family."""
    result = dict(fields)
    for name, value in overrides.items():
        result = with_values(result, [field_path(result, name, names)], [value])
    return result


def with_values(fields: Mapping[str, Any], paths: Iterable[FieldPath], values: Iterable[Any]) -> dict[str, Any]:
    """The fields with a value written to each path. A changed section is copied."""
    result = dict(fields)
    for (sections, key, aliases), value in zip(paths, values, strict=True):
        section = result
        for name, defaults in sections:
            inner = section.get(name)
            section[name] = dict(defaults if inner is None else inner)
            section = section[name]
        for alias in aliases:
            section.pop(alias, None)  # the override replaces the field, under any name that the file uses
        section[key] = value
    return result


def field_path(fields: Mapping[str, Any], name: str, names: FieldNames) -> FieldPath:
    """The place of a field, from a name with dots for sections. Raises ConfigError as `with_overrides` does."""
    *steps, last = name.split(".")
    section: Mapping[str, Any] = fields
    sections: list[tuple[str, Mapping[str, Any]]] = []
    for depth, step in enumerate(steps, start=1):
        key = step if sections else _spellings(step, names.aliases, section)[0]
        inner: Any = section.get(key)
        defaults: Mapping[str, Any] = {}
        if inner is None and ".".join(steps[:depth]) in names.known_keys():
            if key == TEXT_SECTION and "hidden_size" in section:
                message = f"{names.origin} has no {TEXT_SECTION}; its top level holds the language model's fields"
                raise ConfigError(f"--set {name}: {message}", f"use --set {name.removeprefix(f'{step}.')}=...")
            inner = defaults = names.section_defaults(steps[:depth])
        if not isinstance(inner, Mapping):
            hint = f"`paramcalc families {names.family}` lists the fields it reads"
            if key in names.known_keys():
                hint = f"replace it as a whole: --set '{key}={{\"{last}\": ...}}'"
            raise ConfigError(f"--set {name}: {key} is not a section of {names.origin}", hint)
        sections.append((key, defaults))
        section = inner
    key, *aliases = _spellings(last, COMMON_ALIASES if steps else names.aliases, section)
    if key not in section and ".".join([*steps, key]) not in names.known_keys():
        choices = {*names.known_keys(), *section, *names.aliases}
        raise ConfigError(f"--set {name}: no such field in {names.origin}", _hint(name, choices, names.family))
    return FieldPath(tuple(sections), key, tuple(aliases))


def _hint(name: str, choices: set[str], family: str) -> str:
    """A hint for a field that does not exist: fields of a similar name, in any section."""
    fallback = f"`paramcalc families {family}` lists the fields it reads"
    return nearest(name, choices, fallback="") or nearest(name.rpartition(".")[2], choices, fallback=fallback)


def _spellings(name: str, aliases: Mapping[str, str], section: Mapping[str, Any]) -> list[str]:
    """All names of a field: first one that the section uses, or else the family's own key."""
    synonyms = _synonyms(tuple(aliases.items())).get(name)
    if synonyms is None:
        return [name]
    return sorted(dict.fromkeys((synonyms[0], name, *synonyms)), key=lambda key: key not in section)


@cache
def _synonyms(aliases: tuple[tuple[str, str], ...]) -> Mapping[str, Sequence[str]]:
    """From each name to all names of its field, the family's own key first; only fields with several names."""
    groups: dict[str, list[str]] = {}
    for alias, own in aliases:
        groups.setdefault(own, [own]).append(alias)
    return groups | {alias: groups[own] for alias, own in aliases}


def fields_below(stated: StatedConfig, path: str = "") -> Iterator[str]:
    """Dotted names of the sections that were read, and of every key that they may have."""
    for name, section in stated.sections.items():
        yield f"{path}{name}"
        yield from (f"{path}{name}.{key}" for key in known_field_names(section.schema))
        yield from fields_below(section, f"{path}{name}.")


def field_aliases(schema: ConfigSchema) -> Mapping[str, str]:
    """Alternative names of fields, each with the family's own key."""
    return {**COMMON_ALIASES, **schema.names}
