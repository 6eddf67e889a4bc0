"""The strict view of a config: the only way a recipe may look at a config.json.

A recipe asks for canonical names (`c.hidden_size`); the view knows the family's own key (`n_embd`), the class default
for what the file omits, and checks the value. It remembers what was read, so that a key which could change a shape
and was not looked at is reported, never ignored.
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
    """A checked, remembering view of one (section of a) config for one family."""

    def __init__(
        self,
        fields: Fields,
        reading: ConfigSchema,
        *,
        family: str,
        origin: str,
        architecture: str = "",
        head: str = "lm",
        path: str = "",
        root: Config | None = None,
        text_only: bool = False,
    ) -> None:
        self.fields = fields  # as they stand in the file, overrides applied
        self._reading = reading
        self.path = path
        self._read: set[str] = set()
        self.counted: set[str] = set()  # keys of activations whose parameters the recipe counts
        self._by_layer: dict[str, None] = {}  # fields that it takes for lists with an entry for each layer
        self._sections: dict[str, Config] = {}
        self._like: Mapping[str, Config] = {}  # sections of the view that this one was made of
        # What holds for all views that are made of one another:
        self._spellings: dict[str, tuple[str, ...]] = {}  # keys of a field
        self._fields_of: dict[str, list[str]] = {}  # fields that a key may stand for
        self._stated: dict[str, tuple[str, tuple[str, ...]]] = {}  # the key that states a field, and its other keys
        self._sizes: dict[tuple[str, int], Any] = {}  # whole numbers that were checked, with their symbols
        self.family = family
        self._root = root
        self.text_only = text_only  # of the whole file: only its language model is asked for
        self.origin = origin
        self.architecture = architecture
        self.head = head
        self.doubts: list[str] = []  # reasons why the count may not be exact
        self.notes: list[str] = []  # worth saying, though the count stands

    @property
    def root(self) -> Config:
        """The view of the whole file: labels and ties are stated there."""
        return self._root or self

    def with_fields(self, fields: Fields, changed: Iterable[str], *, root: Config | None = None) -> Config:
        """The same view of other fields; only these keys may have changed, the others are not checked again.

        It tells nothing of what the file leaves unread, and its doubts and notes are only of what it checks itself.
        """
        other: Config = object.__new__(Config)
        own = other.__dict__
        own.update(self.__dict__)
        own.update(fields=fields, doubts=[], notes=[], _root=root, _sections={}, _like=self._sections or self._like)
        for name in other._forget(changed):
            if (size := other._size(name)) is not None:
                own[name] = size  # which spares the search for it in the class
        return other

    def _forget(self, keys: Iterable[str]) -> list[str]:
        """Look these keys up again; the names that had been."""
        names = [name for key in keys for name in self._fields_of.get(key, ()) if name in self.__dict__]
        for name in names:
            self.__dict__.pop(name, None)
        return names

    def _size(self, name: str) -> Any:
        """A whole number that was found right in a view before this one; None where it must be looked at."""
        key, others = self._stated.get(name, ("", ()))
        stated = self.fields.get(key)
        if type(stated) is not int or not self.fields.keys().isdisjoint(others):
            return None
        return self._sizes.get((name, stated))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = self._size(name)
        if value is None:
            value = self._value(name)
        self.__dict__[name] = value  # found there from now on
        return value

    def _value(self, name: str) -> Any:
        if name in self._reading.fixed:
            value = self._reading.fixed[name]
            return _symbolic(name, name, value, self.path)
        if name not in self._reading.defaults:
            raise AttributeError(f"recipe {self.family} reads {name!r}, which has no declared default")
        default = self._reading.defaults[name]
        value = self.raw(name)
        meant = self._default_for_absent(name, default) if value is None else self._checked(name, value, default)
        key = self.key(name)
        found = meant if meant is None or isinstance(meant, bool) else _symbolic(name, key, meant, self.path)
        if type(value) is int:
            self._sizes[name, value] = found
            self._stated[name] = key, tuple(other for other in self._keys(name) if other != key)
        return found

    def _default_for_absent(self, name: str, default: Any) -> Any:
        """What null or nothing means: the class's default, unless null is a value of this field."""
        if not self.has(name):
            return default
        if name in self._reading.nullable:
            return None
        if default is True:  # the class would see a false value, if it took null at all
            self.doubts.append(f"{self.family}: {self.path}{self.key(name)} is null, taken for its default, true")
        return default

    def key(self, name: str) -> str:
        """The key this file uses for a field: the family's own, or an alias if only that is there."""
        own, *aliases = self._keys(name)
        if not aliases or own in self.fields:
            return own
        return next((alias for alias in aliases if alias in self.fields), own)

    def _keys(self, name: str) -> tuple[str, ...]:
        """The family's own key for a field, then the other names its class accepts for it."""
        found = self._spellings.get(name)
        if found is None:
            names = self._reading.names
            own = names.get(name, name)
            found = self._spellings[name] = (own, *(alias for alias, target in names.items() if target == own))
            for key in found:
                self._fields_of.setdefault(key, []).append(name)
        return found

    def declares(self, name: str) -> bool:
        """Whether the family has such a field at all, stated or not."""
        return name in self._reading.fixed or name in self._reading.defaults

    def has(self, name: str) -> bool:
        """Whether the file mentions the field at all, be it with null."""
        return self.key(name) in self.fields

    def raw(self, name: str) -> Any:
        """The value as it stands in the file, marked as read; None when absent or null."""
        keys = self._keys(name)
        self._read.update(keys)
        if len(keys) == 1:
            return self.fields.get(keys[0])
        stated = {key: self.fields[key] for key in keys if self.fields.get(key) is not None}
        if not stated:
            return None
        if not stated.keys().isdisjoint(self._reading.ignored):
            stated = self._without_ignored(name, stated)
        (first, value), *others = stated.items()
        for other, rival in others:
            if rival != value or type(rival) is not type(value):
                raise self.error(
                    first, f"is {short_repr(value)}, but {other!r} says {short_repr(rival)}", hint="keep one of the two"
                )
        return value

    def _without_ignored(self, name: str, stated: dict[str, Any]) -> dict[str, Any]:
        """What is stated of a field, without the spellings that its class ignores where it has one that it reads."""
        ignored = {key: stated[key] for key in stated if key in self._reading.ignored}
        own = {key: value for key, value in stated.items() if key not in ignored}
        meant = next(iter(own.values()), self._reading.defaults.get(name))
        key = self._keys(name)[0]
        self.doubts += [
            f"{self.family}: {self.path}{other} is a name that the class does not know; it reads {key}"
            for other, value in ignored.items()
            if value != meant
        ]
        return own or ignored

    def section(
        self, name: str, reading: ConfigSchema | None = None, *, family: str | None = None, head: str | None = None
    ) -> Config:
        """A view of a nested mapping, read as declared, or as `reading` says; what it leaves unread is reported."""
        value = self.raw(name)
        if value is not None and not isinstance(value, Mapping):
            raise self.error(name, f"must be a mapping, not {short_repr(value)}")
        how, like = self.section_schema(name) if reading is None else reading, self._like.get(name)
        if like is not None and like._reading is how:
            view = like.with_fields(value or {}, differing_keys(like.fields, value or {}), root=self.root)
        else:
            view = Config(
                value or {}, how, family="", origin=self.origin, architecture=self.architecture, root=self.root
            )
        view.family, view.head, view.path = family or self.family, head or self.head, f"{self.path}{name}."
        self._sections[name] = view
        return view

    def values(self) -> dict[str, Any]:
        """Every declared field as the file states it, else the class's default; unchecked, and not marked as read."""
        stated = {name: self.fields.get(self.key(name)) for name in self._reading.defaults}
        return {
            name: default if stated[name] is None else stated[name] for name, default in self._reading.defaults.items()
        }

    def last_value(self, name: str) -> Any:
        """What the recipe was given for a field; None where it did not ask for it."""
        return self.__dict__.get(name)

    def per_layer_fields(self) -> tuple[str, ...]:
        """The fields that the recipe took for lists with an entry for each layer, in the order in which it did."""
        return tuple(self._by_layer)

    def section_schema(self, name: str) -> ConfigSchema:
        """How a nested mapping is read."""
        return self._reading.sections[name]

    def section_kind(self, name: str) -> str:
        """The model_type that a nested mapping names, or the declared kind."""
        kind = self.section_schema(name).kind
        return str(self.section(name, ConfigSchema({"model_type": kind})).model_type or kind)

    def stated_config(self) -> StatedConfig:
        """What the file says here and in the sections that were asked for, and how it is read."""
        return StatedConfig(
            self.fields, self._reading, {name: view.stated_config() for name, view in self._sections.items()}
        )

    def sections(self) -> list[Config]:
        """The views of nested mappings that were asked for, in that order."""
        return list(self._sections.values())

    def layer_words(self, name: str, allowed: Collection[str], *, any_length: bool = False) -> list[str] | None:
        """A list with one word per layer, such as layer_types; None when absent.

        `any_length` where the list need not be as long as the depth: it is repeated, or it decides the depth.
        """
        values = self.list_of(name) if any_length else self.per_layer(name)
        known = list(allowed)  # in a set or mapping, an entry that cannot be hashed would be a crash
        if values is not None and not all(map(known.__contains__, values)):
            strange = next(value for value in values if value not in known)
            raise self.error(
                name, f"has the unknown word {short_repr(strange)}", hint="known: " + ", ".join(sorted(allowed))
            )
        return values

    def per_layer(self, name: str) -> list[Any] | None:
        """A list with one entry per layer; None when absent. A list of any other length is an error."""
        self._by_layer[name] = None
        values = self.list_of(name)
        if values is not None and len(values) != self.num_hidden_layers:
            raise self.error(
                name,
                f"has {len(values)} entries for {self.num_hidden_layers} layers",
                hint=f"make the list as long as {self.key('num_hidden_layers')}",
            )
        return values

    def list_of(self, name: str) -> list[Any] | None:
        """A list of any length; when absent the class's default, if that is a list, else None."""
        values = self.raw(name)
        if values is None:
            values = self._reading.defaults.get(name)
        if values is None:
            return None
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise self.error(name, f"must be a list, not {short_repr(values)}")
        return list(values)

    def size_list(self, name: str) -> list[int]:
        """A list of sizes; when absent the class's default, or empty."""
        return [self.size(name, size) for size in self.list_of(name) or []]

    def layer_indices(self, name: str) -> list[int]:
        """A list of layer numbers; empty when absent."""
        values = self.raw(name)
        if values is None:
            return []
        if not isinstance(values, Sequence) or isinstance(values, str) or not all(type(v) is int for v in values):
            raise self.error(name, f"must be a list of layer numbers, not {short_repr(values)}")
        return list(values)

    def require(self, condition: bool, message: str, hint: str | None = None) -> None:
        """Raise a ConfigError with the family and file unless the condition holds."""
        if not condition:
            raise ConfigError(f"{self.family}: {message} in {self.origin}", hint)

    def required(self, name: str) -> Any:
        """A field that the class has no usable default for. Raises ConfigError where the file leaves it out."""
        value = getattr(self, name)
        if value is None:
            raise self.missing(name)
        return value

    def error(self, name: str, problem: str, hint: str | None = None) -> ConfigError:
        """An error about one field: names the family's key, and the canonical name where it differs."""
        key = f"{self.path}{self.key(name)}"
        alias = f" ({name})" if self.key(name) != name else ""
        listed = f"`paramcalc families {self.family}` lists the fields it reads"
        return ConfigError(f"{self.family}: {key}{alias} {problem} in {self.origin}", hint or listed)

    def missing(self, name: str) -> ConfigError:
        """The error for a required field that is absent."""
        return self.error(name, "is required and missing", hint=f"add {self.key(name)} to the config")

    def counted_activation(self, name: str) -> str:
        """The word of an activation whose parameters the recipe counts, where it has any."""
        self.counted.update(self._keys(name))
        value = self.raw(name)
        return str(self._reading.defaults.get(name) if value is None else value)

    def unknown_keys(self) -> Iterator[tuple[str, Any]]:
        """Keys that are not the family's own, and what they say; a key with a declared default is its own, read or not.

        MoE fields of a model without experts, say.
        """
        own = self._reading
        known = {*self._read, *own.defaults, *own.names.values(), *own.unused}
        return ((key, value) for key, value in self.fields.items() if key not in known and value is not None)

    def _checked(self, name: str, value: Any, default: Any) -> Any:
        if isinstance(default, bool):
            if not isinstance(value, bool):
                raise self.error(name, f"must be true or false, not {short_repr(value)}")
            return value
        if isinstance(default, str):
            if not isinstance(value, str):
                raise self.error(name, f"must be a word, not {short_repr(value)}")
            return value
        if isinstance(default, float):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < LARGEST_SIZE:
                raise self.error(name, f"must be a positive number, not {short_repr(value)}")
            return float(value)
        return self.size(name, value)

    def size(self, name: str, value: Any) -> int:
        """A size from the file: a whole number in range. Digits in quotes are read with a doubt."""
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            self.doubts.append(
                f"{self.family}: {self.path}{self.key(name)} is the text {short_repr(value)}, read as a number"
            )
            value = int(value) if len(value) < 20 else value
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(name, f"must be a whole number, not {short_repr(value)}")
        least = 0 if name in MAY_BE_ZERO else 1
        most = LARGEST_DEPTH if name in ("num_hidden_layers", "num_decoder_layers") else LARGEST_SIZE
        if value < least:
            raise self.error(name, f"must be at least {least}, not {value:,}")
        if value > most:
            raise self.error(name, out_of_range(value, most))
        return value


def _symbolic(name: str, key: str, value: Any, section: str) -> Any:
    if isinstance(value, int) and not isinstance(value, bool | SymbolicInt):
        return symbolic(SYMBOLS.get(name, name), value, origin=key, section=section)
    return value
