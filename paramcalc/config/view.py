"""The checked view of a config: the only way in which a recipe reads a config.json.

A recipe reads a field under its canonical name (`c.hidden_size`). The view finds the key that the file uses (`n_embd`),
checks the value, and supplies the class default if the file omits the field. It records the keys that were read.
`config.audit` reports the others, because an unread key might change a shape.

A sweep makes thousands of views that differ in one or two fields. `Config.with_fields` copies a view with all values
that it has read, and reads again only the fields that changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from paramcalc.base.errors import ConfigError
from paramcalc.base.messages import out_of_range, short_repr
from paramcalc.base.symbolic import SymbolicInt, symbolic
from paramcalc.config.fields import LARGEST_DEPTH, LARGEST_SIZE, MAY_BE_ZERO, SYMBOLS
from paramcalc.config.schema import ConfigSchema, Fields, StatedConfig, differing_keys


class Config:
    """A checked view of a config, or of one section of it, for one family.

    Reading an undeclared field raises AttributeError, a fault of the recipe. An impossible value raises ConfigError.
    """

    def __init__(
        self,
        fields: Fields,
        schema: ConfigSchema,
        *,
        family: str,
        origin: str,
        architecture: str = "",
        head: str = "lm",
        path: str = "",
        root: Config | None = None,
        text_only: bool = False,
    ) -> None:
        self.fields = fields  # from the file, with overrides applied
        self.family = family
        self.origin = origin  # the file, for messages
        self.architecture = architecture
        self.head = head
        self.path = path  # of this section, with a dot at the end; empty for the whole file
        self.text_only = text_only  # count only the language model of a multimodal model
        self.doubts: list[str] = []  # reasons why the count may not be exact
        self.notes: list[str] = []  # remarks that do not make the count inexact
        self.assumed: dict[str, tuple[str, Any]] = {}  # sections not in the file: kind and component that is built
        self.counted: set[str] = set()  # keys of activations whose parameters the recipe counts
        self._schema = schema
        self._root = root
        self._read: set[str] = set()  # keys that the recipe has read
        self._per_layer_names: dict[str, None] = {}  # fields read as lists with one entry per layer, in order
        self._sections: dict[str, Config] = {}  # sections that the recipe has read
        self._source_sections: Mapping[str, Config] = {}  # sections of the view that `with_fields` copied
        # Caches that a view shares with all its copies:
        self._keys_by_name: dict[str, tuple[str, ...]] = {}  # see `_keys`
        self._names_by_key: dict[str, list[str]] = {}  # the inverse: fields that a key can state
        self._stated_keys: dict[str, tuple[str, tuple[str, ...]]] = {}  # the key that states a field; its other keys
        self._checked_sizes: dict[tuple[str, int], Any] = {}  # (field, stated integer): its checked value

    @property
    def root(self) -> Config:
        """The view of the whole file, which states labels and tied embeddings."""
        return self._root or self

    def with_fields(self, fields: Fields, changed: Iterable[str], *, root: Config | None = None) -> Config:
        """A copy of this view for other fields, of which only the `changed` keys may differ.

        Values that this view has read are kept. The copy's doubts and notes cover only the values that it reads
        itself, and an audit of it is incomplete.
        """
        copy: Config = object.__new__(Config)
        attributes = copy.__dict__
        attributes.update(self.__dict__)
        attributes.update(
            fields=fields,
            doubts=[],
            notes=[],
            assumed={},
            _root=root,
            _sections={},
            _source_sections=self._sections or self._source_sections,
        )
        for name in copy._drop_changed(changed):
            if (size := copy._checked_size(name)) is not None:
                attributes[name] = size  # faster than a call of __getattr__ later
        return copy

    def _drop_changed(self, keys: Iterable[str]) -> list[str]:
        """Drop the values of the fields that these keys can state; the names of those fields."""
        names = [name for key in keys for name in self._names_by_key.get(key, ()) if name in self.__dict__]
        for name in names:
            self.__dict__.pop(name, None)
        return names

    def _checked_size(self, name: str) -> Any:
        """The value of a field if its integer has passed the checks in another copy of this view, else None."""
        key, other_keys = self._stated_keys.get(name, ("", ()))
        stated = self.fields.get(key)
        if type(stated) is not int or not self.fields.keys().isdisjoint(other_keys):
            return None
        return self._checked_sizes.get((name, stated))

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for names that are not in __dict__: the first time that a field is read.
        if name.startswith("_"):
            raise AttributeError(name)
        value = self._checked_size(name)
        if value is None:
            value = self._value(name)
        self.__dict__[name] = value
        return value

    def _value(self, name: str) -> Any:
        """A field's value, checked, with its symbol if it is an integer."""
        if name in self._schema.fixed:
            return _symbolic(name, name, self._schema.fixed[name], self.path)
        if name not in self._schema.defaults:
            raise AttributeError(f"recipe {self.family} reads {name!r}, which has no declared default")
        default = self._schema.defaults[name]
        stated = self.raw(name)
        effective = self._value_if_unset(name, default) if stated is None else self._checked(name, stated, default)
        key = self.key(name)
        value = _symbolic(name, key, effective, self.path)
        if type(stated) is int:
            self._checked_sizes[name, stated] = value
            self._stated_keys[name] = key, tuple(other for other in self._keys(name) if other != key)
        return value

    def _value_if_unset(self, name: str, default: Any) -> Any:
        """The value of a field that is absent or null: the class default, or None if null is a value of the field."""
        if not self.has(name):
            return default
        if name in self._schema.nullable:
            return None
        if default is True:  # null is falsy, so the class might build without
            self.doubts.append(f"{self.family}: {self.path}{self.key(name)} is null; its default, true, is assumed")
        return default

    def key(self, name: str) -> str:
        """The key that this file uses for a field: the family's own, or an alias if only the alias is present."""
        own, *aliases = self._keys(name)
        if not aliases or own in self.fields:
            return own
        return next((alias for alias in aliases if alias in self.fields), own)

    def _keys(self, name: str) -> tuple[str, ...]:
        """All keys that can state a field: the family's own key first, then the aliases that its class accepts."""
        keys = self._keys_by_name.get(name)
        if keys is None:
            aliases = self._schema.names
            own = aliases.get(name, name)
            keys = self._keys_by_name[name] = (own, *(alias for alias, target in aliases.items() if target == own))
            for key in keys:
                self._names_by_key.setdefault(key, []).append(name)
        return keys

    def declares(self, name: str) -> bool:
        """True if the schema has the field, even if the file does not state it."""
        return name in self._schema.fixed or name in self._schema.defaults

    def has(self, name: str) -> bool:
        """True if the file states the field, even as null."""
        return self.key(name) in self.fields

    def raw(self, name: str) -> Any:
        """The value in the file, unchecked, recorded as read; None if it is absent or null.

        Raises ConfigError if two keys of the field contradict each other.
        """
        keys = self._keys(name)
        self._read.update(keys)
        if len(keys) == 1:
            return self.fields.get(keys[0])
        stated = {key: self.fields[key] for key in keys if self.fields.get(key) is not None}
        if not stated:
            return None
        if not stated.keys().isdisjoint(self._schema.ignored):
            stated = self._without_ignored_keys(name, stated)
        (first, value), *others = stated.items()
        for other, rival in others:
            if rival != value or type(rival) is not type(value):
                raise self.error(
                    first, f"is {short_repr(value)}, but {other!r} is {short_repr(rival)}", hint="keep one of the two"
                )
        return value

    def _without_ignored_keys(self, name: str, stated: dict[str, Any]) -> dict[str, Any]:
        """The stated keys of a field without those that its class ignores, or all of them if it ignores all."""
        ignored = {key: stated[key] for key in stated if key in self._schema.ignored}
        used = {key: value for key, value in stated.items() if key not in ignored}
        effective = next(iter(used.values()), self._schema.defaults.get(name))
        key = self._keys(name)[0]
        self.doubts += [
            f"{self.family}: the class does not know the key {self.path}{other}; it reads {key}"
            for other, value in ignored.items()
            if value != effective
        ]
        return used or ignored

    def section(
        self, name: str, schema: ConfigSchema | None = None, *, family: str | None = None, head: str | None = None
    ) -> Config:
        """The view of a nested mapping, empty if it is absent or null. The audit covers it too.

        The section is read by its declared schema unless `schema` is given. Raises ConfigError if it is no mapping.
        """
        stated = self.raw(name)
        if stated is not None and not isinstance(stated, Mapping):
            raise self.error(name, f"must be a mapping, not {short_repr(stated)}")
        fields: Fields = stated or {}
        schema = self.section_schema(name) if schema is None else schema
        source = self._source_sections.get(name)
        if source is not None and source._schema is schema:
            view = source.with_fields(fields, differing_keys(source.fields, fields), root=self.root)
        else:
            view = Config(fields, schema, family="", origin=self.origin, architecture=self.architecture, root=self.root)
        view.family, view.head, view.path = family or self.family, head or self.head, f"{self.path}{name}."
        self._sections[name] = view
        return view

    def values(self) -> dict[str, Any]:
        """Every declared field, from the file or else the class default; unchecked, and not recorded as read."""
        stated = {name: self.fields.get(self.key(name)) for name in self._schema.defaults}
        return {
            name: default if stated[name] is None else stated[name] for name, default in self._schema.defaults.items()
        }

    def last_value(self, name: str) -> Any:
        """The value that the recipe has read for a field; None if it has not read it."""
        return self.__dict__.get(name)

    def per_layer_fields(self) -> tuple[str, ...]:
        """The fields that the recipe has read as lists with one entry per layer, in reading order."""
        return tuple(self._per_layer_names)

    def section_schema(self, name: str) -> ConfigSchema:
        """The declared schema of a nested mapping."""
        return self._schema.sections[name]

    def section_kind(self, name: str) -> str:
        """The model_type that a nested mapping states, or the declared kind."""
        kind = self.section_schema(name).kind
        return str(self.section(name, ConfigSchema({"model_type": kind})).model_type or kind)

    def stated_config(self) -> StatedConfig:
        """The fields of the file and of each section that the recipe has read, with their schemas."""
        return StatedConfig(
            self.fields, self._schema, {name: view.stated_config() for name, view in self._sections.items()}
        )

    def sections(self) -> list[Config]:
        """The views of the sections that the recipe has read, in reading order."""
        return list(self._sections.values())

    def layer_words(self, name: str, allowed: Collection[str], *, any_length: bool = False) -> list[str] | None:
        """A list with one of the `allowed` words per layer, such as layer_types; None if absent.

        With `any_length` the length may differ from the depth, because the list repeats or defines the depth.
        Raises ConfigError for an unknown word or a wrong length.
        """
        values = self.list_of(name) if any_length else self.per_layer(name)
        known = list(allowed)  # a list, because an entry from the file may be unhashable
        if values is not None and not all(map(known.__contains__, values)):
            unknown = next(value for value in values if value not in known)
            raise self.error(
                name, f"has the unknown entry {short_repr(unknown)}", hint="known: " + ", ".join(sorted(allowed))
            )
        return values

    def per_layer(self, name: str) -> list[Any] | None:
        """A list with one entry per layer; None if absent. Raises ConfigError for any other length."""
        self._per_layer_names[name] = None
        values = self.list_of(name)
        if values is not None and len(values) != self.num_hidden_layers:
            raise self.error(
                name,
                f"has {len(values)} entries for {self.num_hidden_layers} layers",
                hint=f"make the list as long as {self.key('num_hidden_layers')}",
            )
        return values

    def list_of(self, name: str) -> list[Any] | None:
        """A list of any length; if absent, the class default or None. Raises ConfigError for anything else."""
        values = self.raw(name)
        if values is None:
            values = self._schema.defaults.get(name)
        if values is None:
            return None
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise self.error(name, f"must be a list, not {short_repr(values)}")
        return list(values)

    def size_list(self, name: str) -> list[int]:
        """A list of sizes, each checked; if absent, the class default or an empty list."""
        return [self.size(name, size) for size in self.list_of(name) or []]

    def layer_indices(self, name: str) -> list[int]:
        """A list of layer indices; empty if absent. Raises ConfigError for anything else."""
        values = self.raw(name)
        if values is None:
            return []
        if not isinstance(values, Sequence) or isinstance(values, str) or not all(type(v) is int for v in values):
            raise self.error(name, f"must be a list of layer indices, not {short_repr(values)}")
        return list(values)

    def require(self, condition: bool, message: str, hint: str | None = None) -> None:
        """Raise a ConfigError that names the family and file unless the condition holds."""
        if not condition:
            raise ConfigError(f"{self.family}: {message} in {self.origin}", hint)

    def required(self, name: str) -> Any:
        """A field without a usable class default. Raises ConfigError if the file omits it."""
        value = getattr(self, name)
        if value is None:
            raise self.missing(name)
        return value

    def error(self, name: str, problem: str, hint: str | None = None) -> ConfigError:
        """An error about one field: it names the key in the file, and the canonical name if that differs."""
        key = f"{self.path}{self.key(name)}"
        alias = f" ({name})" if self.key(name) != name else ""
        listed = f"`paramcalc families {self.family}` lists the fields it reads"
        return ConfigError(f"{self.family}: {key}{alias} {problem} in {self.origin}", hint or listed)

    def missing(self, name: str) -> ConfigError:
        """The error for a required field that is absent."""
        return self.error(name, "is required but missing", hint=f"add {self.key(name)} to the config")

    def counted_activation(self, name: str) -> str:
        """The name of an activation; the recipe counts its parameters, if it has any."""
        self.counted.update(self._keys(name))
        value = self.raw(name)
        return str(self._schema.defaults.get(name) if value is None else value)

    def read_keys(self) -> list[str]:
        """Keys of the file that the recipe has read."""
        return [key for key in self.fields if key in self._read]

    def unknown_keys(self) -> Iterator[tuple[str, Any]]:
        """Keys, with their values, that the schema does not know and the recipe has not read; null values are skipped.

        A key with a declared default is known even if it was not read, such as MoE fields in a dense model.
        """
        schema = self._schema
        known = {*self._read, *schema.defaults, *schema.names.values(), *schema.unused}
        return ((key, value) for key, value in self.fields.items() if key not in known and value is not None)

    def _checked(self, name: str, value: Any, default: Any) -> Any:
        """A stated value, checked against the type of its default. Raises ConfigError."""
        if isinstance(default, bool):
            if not isinstance(value, bool):
                raise self.error(name, f"must be true or false, not {short_repr(value)}")
            return value
        if isinstance(default, str):
            if not isinstance(value, str):
                raise self.error(name, f"must be a string, not {short_repr(value)}")
            return value
        if isinstance(default, float):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < LARGEST_SIZE:
                raise self.error(name, f"must be a positive number, not {short_repr(value)}")
            return float(value)
        return self.size(name, value)

    def size(self, name: str, value: Any) -> int:
        """A size: an integer in range, else ConfigError. A string of digits is accepted with a doubt."""
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            self.doubts.append(
                f"{self.family}: {self.path}{self.key(name)} is a string ({short_repr(value)}); read as an integer"
            )
            value = int(value) if len(value) < 20 else value
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(name, f"must be an integer, not {short_repr(value)}")
        least = 0 if name in MAY_BE_ZERO else 1
        most = LARGEST_DEPTH if name in ("num_hidden_layers", "num_decoder_layers") else LARGEST_SIZE
        if value < least:
            raise self.error(name, f"must be at least {least}, not {value:,}")
        if value > most:
            raise self.error(name, out_of_range(value, most))
        return value


def _symbolic(name: str, key: str, value: Any, section: str) -> Any:
    """An integer with the symbol, key and section of its field; any other value unchanged."""
    if isinstance(value, int) and not isinstance(value, bool | SymbolicInt):
        return symbolic(SYMBOLS.get(name, name), value, origin=key, section=section)
    return value
