"""A model as paramcalc knows it: its component tree and what is to be said about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from paramcalc.report import ModelInfo
from paramcalc.spec import AnyComponent


class Model(BaseModel):
    """A loaded model: ready to count. Made by `paramcalc.load`."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    info: ModelInfo
    warnings: tuple[str, ...]
    tree: AnyComponent
    config: Mapping[str, Any]  # the fields it was built from, overrides applied
    published: Mapping[str, Any] = {}  # what its publisher states, as written in the preset
    url: str | None = None  # where a preset's fields come from
