"""The fold: from a component tree to floating-point operations. No family names, no branch on a component's type.

A multiplication and an addition are two operations, as torch's flop counter has it; what is elementwise (norms,
activations, softmax, rotations, lookups) is not counted, there and here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from paramcalc.base.errors import ParamcalcError
from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.compute.rules_of_thumb import rules
from paramcalc.compute.workload import Setting, setting
from paramcalc.counting.count import Figures, describe
from paramcalc.footprint.positions import beyond
from paramcalc.model import Model
from paramcalc.tree.component import Component
from paramcalc.tree.containers import stacks
from paramcalc.tree.language import always_read, text_part
from paramcalc.tree.ops import TERMS, Work
from paramcalc.tree.weights import CATEGORIES

if TYPE_CHECKING:
    from paramcalc.reports.flops import FlopsReport

TOWERS = ("vision", "projector")  # what runs for images, not for tokens
BACKWARD = 2  # gradients for a product's two operands are a product each


def flops(
    model: Model,
    *,
    tokens: int,
    batch: int = 1,
    context: int | None = None,
    causal: bool = False,
    source: int | None = None,
    counting: str = "needed",
) -> FlopsReport:
    """What a model computes for `tokens` new tokens in each of `batch` sequences, forward and backward.

    `context`: all tokens of a sequence, the new ones and those whose keys and values are cached; `source`: tokens an
    encoder reads, as many as it always does (Whisper), or as the context. Attention counts the whole square unless
    `causal`. Windows limit it, unless `counting` is "reference", which counts what transformers' eager code multiplies.
    Raises ParamcalcError for what is not understood.
    """
    from paramcalc.reports.flops import FlopsReport

    if not isinstance(model, Model):
        raise ParamcalcError(f"flops wants a Model, not a {type(model).__name__}", "make one with paramcalc.load(...)")
    asked = setting(tokens=tokens, batch=batch, context=context, causal=causal, source=source, counting=counting)
    return FlopsReport.model_validate(figures(model, asked))


def figures(model: Model, asked: Setting) -> Figures:
    """The same as plain data: the keys and the order of `FlopsReport`."""
    asked = fitted(model.tree, asked)
    found = list(counted(text_part(model.tree), asked))
    forward, tokens = shares(found), asked.tokens * asked.batch
    by_category = {c: shares(one for one in found if one["category"] == c) for c in CATEGORIES}
    total = forward["total"]
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": describe(model),
        "status": status(model),
        "warnings": list(model.warnings),
        "notes": [*beyond(model, asked.context), *notes(model.tree, asked)],
        "assumptions": {name: value for name, value in asked.values().items() if name != "alone"},
        "forward": forward,
        "per_token": {name: value // tokens for name, value in forward.items()},
        "backward": {name: BACKWARD * value for name, value in forward.items()},
        "training": {"total": (1 + BACKWARD) * total, "with_recomputation": (2 + BACKWARD) * total},
        "components": {category: share for category, share in by_category.items() if share["total"]},
        "terms": found,
        "rules": rules(model, asked, square(text_part(model.tree), asked)),
    }


def counted(tree: Component, asked: Setting) -> Iterator[Figures]:
    """Every matrix term that is done at all, with what it takes for the whole batch in all its layers."""
    works = list(tree.work())
    for work, total in zip(works, operations(works, asked), strict=True):
        if total:
            yield {
                "name": work.name,
                "category": work.category,
                "term": work.term,
                "copies": int(work.copies),
                "flops": total,
            }


def operations(works: Iterable[Work], asked: Setting) -> Iterator[int]:
    """What each matrix term takes for the whole batch in all its layers."""
    return (0 if work.category in TOWERS else int(work.flops) * int(work.copies) * asked.times(work) for work in works)


def square(tree: Component, asked: Setting) -> int:
    """What attention takes where every token sees all of the context: no mask, no window."""
    works = [work for work in tree.work() if work.term == "attention"]
    return sum(operations(works, asked.but(causal=False, counting="reference")))


def shares(found: Iterable[Figures]) -> dict[str, int]:
    """The total, and what of it each kind of term takes."""
    by_term: dict[str, int] = dict.fromkeys(TERMS, 0)
    for one in found:
        by_term[one["term"]] += one["flops"]
    return {"total": sum(by_term.values()), **by_term}


def fitted(tree: Component, asked: Setting) -> Setting:
    """The setting for this model: without a decoder, the encoder reads the tokens themselves, and has no past."""
    text = text_part(tree)
    asked = asked.but(source=asked.source or next(always_read(text), asked.context))
    roles = {"decoder" if stack.causal else stack.role for stack in stacks(text)}
    if "decoder" in roles or "encoder" not in roles:
        return asked
    if asked.past:
        raise ParamcalcError(
            "an encoder keeps no past: it reads all of the context at once", "leave out the context, or the tokens"
        )
    return asked.but(alone=True)


def status(model: Model) -> str:
    """Whether the figures are those of the reference: of an exact model whose layers' work is told exactly."""
    told = not inexact(text_part(model.tree))
    return "exact" if told and model.status == "exact" else "approximate"


def inexact(tree: Component) -> list[str]:
    """Why some of its work is not quite what the reference multiplies, each reason once."""
    return list(dict.fromkeys(work.inexact for work in tree.work() if work.inexact))


def notes(tree: Component, asked: Setting) -> Iterator[str]:
    """What a reader of the figures must know."""
    text = text_part(tree)
    works = list(text.work())
    if text is not tree or any(work.per == "tower" or work.category in TOWERS for work in works):
        yield "towers and projectors are left out: they run for images and sounds, not for tokens"
    yield from inexact(text)
    limits = {int(w.size) for w in works if w.limit in ("window", "chunk") and w.size < asked.context and w.per in SEEN}
    limits |= {int(w.most) for w in works if w.most is not None and w.most < asked.context // int(w.size)}
    if limits and asked.limited:
        sizes = ", ".join(f"{size:,}" for size in sorted(limits))
        yield f"windows limit attention to {sizes} tokens; eager attention multiplies all pairs (counting: reference)"
    if asked.past and any(work.per in ("source", "read") for work in works):
        yield "the encoder ran before: its output's keys and values are cached"
    if any(work.per == "step" for work in works):
        how = "step by step" if asked.stepping else "in chunks, the last one filled up"
        yield f"recurrent layers are counted {how}"


SEEN = ("pair", "read pair")
