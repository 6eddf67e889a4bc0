"""What the views of a sweep share: parts that recipes make of fields which only some of the views change."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from functools import wraps
from itertools import repeat
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, cast

from paramcalc.config.schema import Fields

T = TypeVar("T")
Helper = TypeVar("Helper", bound=Callable[..., Any])
ELSEWHERE = ""  # among the keys that were looked at: something that is not in the view


class View(Protocol):
    """What is asked of a view here."""

    fields: Fields
    head: str
    shelf: Shelf | None

    def watched(self, keys: Iterable[str]) -> tuple[View, set[str]]:
        """The same view, and which of these keys will have been looked at through it."""
        ...


class Shelf:
    """What helpers made, by the values of the fields that they looked at.

    Views that agree in all fields a helper looked at are one to it where its arguments are the same too: it would go
    the same way, and make the same.
    """

    def __init__(self) -> None:
        self.varied: set[str] = set()  # keys that are not the same in all views
        self.calls: dict[Hashable, Made] = {}

    def vary(self, keys: Iterable[str]) -> None:
        """Views may differ in these keys from now on."""
        if not self.varied.issuperset(keys):
            self.varied.update(keys)
            self.calls.clear()

    def take(self, c: View, make: Callable[..., T], args: tuple[Any, ...], options: dict[str, Any]) -> T:
        """What `make` makes of the view and the arguments, made where it is not there."""
        try:
            call = (make, c.head, len(args), *args, *options, *options.values())
            made = self.calls.get(call) or self.calls.setdefault(call, Made())
            found = made.by_values.get(made.values(c.fields))
        except TypeError:  # an argument or a value without a hash: a component, a list
            return make(c, *args, **options)
        if found is None:
            view, asked = c.watched(self.varied)
            found = shared(make(view, *args, **options))
            made.keep(found, c.fields, asked, self.varied)
        return cast(T, found)


def shared(found: T) -> T:
    """The same; where it is a mapping of named parts, one that nobody can add to."""
    return cast(T, MappingProxyType(found)) if isinstance(found, dict) else found


class Made:
    """What one helper made with the same arguments."""

    def __init__(self) -> None:
        self.keys: list[str] = []  # that it looked at, of those which are not the same in all views
        self.by_values: dict[Hashable, Any] = {}

    def values(self, fields: Fields) -> Hashable:
        """What the view says of these; True is not 1 here, nor null the same as nothing."""
        values = tuple(map(fields.get, self.keys, repeat(ELSEWHERE)))
        return values, tuple(map(type, values))

    def keep(self, found: Any, fields: Fields, asked: set[str], varied: set[str]) -> None:
        """One more, made of these fields, of which the keys that were asked for count."""
        if ELSEWHERE in asked:
            return
        if more := (asked & varied).difference(self.keys):
            self.keys += sorted(more)
            self.by_values.clear()
        with suppress(TypeError):  # a list has no hash
            self.by_values[self.values(fields)] = found


def once(make: Helper) -> Helper:
    """A helper that makes the same of the same fields and arguments, and tells nothing but by what it returns.

    What it returns is not to be changed: it is shared.
    """

    @wraps(make)
    def made(c: View, *args: Any, **options: Any) -> Any:
        if c.shelf is None:
            return make(c, *args, **options)
        return c.shelf.take(c, make, args, options)

    return cast(Helper, made)
