"""Vision-language models: a vision tower, a projector and a language model, each with its section of the config.

Each tree has these three parts: `vision_tower`, `projector` and `language_model`, the last with its head.
"""

from __future__ import annotations

from collections.abc import Callable

from paramcalc.config.view import Config
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.towers import require_model_type, vision_tower
from paramcalc.families.registry import get_family, split_class
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Stack, block
from paramcalc.tree.language import LanguageModel
from paramcalc.tree.leaves import Linear
from paramcalc.tree.weights import by_vocabulary

Projector = Callable[[Config, int], Component | None]  # from a tower's view and the language model's width


def assemble_multimodal(text: Component, **towers: Component | None) -> Component:
    """Towers and projectors in data-flow order, then the language model; the language model alone if there are none."""
    if not any(towers.values()):
        return text
    why = text.inexact if isinstance(text, Block) else ""
    return block(**towers, language_model=LanguageModel(items=dict(text.parts()), inexact=why))


def with_stack_role(model: Component, role: str) -> Component:
    """The model with its stack of layers under another role in the report."""
    if not isinstance(model, Block):
        return model
    items = {name: part.replace(role=role) if isinstance(part, Stack) else part for name, part in model.items.items()}
    return model.replace(items=items)


def only_text(c: Config, *towers: str) -> None:
    """Mark a count that omits the towers of these sections."""
    for tower in towers:
        c.raw(tower)
    if not c.root.text_only:
        c.doubts.append(f"{c.family}: the language model is counted; towers and projectors are not")


def text_alone(c: Config) -> bool:
    """True if the class named in the file is that of the language model alone."""
    return c.head == "lm" or "TextModel" in c.architecture or "TextFor" in c.architecture


def vision_language_model(c: Config, projector: Projector, *, any_tower: bool = False, flat: bool = False) -> Component:
    """A language model of one kind, a tower, and the projector of the class.

    `flat`: if there is no section for the language model, its fields are at the top. `c.ties` says whose
    tie_word_embeddings ties the head.
    """
    if text_alone(c):
        return section_alone(c, "vision_config")
    vision, v = vision_tower(c, any_kind=any_tower)
    language, d = own_language_model(c, flat=flat)
    return assemble_multimodal(language, vision_tower=vision, projector=projector(v, d))


def section_alone(c: Config, *towers: str) -> Component:
    """The model that the language model's own class builds from the whole file: it reads text_config only."""
    kind = c.section_schema("text_config").kind
    text = get_family(kind)
    require_model_type(c, "text_config", kind)
    if c.head == "lm" and split_class(text.main_class)[1] != "lm":
        raise unknown_head(c)
    for tower in towers:
        c.raw(tower)
    return text.recipe(c.section("text_config", text.schema, family=kind))


def own_language_model(c: Config, *, flat: bool = False) -> tuple[Component, int]:
    """The language model of the declared kind with its head, and its width; see `vision_language_model`."""
    kind = c.section_schema("text_config").kind
    text = get_family(kind)
    require_model_type(c, "text_config", kind)
    section = c.section("text_config", text.schema, family=kind)
    if c.ties != "section":
        reading = text.schema._replace(fixed={**text.schema.fixed, "tie_word_embeddings": head_is_tied(c, section)})
        section = c.section("text_config", reading, family=kind)
    view = c if flat and c.raw("text_config") is None else section
    return text.recipe(view), view.hidden_size


def head_is_tied(c: Config, section: Config) -> bool:
    """True if the head is tied: by the outer config, in some classes by the section, or by either.

    `first`: by the section if the outer config is silent, as in all classes of transformers 4. A file of transformers 4
    that leaves the tie to its section differs from what the class builds today, unless it loads two matrices.
    """
    if c.ties == "section" or (c.ties == "first" and c.raw("tie_word_embeddings") is None):
        return bool(section.tie_word_embeddings)
    together = bool(c.tie_word_embeddings or (c.ties == "either" and section.tie_word_embeddings))
    return together and not was_untied_in_v4(c, section)


def was_untied_in_v4(c: Config, section: Config) -> bool:
    """True, with a doubt, if the class ties a head now that was a separate matrix when the file was written."""
    has_head = c.head in ("lm", "seq2seq_lm") and section.fields
    if not has_head or not written_by_v4(c) or getattr(section, "tie_word_embeddings", True):
        return False
    c.doubts.append(
        f"{c.family}: only text_config leaves the head untied; it is counted as a matrix of its own, as in "
        "transformers 4, which wrote the file, and in its checkpoints; transformers 5 ties it until it loads one"
    )
    return True


def written_by_v4(c: Config) -> bool:
    """True if transformers 4 wrote the file (by its version or torch_dtype) and the outer config states no ties."""
    version = c.root.raw("transformers_version")
    before = version.startswith("4.") if isinstance(version, str) else c.root.has("torch_dtype")
    return before and c.raw("tie_word_embeddings") is None


def own_text(c: Config) -> Config:
    """The fields of a language model without a family of its own; see `head_is_tied`."""
    reading = c.section_schema("text_config")
    fixed = {**reading.fixed, "tie_word_embeddings": head_is_tied(c, c.section("text_config"))}
    return c.section("text_config", reading._replace(fixed=fixed))


def wrap_any_language_model(c: Config, projector: Projector, *, any_tower: bool = True) -> Component:
    """Any language model, a tower (any, or only the declared kind), and the projector of the class.

    The head belongs to the wrapper, whatever head the language model has on its own.
    """
    if "TextModel" in c.architecture or "TextFor" in c.architecture:
        return section_alone(c, "vision_config")
    vision, v = vision_tower(c, any_kind=any_tower)
    language, d = any_language_model(c)
    return assemble_multimodal(language, vision_tower=vision, projector=projector(v, d))


def any_language_model(c: Config) -> tuple[Block, int]:
    """The language model of text_config under the wrapper's head, and its width; of any kind if the section is free."""
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    text = c.section_schema("text_config")
    stated = c.section_kind("text_config")
    kind = text.spellings.get(stated, stated) if text.free else text.kind
    recipe, reading = get_family(kind).recipe, get_family(kind).schema
    plain = "hidden_size" in reading.defaults and "ties" not in reading.fixed
    c.require(plain, f"text_config is a {kind}, which is not a plain language model")
    if c.raw("text_config") is None:
        reading = reading._replace(defaults={**reading.defaults, **text.defaults})
    reading = reading._replace(unused=[*reading.unused, *text.unused])
    view = c.section("text_config", reading, family=kind, head="none")
    parts = dict(recipe(view).parts())
    if c.head == "seq2seq_lm":
        owner, rows = "embed_tokens" if head_is_tied(c, view) else None, view.required("vocab_size")
        parts["lm_head"] = Linear(
            d_in=view.hidden_size, d_out=rows, category="head", tied_to=owner, split=by_vocabulary(rows)
        )
    return block(**parts), view.hidden_size
