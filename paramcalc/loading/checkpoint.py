"""Facts about the checkpoint in a config: its dtype and its quantisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcalc.base.dtypes import DEFAULT, QUANTISED_REST, dtype
from paramcalc.base.errors import ConfigError, ParamcalcError
from paramcalc.sources.document import QUANTIZATION_SIDECARS

DEEPEST_SECTION = 2  # levels below the top; thinker_config.text_config is the deepest known case


def known_dtype(stated: str, origin: str) -> str:
    """The canonical name of a dtype. Raises ConfigError, which names the file, if it is unknown."""
    try:
        return dtype(stated).name
    except ParamcalcError as error:
        raise ConfigError(f"{error.message} in {origin}", error.hint) from error


def checkpoint_dtype(fields: Mapping[str, Any], family: str, origin: str, *, quantised: bool) -> tuple[str, list[str]]:
    """The dtype of the checkpoint, and a note if the config does not state one."""
    default = QUANTISED_REST if quantised else DEFAULT
    places = [fields, *(fields[key] for key in ("text_config", "llm_config") if isinstance(fields.get(key), Mapping))]
    for place in places:
        for key in ("dtype", "torch_dtype"):
            stated = place.get(key)
            if isinstance(stated, str) and stated != "auto":
                return known_dtype(stated, origin), []
            if stated is not None and not isinstance(stated, str):
                return default, [f"{family}: {key} is not the name of a dtype; {default} is assumed for the bytes"]
    return default, [f"{family}: the config names no dtype; {default} is assumed for the bytes"]


QUANT_CONFIG_KEYS = ("quantization_config", "compression_config", "quantization", *QUANTIZATION_SIDECARS)
# Keys that belong to the quantization config but are next to it in DeepSeek-V4's files; DeepseekV4Config moves them.
KEYS_NEXT_TO_QUANT_CONFIG = ("expert_dtype",)


def quantization_config(fields: Mapping[str, Any], depth: int = 0) -> tuple[Mapping[str, Any] | None, bool]:
    """The quantization config, or None, and True if it is that of a section and so covers only this section.

    Sections are searched down to `DEEPEST_SECTION` levels; the outermost quantization config wins.
    """
    for key in QUANT_CONFIG_KEYS:
        stated = fields.get(key)
        if isinstance(stated, Mapping) and stated:
            moved = {name: fields[name] for name in KEYS_NEXT_TO_QUANT_CONFIG if name in fields}
            return {**moved, **stated}, depth > 0
    sections = [value for value in fields.values() if isinstance(value, Mapping)] if depth < DEEPEST_SECTION else []
    results = (quantization_config(section, depth + 1) for section in sections)
    return next((result for result in results if result[0] is not None), (None, False))
