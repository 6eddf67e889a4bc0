"""Interning (hash-consing) of value objects: within a pool, equal objects are one object."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


class InternPool:
    """Frozen objects, equal ones once: those that are made of it can be told apart by identity."""

    def __init__(self) -> None:
        self.objects: dict[tuple[Any, ...], Any] = {}
        self.numbers: dict[int, int] = {}  # of objects in here, by their identity; negative, as no size is

    def intern(self, key: tuple[Any, ...], made: Any) -> Any:
        """A new object, or the equal one that was made with other fields left to their defaults; found under this key
        from now on."""
        all_fields = ("", type(made), *map(self.key, made.values().values()))
        found = self.objects[key] = self.objects.setdefault(all_fields, made)
        if found is made:
            self.numbers[id(made)] = ~len(self.numbers)
        return found

    def replaced(self, one: Any, changes: dict[str, Any]) -> Any:
        """The object with other values in some fields."""
        key = (self.key(one), *changes, *map(self.key, changes.values()))
        try:
            found = self.objects.get(key)
        except TypeError:
            return one._replaced(changes)
        if found is None:
            found = self.objects[key] = type(one)(**{**one.values(), **changes})
        return found

    def key(self, value: Any) -> Any:
        """What stands for a value in keys; itself where it is plain, or from elsewhere."""
        if type(value) is not dict:
            return self.numbers.get(id(value), value)
        parts = tuple(map(self.numbers.get, map(id, value.values())))
        return (*value, *parts) if all(parts) else value

    def call(self, make: Callable[..., T], *args: Any, **options: Any) -> T:
        """What `make` makes, of objects in here."""
        token = _pool.set(self)
        try:
            return make(*args, **options)
        finally:
            _pool.reset(token)


_pool: ContextVar[InternPool | None] = ContextVar("pool", default=None)


class InterningMeta(type):
    """How frozen objects are made: taken from the pool where there is one and it has an equal one."""

    mappings: bool  # whether a field is a dict of parts

    def __call__(cls, **values: Any) -> Any:
        pool = _pool.get()
        if pool is None:
            return super().__call__(**values)
        given = values.values()
        stand_ins = map(pool.key, given) if cls.mappings else map(pool.numbers.get, map(id, given), given)
        key = (cls, *values, *stand_ins)
        try:
            found = pool.objects.get(key)
        except TypeError:  # it holds an object from elsewhere, which has no hash: so is it
            return super().__call__(**values)
        return pool.intern(key, super().__call__(**values)) if found is None else found
