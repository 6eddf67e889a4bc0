"""Immutable value objects whose classes are cheap to create."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from paramcalc.base.interning import InterningMeta, T, _pool

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Does nothing at run time. `typing` has it only since Python 3.11."""
        return lambda cls: cls


REQUIRED: Any = object()
CACHE_ATTRIBUTE = "_cached"  # the attribute, next to the fields, that holds derived values


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Frozen(metaclass=InterningMeta):
    """Base class with keyword-only, frozen fields, declared as in a dataclass (`width: int`, `bias: bool = False`).

    Objects are equal by value. It is not a dataclass, because a dataclass compiles six methods for each class at every
    start: for the component classes that takes longer than a count. Raises TypeError for an unknown or missing field.
    """

    fields: ClassVar[Mapping[str, Any]] = {}  # name: default, or REQUIRED
    required: ClassVar[Set[str]] = frozenset()
    mappings: ClassVar[bool] = False  # a field is a dict

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__annotations__", {})  # noqa: RUF063  (only the names are used, not the types)
        cls.fields = {**cls.fields, **{name: cls.__dict__.get(name, REQUIRED) for name in own}}
        cls.required = frozenset(name for name, default in cls.fields.items() if default is REQUIRED)
        cls.mappings = cls.mappings or any(kind.startswith("dict[") for kind in own.values())

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
        pool = _pool.get()
        if pool is not None and pool.numbers.keys() >= {id(self), id(other)}:
            return False  # a pool has no two equal objects
        values = _values_of(type(self))
        return bool(values(self.__dict__) == values(other.__dict__))

    __hash__ = None  # type: ignore[assignment]  # a dict of objects has to use their identity: see `InternPool`

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self.values().items() if value != self.fields[name])
        return f"{type(self).__name__}({', '.join(shown)})"

    def replace(self, **changes: Any) -> Self:
        """A copy with other values in some fields."""
        if not self.fields.keys() >= changes.keys():
            raise self._wrong(changes)
        pool = _pool.get()
        return self._replaced(changes) if pool is None else pool.replaced(self, changes)

    def _replaced(self, changes: Mapping[str, Any]) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update({**self.__dict__, **changes})
        other.__dict__.pop(CACHE_ATTRIBUTE, None)
        return other

    def values(self) -> dict[str, Any]:
        """The fields and their values."""
        return {name: self.__dict__[name] for name in self.fields}

    def cached(self, name: str, derive: Callable[[], Iterable[T]]) -> tuple[T, ...]:
        """Values derived from the fields by `derive`, computed once and stored under `name`."""
        memory = self.__dict__.setdefault(CACHE_ATTRIBUTE, {})
        if name not in memory:
            memory[name] = tuple(derive())
        found: tuple[T, ...] = memory[name]
        return found


@cache
def _values_of(cls: type[Frozen]) -> Callable[[Mapping[str, Any]], Any]:
    """A function that reads all fields from an object's `__dict__`."""
    return itemgetter(*cls.fields) if cls.fields else lambda _: ()
