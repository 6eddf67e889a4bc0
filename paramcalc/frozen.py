"""Value objects that cost nothing to declare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Only type checkers read it, and typing has it from 3.11 on."""
        return lambda cls: cls


REQUIRED: Any = object()
DERIVED = ("_remembered", "_key")  # what an object holds beside its fields
T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Frozen:
    """Keyword-only, frozen fields, declared as in a dataclass (`width: int`, `bias: bool = False`); equal by value.

    Not a dataclass in fact: that compiles six methods for each class at every start, which for the component classes
    is more than the count itself takes. Raises TypeError for an unknown or missing field.
    """

    fields: ClassVar[Mapping[str, Any]] = {}  # name: default, or REQUIRED
    required: ClassVar[Set[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__annotations__", {})  # noqa: RUF063  (only the names are wanted, not the types)
        cls.fields = {**cls.fields, **{name: cls.__dict__.get(name, REQUIRED) for name in own}}
        cls.required = frozenset(name for name, default in cls.fields.items() if default is REQUIRED)

    def __init__(self, **values: Any) -> None:
        given = {**self.fields, **values}
        if len(given) != len(self.fields) or not self.required <= values.keys():
            raise self._wrong(given)
        self.__dict__.update(given)

    def _wrong(self, given: Mapping[str, Any]) -> TypeError:
        wrong = [name for name in given if name not in self.fields or given[name] is REQUIRED]
        return TypeError(f"{type(self).__name__}: unknown or missing fields: {', '.join(wrong)}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return False
        values = _values_of(type(self))  # type: ignore[arg-type]  # the class can be hashed, its objects cannot
        return bool(values(self.__dict__) == values(other.__dict__))

    __hash__ = None  # type: ignore[assignment]  # dicts go by `key`, which is made once where it is needed

    def __repr__(self) -> str:
        said = (f"{name}={value!r}" for name, value in self.values().items() if value != self.fields[name])
        return f"{type(self).__name__}({', '.join(said)})"

    def but(self, **changes: Any) -> Self:
        """The same with other values in some fields."""
        if not self.fields.keys() >= changes.keys():
            raise self._wrong(changes)
        other = object.__new__(type(self))
        other.__dict__.update({**self.__dict__, **changes})
        for derived in DERIVED:
            other.__dict__.pop(derived, None)
        return other

    def values(self) -> dict[str, Any]:
        """The fields and their values."""
        return {name: self.__dict__[name] for name in self.fields}

    def remembered(self, name: str, derive: Callable[[], Iterable[T]]) -> tuple[T, ...]:
        """What is derived from the fields alone, derived once: nothing here ever changes."""
        memory = self.__dict__.setdefault("_remembered", {})
        if name not in memory:
            memory[name] = tuple(derive())
        found: tuple[T, ...] = memory[name]
        return found

    def key(self) -> tuple[Any, ...]:
        """What stands for it in a dict: equal objects have equal keys. Made once: layers share their parts."""
        own = self.__dict__
        found: tuple[Any, ...] | None = own.get("_key")
        if found is None:
            plain, nested = _fields_of(type(self))  # type: ignore[arg-type]  # the class can be hashed, its objects cannot
            inner = [_key(v) if isinstance(v, NESTED) else v for v in map(own.get, nested)]
            found = own["_key"] = (type(self), plain(own), *inner)
        return found


@cache
def _values_of(cls: type[Frozen]) -> Callable[[Mapping[str, Any]], Any]:
    """How to take all fields at once."""
    return itemgetter(*cls.fields) if cls.fields else lambda _: ()


@cache
def _fields_of(cls: type[Frozen]) -> tuple[Callable[[Mapping[str, Any]], Any], tuple[str, ...]]:
    """How to take all fields that hold a plain value at once, and the names of those that may hold more."""
    kinds: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        kinds |= one.__dict__.get("__annotations__", {})  # noqa: RUF063  (only compared with names of types)
    plain = [name for name in cls.fields if kinds[name].removesuffix(" | None") in PLAIN]
    rest = tuple(name for name in cls.fields if name not in plain)
    return (itemgetter(*plain) if plain else lambda _: ()), rest


def _key(value: Any) -> Any:
    if isinstance(value, Frozen):
        return value.key()
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return tuple([(name, _key(item) if isinstance(item, NESTED) else item) for name, item in items])


NESTED = (Frozen, dict, tuple)
PLAIN = ("Size", "int", "bool", "str", "Category")
