"""A document: raw config fields with the model's name and their origin."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

QUANTIZATION_SIDECARS = ("hf_quant_config.json", "quantize_config.json", "quant_config.json")


class Document(NamedTuple):
    """The fields of a config, unchecked."""

    fields: dict[str, Any]
    name: str  # of the model
    origin: str  # the file or preset, for messages
    sidecars: Mapping[str, Any] = {}  # quantisation files next to the config, by file name
    notes: tuple[str, ...] = ()  # remarks about how it was read, and about what is next to it
    adapter: Mapping[str, Any] | None = None  # the adapter_config.json next to it
    doubts: Mapping[str, str] = {}  # fields that the file does not state, and what is assumed


class HasToDict(Protocol):
    """An object with `to_dict()`, such as a transformers `PretrainedConfig`."""

    def to_dict(self) -> dict[str, Any]:
        """The config fields."""
        ...


Source = str | os.PathLike[str] | Mapping[str, Any] | HasToDict
