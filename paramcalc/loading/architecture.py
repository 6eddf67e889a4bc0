"""Which class and which head a config describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcalc.base.errors import ConfigError
from paramcalc.families.registry import Family, class_exists, normalised, split_class


def string_field(fields: Mapping[str, Any], key: str, origin: str) -> str | None:
    """A field that must be a string. Raises ConfigError."""
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{key} must be a word, not {value!r} in {origin}")
    return value


def stated_architecture(fields: Mapping[str, Any], origin: str) -> str | None:
    """The first class name in `architectures`; None where there is none. Raises ConfigError."""
    names = fields.get("architectures")
    if not names:
        return None
    if isinstance(names, str):
        return names
    if isinstance(names, list) and isinstance(names[0], str):
        return names[0]
    raise ConfigError(f"architectures must be a list of class names in {origin}", "such as [LlamaForCausalLM]")


def counted_class(
    family: Family, stated: str | None, model_type: str | None, *, foreign: bool
) -> tuple[str, str, list[str]]:
    """The class to count, its head, and doubts about the choice."""
    main_head = split_class(family.main_class)[1] or "lm"
    if foreign:
        return family.main_class, main_head, [f"{model_type or stated} is counted as if it were {family.name}"]
    doubts = []
    if model_type != family.name:
        said = "no model_type is stated" if model_type is None else f"model_type {model_type!r} is not known"
        doubts.append(f"{said}; counted as {family.name}, which architectures names")
    if stated is None:
        return family.main_class, main_head, doubts
    prefix, head = split_class(stated)
    if head is None or normalised(prefix) not in family.class_prefixes:
        doubts.append(f"{family.name}: class {stated!r} is not known; counted as {family.main_class}")
        return family.main_class, main_head, doubts
    same_by_main_name = family.class_prefix + stated[len(prefix) :]  # ExaoneForCausalLM is LlamaForCausalLM
    known = (
        stated == family.main_class or class_exists(family.name, stated) or class_exists(family.name, same_by_main_name)
    )
    if not known:
        doubts.append(f"{family.name}: transformers has no class {stated!r}; its head is taken from the ending")
    return stated, head, doubts
