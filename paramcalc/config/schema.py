"""How a kind of config is read, as data, and what a file states by that."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

Fields = Mapping[str, Any]
COMMON_ALIASES = {"torch_dtype": "dtype"}  # the older name of a field that every config has


class ConfigSchema(NamedTuple):
    """How one kind of config is read.

    `names` is the class's attribute_map: canonical names to the family's own keys, both accepted. `defaults` maps the
    names a recipe reads to the class's defaults; only names with a default can be read. `fixed` are facts of the
    family that its config cannot change. `ignored` are those of `names` that the class itself does not know (words of
    other code, and canonical names): read, with a doubt where it would take another value. `nullable` lists the keys
    whose null is a value ("no low-rank queries") rather than an absence; `unused` keys that stand in published files
    and that the class does not look at; `sections` says how nested mappings are read. A section that holds another
    model has a `kind`, the model_type where it names none, and perhaps `spellings` of others; its `defaults` are what
    the class passes where there is no such section. Where it is `free` the class builds whatever model_type it names;
    elsewhere always its `kind`.
    """

    defaults: Mapping[str, Any]
    names: Mapping[str, str] = {}
    fixed: Mapping[str, Any] = {}
    nullable: Collection[str] = ()
    unused: Collection[str] = ()
    ignored: Collection[str] = ()
    sections: Mapping[str, ConfigSchema] = {}
    kind: str = ""
    spellings: Mapping[str, str] = {}
    free: bool = False


class StatedConfig(NamedTuple):
    """What a file, or a section of it, states, and how that is read: to ask of any field what it means there."""

    fields: Fields
    reading: ConfigSchema = ConfigSchema({})
    sections: Mapping[str, StatedConfig] = {}

    def canonical_name(self, key: str) -> str:
        """The canonical name of a key: the one that recipes read it under, or its own."""
        names = {**COMMON_ALIASES, **self.reading.names}
        own = names.get(key, key)
        readable = (name for name in self.reading.defaults if key != name and names.get(name, name) == own)
        return key if key in self.reading.defaults else next(readable, own)

    def keys(self, name: str) -> list[str]:
        """Every key under which a file may have a field."""
        names = {**COMMON_ALIASES, **self.reading.names}
        own = names.get(name, name)
        return list(dict.fromkeys([own, name, *(alias for alias, target in names.items() if target == own)]))

    def effective_value(self, name: str) -> Any:
        """The value of a field: the class's default where the file says nothing, or says null of what has no null."""
        said = [self.fields[key] for key in self.keys(name) if key in self.fields]
        value = next((value for value in said if value is not None), None)
        silent = value is None and not (said and name in self.reading.nullable)
        return self.reading.defaults.get(name) if silent else value


def differing_keys(before: Fields, after: Fields) -> Iterator[str]:
    """The keys that stand in one of the two alone, or whose values are not the same objects."""
    yield from (key for key, value in after.items() if key not in before or before[key] is not value)
    yield from (key for key in before if key not in after)


class FieldValue(NamedTuple):
    """A field of a config: the name under which it can be changed, and its value, stated or the class's default."""

    key: str
    value: Any
    by_layer: bool = False  # whether it is a list with an entry for each layer
