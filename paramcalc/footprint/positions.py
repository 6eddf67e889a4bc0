"""How many tokens a config says that its model is made for. No part of any figure: it stands beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcalc.model import Model

# The keys that vLLM looks at (ModelConfig, _get_and_verify_max_len), which name one thing in many families.
MAX_POSITION_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
LANGUAGE_SECTIONS = ("text_config", "llm_config", "language_config")


class MaxPositions(NamedTuple):
    """A key and its value."""

    key: str
    tokens: int


def max_positions(model: Model) -> MaxPositions | None:
    """What the config states of its language model; None where it states nothing."""
    sections = (model.config.get(name) for name in LANGUAGE_SECTIONS)
    for fields in (*sections, model.config):
        if isinstance(fields, Mapping):
            for key in MAX_POSITION_KEYS:
                if _is_number(fields.get(key)):
                    return MaxPositions(key, fields[key])
    return None


def beyond_max_positions(model: Model, context: int) -> list[str]:
    """That more tokens are asked for than the config states."""
    stated = max_positions(model)
    if stated is None or context <= stated.tokens:
        return []
    return [f"a context of {context:,} tokens is beyond the config's {stated.key} of {stated.tokens:,}"]


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
