"""The class and the head that a config describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcalc.base.errors import ConfigError
from paramcalc.families.registry import Family, class_exists, normalised, split_class


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
    family: Family, stated: str | None, model_type: str | None, *, foreign: bool
) -> tuple[str, str, list[str]]:
    """The class to count, its head, and doubts about the choice.

    With `foreign` the user chose the family with `as_family`, so that the stated class does not matter.
    """
    main_head = split_class(family.main_class)[1] or "lm"
    if foreign:
        return family.main_class, main_head, [f"{model_type or stated} is counted as if it were {family.name}"]
    doubts = []
    if model_type != family.name:
        problem = "no model_type is stated" if model_type is None else f"model_type {model_type!r} is not known"
        doubts.append(f"{problem}; counted as {family.name}, the family of the class in architectures")
    if stated is None:
        return family.main_class, main_head, doubts
    prefix, head = split_class(stated)
    if head is None or normalised(prefix) not in family.class_prefixes:
        doubts.append(f"{family.name}: class {stated!r} is not known; counted as {family.main_class}")
        return family.main_class, main_head, doubts
    same_by_main_name = family.class_prefix + stated[len(prefix) :]  # for ExaoneForCausalLM: LlamaForCausalLM
    known = (
        stated == family.main_class or class_exists(family.name, stated) or class_exists(family.name, same_by_main_name)
    )
    if not known:
        doubts.append(f"{family.name}: transformers has no class {stated!r}; its head is inferred from the suffix")
    return stated, head, doubts
