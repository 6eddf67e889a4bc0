"""Interning (hash-consing) of value objects: within a pool, equal objects are one object."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


class InternPool:
    """A set of frozen objects without equal ones: two objects in it are equal if they are identical."""

    def __init__(self) -> None:
        self.objects: dict[tuple[Any, ...], Any] = {}
        self.numbers: dict[int, int] = {}  # id(object) to a negative number, which no size can equal

    def intern(self, key: tuple[Any, ...], made: Any) -> Any:
        """The pool's object equal to `made`, which is added if there is none; `key` leads to it from now on.

        Two keys lead to one object if one of them leaves out a field that has its default.
        """
        all_fields = ("", type(made), *map(self.key, made.values().values()))
        found = self.objects[key] = self.objects.setdefault(all_fields, made)
        if found is made:
            self.numbers[id(made)] = ~len(self.numbers)
        return found

    def replaced(self, one: Any, changes: dict[str, Any]) -> Any:
        """The pool's object that differs from `one` by `changes`."""
        key = (self.key(one), *changes, *map(self.key, changes.values()))
        try:
            found = self.objects.get(key)
        except TypeError:
            return one._replaced(changes)
        if found is None:
            found = self.objects[key] = type(one)(**{**one.values(), **changes})
        return found

    def key(self, value: Any) -> Any:
        """A hashable stand-in for a value: the number of an object in the pool, else the value itself."""
        if type(value) is not dict:
            return self.numbers.get(id(value), value)
        parts = tuple(map(self.numbers.get, map(id, value.values())))
        return (*value, *parts) if all(parts) else value

    def call(self, make: Callable[..., T], *args: Any, **options: Any) -> T:
        """Call `make`; every frozen object that it creates is taken from this pool."""
        token = _pool.set(self)
        try:
            return make(*args, **options)
        finally:
            _pool.reset(token)


_pool: ContextVar[InternPool | None] = ContextVar("pool", default=None)


class InterningMeta(type):
    """Metaclass of frozen objects: within `InternPool.call`, the constructor returns the pool's equal object."""

    mappings: bool  # a field is a dict of parts

    def __call__(cls, **values: Any) -> Any:
        pool = _pool.get()
        if pool is None:
            return super().__call__(**values)
        given = values.values()
        stand_ins = map(pool.key, given) if cls.mappings else map(pool.numbers.get, map(id, given), given)
        key = (cls, *values, *stand_ins)
        try:
            found = pool.objects.get(key)
        except TypeError:  # a field holds an object from outside the pool, which has no hash
            return super().__call__(**values)
        return pool.intern(key, super().__call__(**values)) if found is None else found
