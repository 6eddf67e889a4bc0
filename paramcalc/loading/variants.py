"""Model sources: they rebuild the component tree of a document with other values in some fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcalc.base.errors import ConfigError
from paramcalc.config.field_roles import GENERIC_FIELD_NAMES, resolve_generic_name
from paramcalc.config.overrides import (
    FieldNames,
    FieldPath,
    field_aliases,
    field_path,
    fields_below,
    known_field_names,
    with_overrides,
    with_values,
)
from paramcalc.config.schema import ConfigSchema, FieldValue, StatedConfig
from paramcalc.config.view import Config
from paramcalc.families.registry import Family, get_family
from paramcalc.model import TreeBuilder
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block
from paramcalc.tree.language import layer_sections

if TYPE_CHECKING:
    from paramcalc.families.native.config import TransformerConfig

NATIVE_TYPE = "transformer"
PLAIN_TYPES = frozenset((int, float, bool, str, list, type(None)))  # types of values that cannot contain a section


class NativeModelSource(NamedTuple):
    """The fields of a document in paramcalc's own format."""

    fields: Mapping[str, Any]
    origin: str

    def config_with(self, overrides: Mapping[str, Any]) -> TransformerConfig:
        """The validated fields with overrides applied. Raises ConfigError."""
        from paramcalc.families.native import config as native_config

        if overrides.keys() <= self.fields.keys():  # all under the file's own keys, as in a sweep
            return native_config.parse({**self.fields, **overrides}, self.origin)
        names = FieldNames(
            NATIVE_TYPE,
            self.origin,
            native_config.NATIVE_ALIASES,
            native_config.native_field_names,
            section_defaults=lambda _: {},
        )
        return native_config.parse(with_overrides(self.fields, overrides, names), self.origin)

    def values(self) -> dict[str, FieldValue]:
        """The fields by their canonical names; `layers` has one entry per layer, `moe` has dots."""
        from paramcalc.families.native import config as native_config

        config = self.config_with({})
        canonical = {key: name for name, key in reversed(native_config.NATIVE_ALIASES.items())}
        values = {canonical.get(key, key): FieldValue(key, value) for key, value in config}
        runs = [entry.model_dump(exclude_none=True) for entry in config.layers or ()]
        layers = [{**run, "repeat": 1} for run in runs for _ in range(run["repeat"])]
        values["layers"] = FieldValue("layers", layers, per_layer=True)
        moe = config.moe or ()
        return values | {f"moe.{name}": FieldValue(f"moe.{name}", value) for name, value in moe}

    def changed_fields(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a file that states the overrides."""
        return self.config_with(overrides).model_dump(exclude_none=True)

    def tree(self, overrides: Mapping[str, Any]) -> Component:
        """The component tree with overrides applied. Raises ConfigError for an impossible model."""
        from paramcalc.families.native import model as native

        return native.native_tree(self.config_with(overrides), self.origin)

    def builder(self) -> TreeBuilder:
        """`tree`, for many models: there is no shared work to save."""
        return self.tree

    def tree_of(self, fields: Mapping[str, Any]) -> Component:
        """The component tree of other fields. Raises ConfigError for an impossible model."""
        return self._replace(fields=fields).tree({})

    def stated_config(self) -> StatedConfig:
        """The fields; this format needs no schema to read them."""
        return StatedConfig(self.fields)


class ConfigModelSource(NamedTuple):
    """The fields of a Hugging Face config, and the family and class that they describe."""

    fields: Mapping[str, Any]
    origin: str
    family: Family
    architecture: str
    head: str
    text_only: bool

    def view(self, overrides: Mapping[str, Any]) -> Config:
        """The checked view of the fields with overrides applied. Raises ConfigError for an unknown field."""
        return Config(
            with_overrides(self.fields, self.resolve_names(overrides), self.field_names())
            if overrides
            else self.fields,
            self.family.schema,
            family=self.family.name,
            origin=self.origin,
            architecture=self.architecture,
            head=self.head,
            text_only=self.text_only,
        )

    def resolve_names(self, overrides: Mapping[str, Any]) -> Mapping[str, Any]:
        """The overrides with the family's keys in place of generic names such as n_layers.

        A generic name stays if the family has a field of that name. Raises ParamcalcError for an ambiguous one.
        """
        own_names = {*self.family.schema.defaults, *self.field_names().aliases}
        generic = (overrides.keys() & GENERIC_FIELD_NAMES.keys()) - own_names
        values = self.values() if generic else {}
        return {
            (resolve_generic_name(values, name) if name in generic else None) or name: value
            for name, value in overrides.items()
        }

    def values(self) -> dict[str, FieldValue]:
        """The language model's fields by their canonical names, and every list with one entry per layer.

        If several sections describe its layers (an encoder's and a decoder's), their fields have dotted names. The
        model as a whole then has neither width nor depth.
        """
        root = self.view({})
        views = language_model_views(root, self.build(root))
        values: dict[str, FieldValue] = {}
        for view in views:
            path = view.path if len(views) > 1 else ""
            values |= {path + name: value for name, value in view_fields(view).items()}
        return values

    def build(self, view: Config) -> Component:
        """The tree that the family's recipe builds from a view. Raises ConfigError for an impossible model."""
        tree = _run_recipe(self.family, view, self.origin)
        return _language_model(tree, self.family.name, self.origin) if self.text_only else tree

    def changed_fields(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a file that states the overrides."""
        return dict(self.view(overrides).fields)

    def tree(self, overrides: Mapping[str, Any]) -> Component:
        """The component tree with overrides applied. Raises ConfigError for an impossible model."""
        return self.build(self.view(overrides))

    def builder(self) -> TreeBuilder:
        """`tree`, for many models: fields without overrides are read and checked once."""
        base = self.view({})
        self.build(base)  # base now holds the value of every field that the recipe reads
        resolved: dict[tuple[str, ...], tuple[list[FieldPath], list[str]]] = {}

        def tree(overrides: Mapping[str, Any]) -> Component:
            if not PLAIN_TYPES.issuperset(map(type, overrides.values())):
                return self.tree(overrides)  # an override may be a section that the next override changes
            names = tuple(overrides)
            if names not in resolved:
                paths = [field_path(self.fields, name, self.field_names()) for name in names]
                resolved[names] = paths, [key for path in paths for key in path.changed_keys()]
            paths, changed = resolved[names]
            return self.build(base.with_fields(with_values(self.fields, paths, overrides.values()), changed))

        return tree

    def field_names(self) -> FieldNames:
        """The names under which a user may give the fields."""
        schema = self.family.schema
        return FieldNames(
            self.family.name, self.origin, field_aliases(schema), self.known_keys, partial(section_defaults, schema)
        )

    def known_keys(self) -> set[str]:
        """Every key that a file of the family may have. Keys of a section are known only if the recipe reads it."""
        try:
            below = fields_below(self.stated_config())
        except ConfigError:  # the overrides may correct the error
            below = iter(())
        return {*known_field_names(self.family.schema), *below}

    def tree_of(self, fields: Mapping[str, Any]) -> Component:
        """The component tree of other fields. Raises ConfigError for an impossible model."""
        return self._replace(fields=fields).tree({})

    def stated_config(self) -> StatedConfig:
        """The fields of the file and of the sections that the recipe reads, with their schemas."""
        view = self.view({})
        self.build(view)
        return view.stated_config()


def section_defaults(schema: ConfigSchema, path: Sequence[str]) -> Mapping[str, Any]:
    """The fields that the class passes to the model of a section that the file omits; empty for other sections."""
    for step in path:
        sections = get_family(schema.kind).schema.sections if schema.kind else {}
        schema = {**sections, **schema.sections}.get(step, ConfigSchema({}))
    if not schema.kind:
        return {}
    inner = {name: section_defaults(section, ()) for name, section in schema.sections.items() if section.kind}
    return {**schema.defaults, "model_type": schema.kind, **inner}


def _text_views(view: Config) -> Iterator[Config]:
    """A view and the views of its sections, outer ones first, without the sections of towers."""
    yield view
    for section in view.sections():
        if not any(word in section.path for word in ("vision", "audio")):
            yield from _text_views(section)


def language_model_views(root: Config, tree: Component) -> list[Config]:
    """The views whose width is that of the language model's layers; the view of the whole file if it is or none is.

    If several sections match, `text_config` is the language model; the others describe speech or action decoders.
    The sections of an encoder and a decoder are both returned.
    """
    sections = layer_sections(tree)
    candidates = (view for view in _text_views(root) if view.last_value("hidden_size") is not None)
    matches = [view for view in candidates if view.path in sections]
    if not matches or matches[0] is root:
        return [root]
    if any("decoder" in view.path for view in matches):
        return matches
    return [next((view for view in matches if view.path.endswith("text_config.")), matches[0])]


def view_fields(view: Config) -> dict[str, FieldValue]:
    """Every declared field of a view, and every list that the file states there.

    Sections of the same family, such as DBRX has for its layers, are included; their fields have dotted names.
    """
    stated = {name: value for name, value in view.fields.items() if isinstance(value, list | str)}
    declared, per_layer = view.values(), view.per_layer_fields()
    declared_keys = {view.key(name) for name in (*declared, *per_layer)}
    lists = {name: value for name, value in stated.items() if name not in declared_keys}
    lists |= {name: stated[view.key(name)] for name in per_layer if view.key(name) in stated}
    values = {
        name: FieldValue(view.path + view.key(name) if view.path else name, value, name in per_layer)
        for name, value in {**lists, **declared}.items()
    }
    for section in view.sections():
        if section.family == view.family:
            step = section.path.removeprefix(view.path)
            values |= {step + name: value for name, value in view_fields(section).items()}
    return values


def _run_recipe(family: Family, view: Config, origin: str) -> Component:
    """The tree. Raises ConfigError also for values that the view does not check, such as nested lists."""
    try:
        return family.recipe(view)
    except (TypeError, ValueError, KeyError, IndexError) as error:
        hint = f"`paramcalc families {family.name}` lists the fields it reads"
        raise ConfigError(f"{family.name}: a field has the wrong type in {origin}: {error}", hint) from error


def _language_model(tree: Component, family: str, origin: str) -> Component:
    """The language model of a multimodal tree; the tree itself if it has no tower. Raises ConfigError."""
    part = tree.parts().get("language_model")
    if part is not None:
        return Block(items=dict(part.parts()))
    if any(weight.category in ("vision", "projector") for weight in tree.weights()):
        raise ConfigError(f"{family}: no separate language model in {origin}", "leave out --text-only")
    return tree
