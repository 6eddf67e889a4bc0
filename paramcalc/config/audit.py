"""The audit of a config after its recipe has read it: doubts and notes, including those of its sections."""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.config.known_keys import known_keys
from paramcalc.config.view import Config


def all_views(view: Config) -> Iterator[Config]:
    """A view and the views of all sections below it that the recipe has read."""
    yield view
    for section in view.sections():
        yield from all_views(section)


def config_doubts(view: Config) -> list[str]:
    """Reasons why the count may not be exact: the recipe's own, unread keys, activations with parameters."""
    own = [doubt for one in all_views(view) for doubt in one.doubts]
    unread = [f"{view.family}: unrecognised key {key!r} ignored; the count may be wrong" for key in unread_keys(view)]
    learned = [
        f"{view.family}: {key} is {activation}, an activation with its own parameters in each FFN; they are not counted"
        for key, activation in learned_activations(view)
    ]
    return [*own, *unread, *learned]


def config_notes(view: Config) -> list[str]:
    """Remarks that do not make the count inexact."""
    return [note for one in all_views(view) for note in one.notes]


def unread_keys(view: Config) -> list[str]:
    """Keys that no recipe read and that are not known to be harmless; each might change a shape."""
    harmless, when_off, _ = known_keys()
    return [
        f"{one.path}{key}"
        for one in all_views(view)
        for key, value in one.unknown_keys()
        if key not in harmless and not (key in when_off and not value)
    ]


def unread_sizes(view: Config) -> list[str]:
    """The unread keys that may be sizes: whole numbers above 1."""
    unread = set(unread_keys(view))
    keys = ((f"{one.path}{key}", value) for one in all_views(view) for key, value in one.unknown_keys())
    return [key for key, value in keys if key in unread and type(value) is int and value > 1]


def read_sizes(view: Config) -> list[str]:
    """The stated whole numbers that a recipe read, without those that files of all kinds have under one name."""
    return [
        f"{one.path}{key}"
        for one in all_views(view)
        for key in one.read_keys()
        if type(one.fields[key]) is int and key not in COMMON_SIZES
    ]


COMMON_SIZES = frozenset(("vocab_size", "max_position_embeddings", "num_labels"))


def learned_activations(view: Config) -> list[tuple[str, str]]:
    """Keys that state an activation with parameters of its own, which the recipe does not count, and its name.

    T5 joins two words in one value: `gated-prelu`.
    """
    learned = known_keys().learned_activations
    return [
        (f"{one.path}{key}", value)
        for one in all_views(view)
        for key, value in one.fields.items()
        if isinstance(value, str) and value.rpartition("-")[2] in learned and key not in one.counted
    ]
