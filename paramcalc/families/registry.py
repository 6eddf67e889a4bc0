"""The registry of families: the names of a `model_type`, its reference class, its recipe and its schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from paramcalc.base.errors import UnknownFamilyError, nearest
from paramcalc.config.schema import ConfigSchema
from paramcalc.config.view import Config
from paramcalc.families.schemas import config_schema, schema_entry
from paramcalc.tree.component import Component

Recipe = Callable[[Config], Component]
R = TypeVar("R", bound=Recipe)
COMMON_FIELDS = {"vocab_size": None, "tie_word_embeddings": False}  # fields of every family's class

_registered: dict[str, Registered] = {}  # filled by @family when a module of recipes is imported


class Family(NamedTuple):
    """One `model_type`: its reference class, its recipe, and the schema of its config."""

    name: str
    main_class: str  # the class that is counted if `architectures` is absent
    recipe: Recipe
    schema: ConfigSchema

    @property
    def class_prefix(self) -> str:
        """`Llama` of `LlamaForCausalLM`."""
        return split_class(self.main_class)[0]

    @property
    def class_prefixes(self) -> set[str]:
        """The prefixes that a class of this family may have, in lower case without separators.

        The name of the family is one of them: EXAONE's files name ExaoneForCausalLM, transformers LlamaForCausalLM.
        """
        prefix, own = normalised(self.class_prefix), normalised(self.name)
        return {prefix, f"{prefix}text", prefix.removesuffix("text"), own}

    @property
    def summary(self) -> str:
        """The first line of the docstring: the kind of model."""
        return (self.recipe.__doc__ or "").strip().splitlines()[0]


def normalised(name: str) -> str:
    """A name in lower case without separators: Ernie4_5_VL_Moe and Ernie4_5_VLMoe are equal."""
    return name.lower().replace("-", "").replace("_", "")


class Registered(NamedTuple):
    """A recipe under one of its names, with the facts of that name."""

    recipe: Recipe
    facts: Mapping[str, Any]


def family(*names: str, **facts: Any) -> Callable[[R], R]:
    """Register a recipe under one `model_type` or several; their schemas are in `schemas/`.

    `facts` distinguish these families from others with the same recipe, which reads them like fields.
    """

    def register(recipe: R) -> R:
        for name in names:
            if name in _registered:
                raise ValueError(f"family {name!r} is registered twice")
            _registered[name] = Registered(recipe, facts)
        return recipe

    return register


# Heads: the class named in `architectures` ends in one of these.
HEAD_ENDINGS = {
    "ForCausalLM": "lm",
    "WithLMHeadModel": "lm",
    "ModelWithLMHead": "lm",
    "LMHeadModel": "lm",
    "ForConditionalGeneration": "seq2seq_lm",
    "ForMaskedLM": "masked_lm",
    "ForPreTraining": "pretraining",
    "ForNextSentencePrediction": "next_sentence",
    "ForSequenceClassification": "sequence_classification",
    "ForMultipleChoice": "multiple_choice",
    "ForTokenClassification": "token_classification",
    "ForQuestionAnswering": "question_answering",
    "ForQuestionAnsweringSimple": "question_answering_simple",
    "ForEntityClassification": "entity_classification",
    "ForEntityPairClassification": "entity_pair_classification",
    "ForEntitySpanClassification": "entity_span_classification",
    "ForRetrieval": "retrieval",
    "ForAudioClassification": "audio_classification",
    "ForTextToText": "seq2seq_lm",
    "ForVisionText2Text": "seq2seq_lm",
    "ForProteinText2Text": "seq2seq_lm",
    "ForBlockDiffusion": "seq2seq_lm",
    "ForSpeechToText": "speech_to_text",
    "ForTextToSpeech": "text_to_speech",
    "ForSpeechToSpeech": "speech_to_speech",
    "GenerationDecoder": "lm",
    "GenerationEncoder": "none",
    "EncoderModel": "encoder",
    "BaseModel": "base",
    "DoubleHeadsModel": "double_heads",
    "TextModel": "none",
    "Model": "none",
}
# Classes whose ending does not name their head.
IRREGULAR_CLASSES = {
    "BailingMoeV2ForCausalLM": ("BailingMoe", "lm"),
    **dict.fromkeys(("DPRContextEncoder", "DPRQuestionEncoder"), ("DPR", "none")),
    "DPRReader": ("DPR", "question_answering"),
    "MarianMTModel": ("Marian", "seq2seq_lm"),
    "T5WithLMHeadModel": ("T5", "seq2seq_lm"),  # its name before transformers 2.9, still in files
    "ShieldGemma2ForImageClassification": ("ShieldGemma2", "seq2seq_lm"),  # by the tokens that it generates
    "ProphetNetEncoder": ("ProphetNet", "encoder"),
    "ProphetNetDecoder": ("ProphetNet", "decoder"),
    "Pix2StructTextModel": ("Pix2Struct", "lm"),
    "NemotronH_Omni_Reasoning_V3": ("NemotronH_Omni", "seq2seq_lm"),
}


# Families of classes whose files name the model_type of another family: grok-2's say git.
FAMILY_BY_CLASS = {"Grok1ForCausalLM": "grok-2"}


def split_class(architecture: str) -> tuple[str, str | None]:
    """`LlamaForCausalLM` as ("Llama", "lm"); the head is None if the ending is unknown."""
    if architecture in IRREGULAR_CLASSES:
        return IRREGULAR_CLASSES[architecture]
    for suffix, head in HEAD_ENDINGS.items():
        if architecture.endswith(suffix):
            return architecture.removesuffix(suffix), head
    return architecture, None


# -- looking up --------------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """The facts of a family that are known before its module is imported."""

    module: str
    main_class: str
    goldens: int  # configs whose counts by the reference are tests
    by: str  # the source of these goldens
    mixers: str = ""  # the kinds of attention and recurrence in its layers


@cache
def index() -> dict[str, Entry]:
    """Every family, sorted. Written by tests/tools/index.py from the recipes and the goldens.

    The index lets one count import a single module of recipes.
    """
    entries = json.loads(Path(__file__).with_name("index.json").read_text(encoding="utf-8"))
    return {name: Entry(**entry) for name, entry in entries.items()}


def get_family(name: str) -> Family:
    """The family of that name. Raises UnknownFamilyError with the nearest names."""
    if name not in _registered and name not in index():
        name = {known.lower(): known for known in index()}.get(str(name).lower(), name)
    if name not in _registered:
        if name not in index():
            hint = nearest(str(name), index(), fallback=f"`paramcalc families` lists all {len(index())}")
            raise UnknownFamilyError(f"unknown family {name!r}", hint)
        import_module(f"paramcalc.families.{index()[name].module}")
    if name not in _registered:
        raise UnknownFamilyError(f"{name} describes models of its own and cannot stand for another family")
    return _family(name)


@cache
def _family(name: str) -> Family:
    recipe, facts = _registered[name]
    entry = schema_entry(recipe.__module__, name)
    read = config_schema(entry)
    read = read._replace(defaults={**COMMON_FIELDS, **read.defaults}, fixed={**read.fixed, **facts})
    return Family(name, entry["class"], recipe, read)


def registered() -> Mapping[str, Family]:
    """The families of all imported modules."""
    return {name: _family(name) for name in _registered}


@cache
def _classes() -> dict[str, list[str]]:
    """The classes of transformers for each family; written by tests/goldens/classes.py."""
    return dict(json.loads(Path(__file__).with_name("classes.json").read_text(encoding="utf-8")))


def class_exists(name: str, architecture: str) -> bool:
    """True if the reference has such a class for a family, in any case (checkpoints write MPT, transformers Mpt).

    Families that exist only on the Hub have classes of their own, which no list names.
    """
    known = _classes().get(name)
    return (
        known is None
        or architecture in IRREGULAR_CLASSES
        or architecture.lower() in {known_class.lower() for known_class in known}
    )


def class_owners(architecture: str) -> list[str]:
    """The families that have this class; the one that bears its name comes first."""
    owners = [
        name
        for name, entry in index().items()
        if entry.main_class == architecture or architecture in _classes().get(name, ())
    ]
    return sorted(owners, key=lambda name: normalised(name) != normalised(split_class(architecture)[0]))


@cache
def _refused() -> dict[str, str]:
    """Types of transformers without a recipe, with the reason."""
    return dict(json.loads(Path(__file__).with_name("refused.json").read_text(encoding="utf-8")))


def find_family(model_type: str | None, architecture: str | None, origin: str) -> Family:
    """The family of a `model_type`, or of the class in `architectures` if the type is unknown.

    Raises UnknownFamilyError, with the nearest names as a hint.
    """
    if architecture in FAMILY_BY_CLASS:
        return get_family(FAMILY_BY_CLASS[architecture])
    if model_type in index():
        return get_family(model_type)
    if architecture:
        prefix, head = split_class(architecture)
        # Several types may share a class; the type with the name of the class comes first.
        ranked = sorted(
            index().items(),
            key=lambda item: (item[1].main_class != architecture, item[0].replace("_", "") != prefix.lower()),
        )
        for name, entry in ranked:
            if head and split_class(entry.main_class)[0] == prefix:
                return get_family(name)
    if model_type is None:
        raise UnknownFamilyError(
            f"no model_type in {origin}",
            "is it a model's config.json? state it (--set model_type=bert), or transformer for a decoder of your own",
        )
    if reason := _refused().get(model_type):
        raise UnknownFamilyError(
            f"{model_type} in {origin} cannot be counted: {reason}", "--as-family NAME counts it as one that can"
        )
    close = nearest(model_type, index(), fallback=f"`paramcalc families` lists all {len(index())};")
    hint = f"{close} --as-family NAME counts it as a known one"
    raise UnknownFamilyError(f"unknown model_type {model_type!r} in {origin}", hint)
