"""Language models that see: a vision tower, a projector and a language model, each with its section of the config.

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
    """Towers and projectors, in the order of the data, then the language model; which is all where there are none."""
    if not any(towers.values()):
        return text
    why = text.inexact if isinstance(text, Block) else ""
    return block(**towers, language_model=LanguageModel(items=dict(text.parts()), inexact=why))


def with_stack_role(model: Component, role: str) -> Component:
    """The model with its stack of layers under another name in the report."""
    if not isinstance(model, Block):
        return model
    items = {name: part.replace(role=role) if isinstance(part, Stack) else part for name, part in model.items.items()}
    return model.replace(items=items)


def only_text(c: Config, *towers: str) -> None:
    """Mark a count that leaves out the towers described in these sections."""
    for tower in towers:
        c.raw(tower)
    if not c.root.text_only:
        c.doubts.append(f"{c.family}: the language model is counted; towers and projectors are not")


def text_alone(c: Config) -> bool:
    """Whether the class named in the file is that of the language model alone."""
    return c.head == "lm" or "TextModel" in c.architecture or "TextFor" in c.architecture


def vision_language_model(c: Config, projector: Projector, *, any_tower: bool = False, flat: bool = False) -> Component:
    """A language model of one kind, a tower, and what the class puts between them.

    `flat`: where there is no section for the language model, its fields stand at the top. `c.ties` says whose
    tie_word_embeddings ties the head.
    """
    if text_alone(c):
        return section_alone(c, "vision_config")
    seen, v = vision_tower(c, any_kind=any_tower)
    language, d = own_language_model(c, flat=flat)
    return assemble_multimodal(language, vision_tower=seen, projector=projector(v, d))


def section_alone(c: Config, *towers: str) -> Component:
    """What the class of the language model makes of a whole file: it reads text_config, whatever the whole says."""
    kind = c.section_schema("text_config").kind
    text = get_family(kind)
    require_model_type(c, "text_config", kind)
    if c.head == "lm" and split_class(text.main_class)[1] != "lm":
        raise unknown_head(c)
    for tower in towers:
        c.raw(tower)
    return text.recipe(c.section("text_config", text.schema, family=kind))


def own_language_model(c: Config, *, flat: bool = False) -> tuple[Component, int]:
    """The language model of the one kind that is counted, with its head, and its width; see `vision_language_model`."""
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
    """Whether the head is the embedding: the whole file says so, in some classes the section, or either of the two.

    `first`: the section does where the whole file says nothing, as in all classes of transformers 4. What a file of
    theirs leaves to its section is not what the class builds today, unless a checkpoint with two matrices is at hand.
    """
    if c.ties == "section" or (c.ties == "first" and c.raw("tie_word_embeddings") is None):
        return bool(section.tie_word_embeddings)
    together = bool(c.tie_word_embeddings or (c.ties == "either" and section.tie_word_embeddings))
    return together and not was_untied_in_v4(c, section)


def was_untied_in_v4(c: Config, section: Config) -> bool:
    """Whether a head that the class ties now was a matrix of its own when the file was written; then it is a doubt."""
    has_head = c.head in ("lm", "seq2seq_lm") and section.fields
    if not has_head or not written_by_v4(c) or getattr(section, "tie_word_embeddings", True):
        return False
    c.doubts.append(
        f"{c.family}: only text_config leaves the head untied; it is counted as a matrix of its own, as in "
        "transformers 4, which wrote the file, and in its checkpoints; transformers 5 ties it until it loads one"
    )
    return True


def written_by_v4(c: Config) -> bool:
    """Whether transformers 4 wrote the file, by its version or torch_dtype, and its top says nothing of ties."""
    version = c.root.raw("transformers_version")
    before = version.startswith("4.") if isinstance(version, str) else c.root.has("torch_dtype")
    return before and c.raw("tie_word_embeddings") is None


def own_text(c: Config) -> Config:
    """The fields of a language model that has no family of its own; see `head_is_tied`."""
    reading = c.section_schema("text_config")
    fixed = {**reading.fixed, "tie_word_embeddings": head_is_tied(c, c.section("text_config"))}
    return c.section("text_config", reading._replace(fixed=fixed))


def wrap_any_language_model(c: Config, projector: Projector, *, any_tower: bool = True) -> Component:
    """Any language model, a tower (any, or only that one), and what the class puts between them.

    The head is the wrapper's own, whatever head the language model has when it stands alone.
    """
    if "TextModel" in c.architecture or "TextFor" in c.architecture:
        return section_alone(c, "vision_config")
    seen, v = vision_tower(c, any_kind=any_tower)
    language, d = any_language_model(c)
    return assemble_multimodal(language, vision_tower=seen, projector=projector(v, d))


def any_language_model(c: Config) -> tuple[Block, int]:
    """The language model of text_config, of any kind where that is free, under the wrapper's head; and its width."""
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    text = c.section_schema("text_config")
    stated = c.section_kind("text_config")
    kind = text.spellings.get(stated, stated) if text.free else text.kind
    recipe, reading = get_family(kind).recipe, get_family(kind).schema
    plain = "hidden_size" in reading.defaults and "ties" not in reading.fixed
    c.require(plain, f"text_config is a {kind}, which is no plain language model")
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
