"""Config keys whose presence changes no tensor. The lists are data, in known_keys.json, sorted."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple


class KnownKeys(NamedTuple):
    """Keys of config.json that a recipe need not read.

    The audit reports every key that no recipe read and that is not listed here, because it might matter. A key is
    `harmless` only if no family's reference class uses it to size, add or drop a tensor, or if every family that does
    reads it (such as max_position_embeddings). A key is `harmless_when_off` if only null, false or empty is harmless.
    `learned_activations` are activations with parameters of their own. A family that builds one reads the key; for
    other families the value is a doubt.
    """

    harmless: frozenset[str]
    harmless_when_off: frozenset[str]
    learned_activations: frozenset[str]


@cache
def known_keys() -> KnownKeys:
    """The lists, loaded once."""
    lists = json.loads(Path(__file__).with_name("known_keys.json").read_text(encoding="utf-8"))
    return KnownKeys(**{name: frozenset(keys) for name, keys in lists.items()})
