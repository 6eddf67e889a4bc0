"""The loaded model: its component tree, identity and warnings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from paramcalc.base.value import Frozen
from paramcalc.config.schema import FieldValue
from paramcalc.tree.component import Component

if TYPE_CHECKING:
    from paramcalc.config.schema import StatedConfig
    from paramcalc.reports.shapes.base import Status


TreeBuilder = Callable[[Mapping[str, Any]], Component]


class MaxPositions(NamedTuple):
    """The longest context that a config states, and the key that states it."""

    key: str
    tokens: int


class ConfigFacts(NamedTuple):
    """Facts of the config that no component states. Folds read these fields, never the config."""

    max_positions: MaxPositions | None = None
    kv_heads: int | None = None  # num_key_value_heads as stated: what llama.cpp's converter reads
    experts: int = 0  # the largest stated number of experts, whether or not a layer has some
    mtp_layers: int | None = None  # num_nextn_predict_layers as stated
    rope_scaling: Mapping[str, Any] = {}  # of the language model's full attention
    flags: Mapping[str, bool] = {}  # booleans at the top of the config
    transformers_version: str = ""


class CheckpointFacts(NamedTuple):
    """Facts of the published checkpoints and the reference class of a family that its configs do not state.

    The data and its sources are in families/checkpoints.json.
    """

    mtp_tables: bool = False  # files hold embedding and head once more for each multi-token-prediction module
    fp8_scale_bits: int | None = None  # of the scales in the publisher's fp8 files; None: not known
    fp8_doubt: str = ""  # why bytes of its fp8 files are an estimate
    conv1d_matrices: bool = False  # the class has Conv1D modules instead of torch.nn.Linear
    verified_linears: bool = False  # which of its matrices are torch.nn.Linear was compared with the class
    convertible_experts: tuple[str, ...] = ()  # quantisation methods that convert its fused experts


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
    facts: ConfigFacts
    checkpoint: CheckpointFacts
    quantization: Mapping[str, Any] | None  # the quantization config of the checkpoint, as stated
    quantised_towers: bool  # False if `quantization` covers only the language model
    published: Mapping[str, Any]  # the publisher's figures, from a preset
    url: str | None  # the source of a preset's fields

    def context_notes(self, context: int) -> list[str]:
        """A note where the context is longer than the config states; it affects no figure."""
        stated = self.facts.max_positions
        if stated is None or context <= stated.tokens:
            return []
        return [f"a context of {context:,} tokens is beyond the config's {stated.key} of {stated.tokens:,}"]
