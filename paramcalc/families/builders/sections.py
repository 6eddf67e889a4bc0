"""Complete models in sections of a config, built by the recipes of their own families."""

from __future__ import annotations

from typing import Any

from paramcalc.config.view import Config
from paramcalc.families.registry import get_family
from paramcalc.tree.component import Component


def section_model(c: Config, section: str, head: str, **fixed: Any) -> tuple[Component, Config]:
    """The model in a section of the config, with its own head; the declared kind if there is no section.

    `fixed` are fields that the outer config decides, whatever the section says.
    """
    ours = c.section_schema(section)
    stated = c.section_kind(section)
    one = get_family(stated)
    reading = one.schema._replace(fixed={**one.schema.fixed, **fixed})
    if not c.has(section):
        defaults, sections = {**reading.defaults, **ours.defaults}, {**reading.sections, **ours.sections}
        reading = reading._replace(defaults=defaults, sections=sections)
    view = c.section(section, reading, family=stated, head=head)
    return one.recipe(view), view


def section_language_model(c: Config, section: str, model_type: str, **fixed: Any) -> Component:
    """The language model of a nested config, built by the recipe of its family.

    `fixed` are fields that the outer config decides, most often whether the head is tied.
    """
    text = get_family(model_type)
    reading = text.schema._replace(fixed={**text.schema.fixed, **fixed})
    return text.recipe(c.section(section, reading, family=model_type))
