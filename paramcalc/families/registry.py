"""The register of families: what a `model_type` is called, which class it mirrors, and how its config is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from paramcalc.config import Config
from paramcalc.errors import UnknownFamilyError, nearest
from paramcalc.spec import Component

Recipe = Callable[[Config], Component]
R = TypeVar("R", bound=Recipe)

FAMILIES: dict[str, Family] = {}


class Family(NamedTuple):
    """One `model_type`: its reference class, its recipe, and how its config differs from the canonical names."""

    name: str
    main_class: str  # the class meant when `architectures` is absent
    recipe: Recipe
    names: Mapping[str, str]
    defaults: Mapping[str, Any]
    fixed: Mapping[str, Any]
    nullable: Collection[str]
    unused: Collection[str]  # keys of its class that change no shape of this family

    @property
    def class_prefix(self) -> str:
        """`Llama` of `LlamaForCausalLM`."""
        return split_class(self.main_class)[0]

    def view(self, fields: Mapping[str, Any], *, origin: str, architecture: str, head: str) -> Config:
        """The config as this family's recipe may see it."""
        return Config(
            fields,
            family=self.name,
            origin=origin,
            names=self.names,
            defaults=self.defaults,
            fixed=self.fixed,
            nullable=self.nullable,
            architecture=architecture,
            head=head,
        )

    @property
    def class_prefixes(self) -> set[str]:
        """The prefixes a class of this family may have, in lower case (checkpoints write MPT, transformers Mpt)."""
        prefix = self.class_prefix.lower()
        return {prefix, f"{prefix}text"}

    @property
    def summary(self) -> str:
        """The docstring's first line: what kind of model it is."""
        return (self.recipe.__doc__ or "").strip().splitlines()[0]


def family(
    name: str,
    main_class: str,
    *,
    defaults: Mapping[str, Any],
    names: Mapping[str, str] | None = None,
    fixed: Mapping[str, Any] | None = None,
    nullable: Collection[str] = (),
    unused: Collection[str] = (),
) -> Callable[[R], R]:
    """Register a recipe under a `model_type`; stack one decorator per name for families that share a recipe."""

    def register(recipe: R) -> R:
        if name in FAMILIES:
            raise ValueError(f"family {name!r} is registered twice")
        FAMILIES[name] = Family(
            name,
            main_class,
            recipe,
            names or {},
            {"vocab_size": None, "tie_word_embeddings": False, **defaults},
            fixed or {},
            frozenset(nullable),
            frozenset(unused),
        )
        return recipe

    return register


# Heads: the class named in `architectures` ends in one of these.
HEADS = {
    "ForCausalLM": "lm",
    "LMHeadModel": "lm",
    "ForConditionalGeneration": "seq2seq_lm",
    "ForMaskedLM": "masked_lm",
    "ForPreTraining": "pretraining",
    "ForNextSentencePrediction": "next_sentence",
    "ForSequenceClassification": "sequence_classification",
    "ForMultipleChoice": "multiple_choice",
    "ForTokenClassification": "token_classification",
    "ForQuestionAnswering": "question_answering",
    "EncoderModel": "encoder",
    "DoubleHeadsModel": "double_heads",
    "TextModel": "none",
    "Model": "none",
}


def split_class(architecture: str) -> tuple[str, str | None]:
    """`LlamaForCausalLM` as ("Llama", "lm"); the head is None when the ending is unknown."""
    for suffix, head in HEADS.items():
        if architecture.endswith(suffix):
            return architecture.removesuffix(suffix), head
    return architecture, None


def find(model_type: str | None, architecture: str | None, origin: str) -> Family:
    """The family of a `model_type`, or of the class in `architectures` where the type is not known.

    Raises UnknownFamilyError, with the nearest names as a hint.
    """
    known = FAMILIES.get(model_type or "")
    if known:
        return known
    if architecture:
        prefix, head = split_class(architecture)
        ranked = sorted(FAMILIES.values(), key=lambda candidate: candidate.main_class != architecture)
        for candidate in ranked:
            if head and candidate.class_prefix == prefix:
                return candidate
    if model_type is None:
        raise UnknownFamilyError(
            f"no model_type in {origin}",
            "a model's config.json says what it is: model_type: llama, or --as-family llama",
        )
    raise UnknownFamilyError(
        f"unknown model_type {model_type!r} in {origin}",
        nearest(
            model_type,
            FAMILIES,
            fallback=f"`paramcalc families` lists all {len(FAMILIES)}; --as-family NAME counts it as one of them",
        ),
    )
