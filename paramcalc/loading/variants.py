"""What a document describes, so that its tree can be built again with other values in some fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcalc.base.errors import ConfigError
from paramcalc.config.field_roles import FIELD_WORDS, resolve_field_word
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
PLAIN_TYPES = frozenset((int, float, bool, str, list, type(None)))  # types of values that are no sections


class NativeModelSource(NamedTuple):
    """A document's fields under paramcalc's own family; what a sweep varies."""

    fields: Mapping[str, Any]
    origin: str

    def config_with(self, overrides: Mapping[str, Any]) -> TransformerConfig:
        """The validated fields with other values in some."""
        from paramcalc.families.native import config as own_fields

        if overrides.keys() <= self.fields.keys():  # under the names that the file has: the case of a sweep
            return own_fields.parse({**self.fields, **overrides}, self.origin)
        names = FieldNames(
            NATIVE_TYPE, self.origin, own_fields.NATIVE_ALIASES, own_fields.native_field_names, absent=lambda _: {}
        )
        return own_fields.parse(with_overrides(self.fields, overrides, names), self.origin)

    def values(self) -> dict[str, FieldValue]:
        """The fields by their canonical names."""
        from paramcalc.families.native import config as own_fields

        described = self.config_with({})
        names = {own: name for name, own in reversed(own_fields.NATIVE_ALIASES.items())}
        found = {names.get(own, own): FieldValue(own, value) for own, value in described}
        layers = [entry.model_dump(exclude_none=True) for entry in described.layers or ()]
        found["layers"] = FieldValue(
            "layers", [{**entry, "repeat": 1} for entry in layers for _ in range(entry["repeat"])], True
        )
        moe = described.moe or ()
        return found | {f"moe.{name}": FieldValue(f"moe.{name}", value) for name, value in moe}

    def changed_fields(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """All fields as a file would state them."""
        return self.config_with(overrides).model_dump(exclude_none=True)

    def tree(self, overrides: Mapping[str, Any]) -> Component:
        """The component tree with other values in some fields. Raises ConfigError where there is no such model."""
        from paramcalc.families.native import model as own

        return own.native_tree(self.config_with(overrides), self.origin)

    def builder(self) -> TreeBuilder:
        """The same for many models; they have nothing in common that could be read once."""
        return self.tree

    def tree_of(self, fields: Mapping[str, Any]) -> Component:
        """The component tree of other fields. Raises ConfigError where there is no such model."""
        return self._replace(fields=fields).tree({})

    def stated_config(self) -> StatedConfig:
        """The fields, defaults and all."""
        return StatedConfig(self.fields)


class ConfigModelSource(NamedTuple):
    """A document's fields, and the family and class they describe; what a sweep varies."""

    fields: Mapping[str, Any]
    origin: str
    family: Family
    architecture: str
    head: str
    text_only: bool

    def view(self, overrides: Mapping[str, Any]) -> Config:
        """The strict view of the fields, with other values in some."""
        return Config(
            with_overrides(self.fields, self.resolve_words(overrides), self.field_names())
            if overrides
            else self.fields,
            self.family.schema,
            family=self.family.name,
            origin=self.origin,
            architecture=self.architecture,
            head=self.head,
            text_only=self.text_only,
        )

    def resolve_words(self, overrides: Mapping[str, Any]) -> Mapping[str, Any]:
        """The overrides under names of the family, where they are words like n_layers that it does not read itself."""
        words = (overrides.keys() & FIELD_WORDS.keys()) - {*self.family.schema.defaults, *self.field_names().others}
        values = self.values() if words else {}
        return {
            (resolve_field_word(values, name) if name in words else None) or name: value
            for name, value in overrides.items()
        }

    def values(self) -> dict[str, FieldValue]:
        """The fields of the language model by their canonical names, and every list with an entry for each layer.

        Where several sections describe its layers (an encoder's and a decoder's), their fields have dots in their
        names, so that there is no width of the model, and no depth.
        """
        root = self.view({})
        views = language_model_views(root, self.build(root))
        found: dict[str, FieldValue] = {}
        for view in views:
            path = view.path if len(views) > 1 else ""
            found |= {path + name: one for name, one in view_fields(view).items()}
        return found

    def build(self, view: Config) -> Component:
        """The tree that the family's recipe makes of a view."""
        tree = _built(self.family, view, self.origin)
        return _language_model(tree, self.family.name, self.origin) if self.text_only else tree

    def changed_fields(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """All fields as a file would state them."""
        return dict(self.view(overrides).fields)

    def tree(self, overrides: Mapping[str, Any]) -> Component:
        """The component tree with other values in some fields. Raises ConfigError where there is no such model."""
        return self.build(self.view(overrides))

    def builder(self) -> TreeBuilder:
        """The same for many models: what their fields have in common is found and checked once."""
        base = self.view({})
        self.build(base)  # so that it has read its fields
        known: dict[tuple[str, ...], tuple[list[FieldPath], list[str]]] = {}

        def tree(overrides: Mapping[str, Any]) -> Component:
            if not PLAIN_TYPES.issuperset(map(type, overrides.values())):
                return self.tree(overrides)  # a section of its own, in which other overrides may have their place
            names = tuple(overrides)
            if names not in known:
                places = [field_path(self.fields, name, self.field_names()) for name in names]
                known[names] = places, [key for one in places for key in one.changed()]
            places, changed = known[names]
            return self.build(base.with_fields(with_values(self.fields, places, overrides.values()), changed))

        return tree

    def field_names(self) -> FieldNames:
        """How its fields may be called."""
        reading = self.family.schema
        return FieldNames(
            self.family.name, self.origin, field_aliases(reading), self.known_keys, partial(section_defaults, reading)
        )

    def known_keys(self) -> set[str]:
        """Every key that may stand in a file of the family; of sections those that this one's recipe reads."""
        try:
            below = fields_below(self.stated_config())
        except ConfigError:  # which the overrides may mend
            below = iter(())
        return {*known_field_names(self.family.schema), *below}

    def tree_of(self, fields: Mapping[str, Any]) -> Component:
        """The component tree of other fields. Raises ConfigError where there is no such model."""
        return self._replace(fields=fields).tree({})

    def stated_config(self) -> StatedConfig:
        """The fields as they stand, and how the recipe reads them and their sections."""
        view = self.view({})
        self.build(view)
        return view.stated_config()


def section_defaults(reading: ConfigSchema, path: Sequence[str]) -> Mapping[str, Any]:
    """What the class passes to the model of a section where the file does not have it; nothing of other sections."""
    for step in path:
        own = get_family(reading.kind).schema.sections if reading.kind else {}
        reading = {**own, **reading.sections}.get(step, ConfigSchema({}))
    if not reading.kind:
        return {}
    inner = {name: section_defaults(section, ()) for name, section in reading.sections.items() if section.kind}
    return {**reading.defaults, "model_type": reading.kind, **inner}


def _views(view: Config) -> Iterator[Config]:
    """A view and those of its sections, outer ones first, sections of towers left out."""
    yield view
    for section in view.sections():
        if not any(word in section.path for word in ("vision", "audio")):
            yield from _views(section)


def language_model_views(root: Config, tree: Component) -> list[Config]:
    """The views whose width is that of the language model's layers; the whole file's where it is, or where none is.

    A section called text_config beside others is the language model's, others are of what speaks or acts for it.
    """
    sections = layer_sections(tree)
    found = [view for view in _views(root) if view.path in sections and view.last_value("hidden_size") is not None]
    if not found or found[0] is root:
        return [root]
    if any("decoder" in view.path for view in found):
        return found
    return [next((view for view in found if view.path.endswith("text_config.")), found[0])]


def view_fields(view: Config) -> dict[str, FieldValue]:
    """Every declared field of a view and every list that it states.

    With dots in their names those of the sections that size its layers, as DBRX has them.
    """
    stated = {name: value for name, value in view.fields.items() if isinstance(value, list | str)}
    declared, by_layer = view.values(), view.per_layer_fields()
    spelled = {view.key(name) for name in (*declared, *by_layer)}
    lists = {name: value for name, value in stated.items() if name not in spelled}
    lists |= {name: stated[view.key(name)] for name in by_layer if view.key(name) in stated}
    found = {
        name: FieldValue(view.path + view.key(name) if view.path else name, value, name in by_layer)
        for name, value in {**lists, **declared}.items()
    }
    for section in view.sections():
        if section.family == view.family:
            step = section.path.removeprefix(view.path)
            found |= {step + name: one for name, one in view_fields(section).items()}
    return found


def _built(family: Family, view: Config, origin: str) -> Component:
    """The tree. What the view does not check, nested lists and the like, ends here and not in a traceback."""
    try:
        return family.recipe(view)
    except (TypeError, ValueError, KeyError, IndexError) as error:
        hint = f"`paramcalc families {family.name}` lists the fields it reads"
        raise ConfigError(
            f"{family.name}: a field is not of the kind that is meant in {origin}: {error}", hint
        ) from error


def _language_model(tree: Component, family: str, origin: str) -> Component:
    """The language model within a tree; the tree itself where it is nothing else."""
    part = tree.parts().get("language_model")
    if part is not None:
        return Block(items=dict(part.parts()))
    if any(weight.category in ("vision", "projector") for weight in tree.weights()):
        raise ConfigError(f"{family}: the language model is not a part of its own in {origin}", "leave out --text-only")
    return tree
