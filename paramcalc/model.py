"""The loaded model: its component tree, identity and warnings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from paramcalc.base.value import Frozen
from paramcalc.config.schema import FieldValue
from paramcalc.tree.component import Component

if TYPE_CHECKING:
    from paramcalc.config.schema import StatedConfig
    from paramcalc.reports.shapes.base import Status


TreeBuilder = Callable[[Mapping[str, Any]], Component]


class Variants(Protocol):
    """Builds a model again with other values in some fields. Unknown fields and impossible values raise ConfigError."""

    def values(self) -> dict[str, FieldValue]:
        """The language model's fields by their canonical names, and every list with one entry per layer."""

    def changed_fields(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a file that states the overrides."""

    def tree(self, overrides: Mapping[str, Any]) -> Component:
        """The component tree with overrides applied."""

    def builder(self) -> TreeBuilder:
        """`tree`, for many models: their common fields are read once."""

    def tree_of(self, fields: Mapping[str, Any]) -> Component:
        """The component tree of other fields, read as the same family and class."""

    def stated_config(self) -> StatedConfig:
        """The fields of the file with the schema that reads them."""


class Model(Frozen):
    """A loaded model, ready to count. Made by `paramcalc.load`.

    `status` is "exact" if the count equals the reference class's to the last parameter, else "approximate" with the
    reasons in `warnings`. Texts that may come from a file (name, architecture, warnings) are one printable line each.
    """

    name: str
    family: str
    architecture: str  # the reference class that is counted
    source: str
    status: Status
    dtype: str
    warnings: tuple[str, ...]
    tree: Component
    variants: Variants  # rebuilds the tree with other values in some fields
    config: Mapping[str, Any]  # the fields of the model, overrides applied
    quantization: Mapping[str, Any] | None  # the quantization config of the checkpoint, as stated
    quantised_towers: bool  # False if `quantization` covers only the language model
    published: Mapping[str, Any]  # the publisher's figures, from a preset
    url: str | None  # the source of a preset's fields
