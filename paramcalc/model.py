"""A model as paramcalc knows it: its component tree and what is to be said about it."""

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
    """The same model with other values in some fields."""

    def values(self) -> dict[str, FieldValue]:
        """The fields of the language model by their canonical names, and every list with an entry for each layer."""

    def changed_fields(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """All fields as a file would state them."""

    def tree(self, overrides: Mapping[str, Any]) -> Component:
        """The component tree. Raises ConfigError where there is no such model."""

    def builder(self) -> TreeBuilder:
        """The same for many models: what they have in common is read once."""

    def tree_of(self, fields: Mapping[str, Any]) -> Component:
        """The tree of other fields, read as the same family and class. Raises ConfigError where there is none."""

    def stated_config(self) -> StatedConfig:
        """What the file states, and how it is read."""


class Model(Frozen):
    """A loaded model, ready to count. Made by `paramcalc.load`.

    `status` is "exact" where the count equals the reference class's to the last parameter, else "approximate", with
    the reasons in `warnings`. What may come from a file (name, architecture, warnings) is one printable line each.
    """

    name: str
    family: str
    architecture: str  # class of the reference implementation that is counted
    source: str
    status: Status
    dtype: str
    warnings: tuple[str, ...]
    tree: Component
    variants: Variants  # builds the tree again with other values in some fields
    config: Mapping[str, Any]  # the fields it was built from, overrides applied
    quantization: Mapping[str, Any] | None  # how its checkpoint is quantised, as the files say it
    quantised_towers: bool  # False: they say it of the language model alone
    published: Mapping[str, Any]  # what its publisher states, as a preset has it
    url: str | None  # where a preset's fields come from
