"""What is known of keys whose presence changes no tensor; the lists are data, in known_keys.json, sorted."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple


class KnownKeys(NamedTuple):
    """Keys of config.json that no recipe need read.

    A key that no recipe read and that is not here is reported, because it might matter. A key is `harmless` only when
    no family's reference class sizes, adds or drops a tensor by it, or when every family that does reads it (such as
    max_position_embeddings); others are `harmless_when_off`: null, false, empty. `learned_activations` have parameters
    of their own: a family that builds one reads the key, for others the word is a doubt.
    """

    harmless: frozenset[str]
    harmless_when_off: frozenset[str]
    learned_activations: frozenset[str]


@cache
def known_keys() -> KnownKeys:
    """The lists, read once."""
    lists = json.loads(Path(__file__).with_name("known_keys.json").read_text(encoding="utf-8"))
    return KnownKeys(**{name: frozenset(keys) for name, keys in lists.items()})
