"""Which category a parameter belongs to, decided from the modules that hold it.

A parameter that no rule knows is an error, never a guess: a new family either fits the rules or
gets one. README.md beside this file defines the categories.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import nn

VISION_CATEGORIES = ("vision", "projector")


class Link(NamedTuple):
    """One step of a parameter's path: what `holder` keeps as `attribute`."""

    holder: nn.Module
    attribute: str

    @property
    def class_name(self) -> str:
        """The class of the holding module."""
        return type(self.holder).__name__


Test = Callable[[Link], bool]


def held_by(pattern: str) -> Test:
    """True if the class name of the holder matches."""
    return lambda link: re.search(pattern, link.class_name) is not None


def called(*attributes: str) -> Test:
    """True if the holder keeps it under one of these names."""
    return lambda link: link.attribute in attributes


def part(pattern: str, *attributes: str) -> Test:
    """True if a holder of that class keeps it under one of these names."""
    return lambda link: held_by(pattern)(link) and called(*attributes)(link)


def in_table(link: Link) -> bool:
    """True if the holder is an embedding table."""
    return isinstance(link.holder, nn.Embedding)


RULES: tuple[tuple[str, tuple[Test, ...]], ...] = (
    ("vision", (called("vision_tower"),)),
    ("projector", (called("multi_modal_projector"),)),
    ("norm", (held_by(r"Norm"),)),
    ("shared_experts", (called("shared_expert", "shared_experts", "shared_expert_gate"),)),
    ("router", (held_by(r"Top[kK]Router$"),)),
    ("experts", (held_by(r"Experts$"),)),
    ("recurrent", (held_by(r"Mamba2?Mixer$"),)),
    ("attention", (held_by(r"Attention$"),)),
    (
        "ffn",
        (
            held_by(r"(MLP|^FFN|Dense(Gated)?ActDense)$"),
            held_by(r"^(Bert|Roberta)(Intermediate|Output)$"),
            part(r"^(OPTDecoder|BartEncoder|BartDecoder)Layer$", "fc1", "fc2"),
            part(r"^AlbertLayer$", "ffn", "ffn_output"),
        ),
    ),
    (
        "embedding",
        (
            in_table,
            part(r"^OPTDecoder$", "project_in"),
            part(r"^AlbertTransformer$", "embedding_hidden_mapping_in"),
        ),
    ),
    (
        "head",
        (
            called("lm_head", "score", "classifier", "qa_outputs", "classification_head"),
            part(r"Model$", "pooler"),
            part(r"^OPTDecoder$", "project_out"),
            part(r"^(Bert|Albert)(For|LMHead)", "cls", "predictions", "sop_classifier"),
            part(r"^DistilBertFor", "vocab_transform", "vocab_projector", "pre_classifier"),
        ),
    ),
)
"""In order of precedence: the first rule that any link of the path satisfies decides."""


def category(path: Sequence[Link]) -> str:
    """The category of the parameter at the end of this path.

    Raises:
        LookupError: if no rule fits.
    """
    for name, tests in RULES:
        if any(test(link) for link in path for test in tests):
            return name
    where = " > ".join(f"{link.class_name}.{link.attribute}" for link in path)
    raise LookupError(f"no category for {where}: add a rule to classify.py")
