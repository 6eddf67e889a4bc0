"""The class and the head that a config describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcalc.base.errors import ConfigError
from paramcalc.families.registry import (
    FAMILY_BY_CLASS,
    Family,
    class_exists,
    class_owners,
    get_family,
    normalised,
    split_class,
)


def string_field(fields: Mapping[str, Any], key: str, origin: str) -> str | None:
    """A field that must be a string; None if it is absent or null. Raises ConfigError."""
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{key} must be a string, not {value!r} in {origin}")
    return value


def stated_architecture(fields: Mapping[str, Any], origin: str) -> str | None:
    """The first class name in `architectures`; None if there is none. Raises ConfigError."""
    names = fields.get("architectures")
    if not names:
        return None
    if isinstance(names, str):
        return names
    if isinstance(names, list) and isinstance(names[0], str):
        return names[0]
    raise ConfigError(f"architectures must be a list of class names in {origin}", "for example [LlamaForCausalLM]")


def counted_class(
    family: Family, stated: str | None, model_type: str | None, origin: str, *, foreign: bool
) -> tuple[str, str, list[str]]:
    """The class to count, its head, and doubts about the choice.

    With `foreign` the user chose the family with `as_family`, so that the stated class does not matter.
    Raises ConfigError for a class of another family whose config has other fields.
    """
    main_head = split_class(family.main_class)[1] or "lm"
    if foreign:
        return family.main_class, main_head, [f"{model_type or stated} is counted as if it were {family.name}"]
    doubts = []
    if model_type != family.name and stated not in FAMILY_BY_CLASS:
        problem = "no model_type is stated" if model_type is None else f"model_type {model_type!r} is not known"
        doubts.append(f"{problem}; counted as {family.name}, the family of the class in architectures")
    if stated is None:
        return family.main_class, main_head, doubts
    prefix, head = split_class(stated)
    if head is None or normalised(prefix) not in family.class_prefixes:
        owners = class_owners(stated)
        known_as = f"belongs to {owners[0]}" if owners else "is not known"
        if owners and not any(reads_like(family, get_family(owner)) for owner in owners):
            raise ConfigError(
                f"architectures names {stated}, a class of {owners[0]}, but model_type is {family.name} in {origin}",
                f"keep the right one: --set model_type={owners[0]}, or --set architectures={family.main_class}",
            )
        doubts.append(f"{family.name}: class {stated!r} {known_as}; counted as {family.main_class}")
        return family.main_class, main_head, doubts
    same_by_main_name = family.class_prefix + stated[len(prefix) :]  # for ExaoneForCausalLM: LlamaForCausalLM
    known = (
        stated == family.main_class or class_exists(family.name, stated) or class_exists(family.name, same_by_main_name)
    )
    if not known:
        owners = class_owners(stated)
        lacks = f"{stated!r} takes the config of {owners[0]}" if owners else f"transformers has no class {stated!r}"
        doubts.append(f"{family.name}: {lacks}; its head is inferred from the suffix")
    return stated, head, doubts


def reads_like(family: Family, other: Family) -> bool:
    """True where two families read the same fields, or one may stand in a section of the other."""
    sections = [section for one in (family, other) for section in one.schema.sections.values()]
    nested = any(section.free or section.kind in (family.name, other.name) for section in sections)
    return nested or field_keys(family) == field_keys(other)


def field_keys(family: Family) -> set[str]:
    """The keys under which the class of a family has the fields that it reads."""
    return {family.schema.names.get(name, name) for name in family.schema.defaults}
