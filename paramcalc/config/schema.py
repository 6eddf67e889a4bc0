"""The schema of a config, as data, and a config read by its schema."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

Fields = Mapping[str, Any]
COMMON_ALIASES = {"torch_dtype": "dtype"}  # an older name of a field that every config has


class ConfigSchema(NamedTuple):
    """The schema of one kind of config.

    - `defaults`: canonical names that a recipe reads, with the defaults of the reference class. Nothing else is read.
    - `names`: the class's `attribute_map`, from canonical names to the family's own keys; a file may use both.
    - `fixed`: facts of the family that its config cannot change.
    - `nullable`: fields for which null is a value (such as "no low-rank queries") and does not mean the default.
    - `unused`: keys that published files have and that the class ignores.
    - `ignored`: keys in `names` that the class does not know, such as canonical names. They are read, with a doubt if
      they state another value than the class uses.
    - `sections`: schemas of nested mappings.

    A section that holds another model has three more facts. `kind` is its model_type if it states none. If it is
    `free`, the class builds any model_type that it states; otherwise always `kind`. `spellings` are other names of
    model_types. Its `defaults` are the values that the class uses if the file has no such section.
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
    """The fields of a file, or of one section of it, with the schema that gives them their meaning."""

    fields: Fields
    schema: ConfigSchema = ConfigSchema({})
    sections: Mapping[str, StatedConfig] = {}

    def canonical_name(self, key: str) -> str:
        """The name under which recipes read a key; the key itself if they do not read it."""
        names = {**COMMON_ALIASES, **self.schema.names}
        own = names.get(key, key)
        readable = (name for name in self.schema.defaults if key != name and names.get(name, name) == own)
        return key if key in self.schema.defaults else next(readable, own)

    def keys(self, name: str) -> list[str]:
        """Every key that can state a field."""
        names = {**COMMON_ALIASES, **self.schema.names}
        own = names.get(name, name)
        return list(dict.fromkeys([own, name, *(alias for alias, target in names.items() if target == own)]))

    def effective_value(self, name: str) -> Any:
        """The value in the file, or the class default if the key is absent, or null where null is not allowed."""
        stated = [self.fields[key] for key in self.keys(name) if key in self.fields]
        value = next((value for value in stated if value is not None), None)
        unset = value is None and not (stated and name in self.schema.nullable)
        return self.schema.defaults.get(name) if unset else value


def differing_keys(before: Fields, after: Fields) -> Iterator[str]:
    """The keys that only one of the two mappings has, or whose values are not the same object."""
    yield from (key for key, value in after.items() if key not in before or before[key] is not value)
    yield from (key for key in before if key not in after)


class FieldValue(NamedTuple):
    """A field of a config: the key that changes it, and its value from the file or the class default."""

    key: str
    value: Any
    per_layer: bool = False  # True for a list with one entry per layer
