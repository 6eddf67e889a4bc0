"""What is to be said of a config once a recipe has read it, here and in the sections below."""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.config.known_keys import known_keys
from paramcalc.config.view import Config


def all_views(view: Config) -> Iterator[Config]:
    """A view and those of all sections that were asked for below it."""
    yield view
    for section in view.sections():
        yield from all_views(section)


def config_doubts(view: Config) -> list[str]:
    """Reasons why the count may not be exact: the recipe's, keys that nobody looked at, activations that learn."""
    own = [doubt for one in all_views(view) for doubt in one.doubts]
    loose = [f"{view.family}: key {key!r} was not used; the count may be incomplete" for key in unread_keys(view)]
    learned = [
        f"{view.family}: {key} is {word}, an activation with parameters of its own in each FFN; they are not counted"
        for key, word in learned_activations(view)
    ]
    return [*own, *loose, *learned]


def config_notes(view: Config) -> list[str]:
    """What is worth saying, though the count stands."""
    return [note for one in all_views(view) for note in one.notes]


def unread_keys(view: Config) -> list[str]:
    """Keys foreign to the family that are not known to be harmless: each could change a shape."""
    harmless, when_off, _ = known_keys()
    return [
        f"{one.path}{key}"
        for one in all_views(view)
        for key, value in one.unknown_keys()
        if key not in harmless and not (key in when_off and not value)
    ]


def learned_activations(view: Config) -> list[tuple[str, str]]:
    """Keys with activations that have parameters of their own, which the recipe does not count.

    T5's key says two things: gated-prelu.
    """
    learned = known_keys().learned_activations
    return [
        (f"{one.path}{key}", value)
        for one in all_views(view)
        for key, value in one.fields.items()
        if isinstance(value, str) and value.rpartition("-")[2] in learned and key not in one.counted
    ]
