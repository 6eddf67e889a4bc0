"""The registry of towers: the encoders inside a larger model, by the `model_type` of their section."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from paramcalc.config.schema import ConfigSchema
from paramcalc.config.view import Config
from paramcalc.families.schemas import config_schema, schema_entry
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block

TowerRecipe = Callable[[Config], Block]

TOWER_RECIPES: dict[str, TowerRecipe] = {}  # filled by @tower when a module of recipes is imported


def tower(*kinds: str) -> Callable[[TowerRecipe], TowerRecipe]:
    """Register a recipe for towers of these types; their schemas are in `schemas/`."""

    def register(recipe: TowerRecipe) -> TowerRecipe:
        TOWER_RECIPES.update(dict.fromkeys(kinds, recipe))
        return recipe

    return register


def require_model_type(c: Config, section: str, kind: str) -> None:
    """Refuse another model_type in a section if the class would build it; other classes ignore the field."""
    declared, fields = c.section_schema(section), c.raw(section)
    if not declared.free or not isinstance(fields, Mapping):
        return
    stated = fields.get("model_type") or kind
    named = declared.spellings.get(stated, stated)
    c.require(named == kind, f"{section} is a {stated}", f"only a {kind} can be counted there")


@cache
def tower_modules() -> dict[str, str]:
    """The module of each kind of tower. Written by tests/tools/index.py."""
    return dict(json.loads(Path(__file__).parents[1].joinpath("towers.json").read_text(encoding="utf-8")))


def tower_recipe(kind: str) -> TowerRecipe:
    """The recipe of a kind; its module is imported on first use."""
    if kind not in TOWER_RECIPES:
        import_module(f"paramcalc.families.{tower_modules()[kind]}")
    return TOWER_RECIPES[kind]


def tower_schema(kind: str) -> ConfigSchema:
    """The schema of a tower's section."""
    return config_schema(schema_entry(tower_recipe(kind).__module__, kind))


def tower_in(c: Config, section: str, *, kind: str | None = None, **fixed: Any) -> tuple[Block, Config]:
    """The tower in a section of the config, and the view of that section; of the declared `kind` by default.

    `fixed` are fields that the outer config decides, whatever the section says.
    """
    declared = c.section_schema(section)
    kind = kind or declared.kind
    read = tower_schema(kind)
    if c.raw(section) is None:
        read = read._replace(defaults={**read.defaults, **declared.defaults})
    view = c.section(section, read._replace(fixed={**read.fixed, **fixed}), family=kind)
    require_model_type(c, section, kind)
    built = tower_recipe(kind)(view)
    assume(c, section, kind, built)
    return built, view


def assume(c: Config, section: str, kind: str, part: Component) -> None:
    """Remember a part that the class builds from its defaults where the file has no such section."""
    if not c.raw(section):
        c.assumed[c.path + section] = (kind, part)


# Towers that a config may name freely: complete models without a merger.
STANDALONE_TOWERS = (
    *("clip_vision_model", "idefics3_vision", "internvl_vision", "pixtral"),
    *("siglip2_vision_model", "siglip_vision_model", "smolvlm_vision"),
)


def vision_tower(c: Config, *, any_kind: bool = False) -> tuple[Block, Config]:
    """The tower in vision_config, and the view of that section.

    `any_kind`: the class builds whatever model_type the section names; otherwise always the declared one.
    """
    kind = c.section_schema("vision_config").kind
    if any_kind:
        kind = c.section_kind("vision_config")
        c.require(
            kind in STANDALONE_TOWERS,
            f"vision_config is a {kind}, which cannot be counted",
            f"known: {', '.join(STANDALONE_TOWERS)}",
        )
    return tower_in(c, "vision_config", kind=kind)
