"""A document: raw fields, a name for the model, and the place to name in messages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

QUANTIZATION_SIDECARS = ("hf_quant_config.json", "quantize_config.json", "quant_config.json")


class Document(NamedTuple):
    """The fields as they stand in the file, a name for the model, and the place to name in messages."""

    fields: dict[str, Any]
    name: str
    origin: str
    sidecars: Mapping[str, Any] = {}  # the files about quantisation that are beside it, by name


class HasToDict(Protocol):
    """What says of itself what its fields are, like a config of transformers."""

    def to_dict(self) -> dict[str, Any]:
        """The fields."""
        ...


Source = str | os.PathLike[str] | Mapping[str, Any] | HasToDict
