"""The fold: from a component tree to floating-point operations. No family names, no branch on a component's type.

A multiplication and an addition are two operations, as torch's flop counter has it; what is elementwise (norms,
activations, softmax, rotations, lookups) is not counted, there and here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from paramcalc.base.errors import ParamcalcError
from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.compute.rules_of_thumb import training_rules
from paramcalc.compute.workload import workload
from paramcalc.counting.count import model_info
from paramcalc.model import Model
from paramcalc.tree.component import Component
from paramcalc.tree.containers import stacks
from paramcalc.tree.language import fixed_source_tokens, language_model
from paramcalc.tree.ops import TERM_KINDS, FlopTerm
from paramcalc.tree.weights import CATEGORIES, TOWER_CATEGORIES
from paramcalc.tree.workload import Workload

if TYPE_CHECKING:
    from paramcalc.reports.flops import FlopsReport
    from paramcalc.reports.shapes.base import Status
    from paramcalc.reports.shapes.flops import FlopsReportDict, SettingInfoDict, TermDict, WorkDict

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
    asked = workload(tokens=tokens, batch=batch, context=context, causal=causal, source=source, counting=counting)
    return FlopsReport.model_validate(flops_figures(model, asked))


def flops_figures(model: Model, asked: Workload) -> FlopsReportDict:
    """The same as plain data: the keys and the order of `FlopsReport`."""
    asked = workload_for(model.tree, asked)
    found = list(term_figures(language_model(model.tree), asked))
    forward, tokens = flops_by_kind(found), asked.tokens * asked.batch
    by_category = {c: flops_by_kind(one for one in found if one["category"] == c) for c in CATEGORIES}
    total = forward["total"]
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": model_info(model),
        "status": flops_status(model),
        "warnings": list(model.warnings),
        "notes": [*model.context_notes(asked.context), *flops_notes(model.tree, asked)],
        "assumptions": workload_info(asked),
        "forward": forward,
        "per_token": each_kind(forward, lambda value: value // tokens),
        "backward": each_kind(forward, lambda value: BACKWARD * value),
        "training": {"total": (1 + BACKWARD) * total, "with_recomputation": (2 + BACKWARD) * total},
        "components": {category: share for category, share in by_category.items() if share["total"]},
        "terms": found,
        "rules": training_rules(model, asked, unmasked_attention_flops(language_model(model.tree), asked)),
    }


def term_figures(tree: Component, asked: Workload) -> Iterator[TermDict]:
    """Every matrix term that is done at all, with what it takes for the whole batch in all its layers."""
    works = list(tree.ops())
    for work, total in zip(works, term_flops(works, asked), strict=True):
        if total:
            yield {
                "name": work.name,
                "category": work.category,
                "term": work.term,
                "copies": int(work.copies),
                "flops": total,
            }


def term_flops(works: Iterable[FlopTerm], asked: Workload) -> Iterator[int]:
    """What each matrix term takes for the whole batch in all its layers."""
    return (
        0 if work.category in TOWER_CATEGORIES else int(work.flops) * int(work.copies) * work.times(asked)
        for work in works
    )


def unmasked_attention_flops(tree: Component, asked: Workload) -> int:
    """What attention takes where every token sees all of the context: no mask, no window."""
    works = [work for work in tree.ops() if work.term == "attention"]
    return sum(term_flops(works, asked.replace(causal=False, counting="reference")))


def flops_by_kind(found: Iterable[TermDict]) -> WorkDict:
    """FLOPs in all, and by kind of term."""
    by_term: dict[str, int] = dict.fromkeys(TERM_KINDS, 0)
    for one in found:
        by_term[one["term"]] += one["flops"]
    return {
        "total": sum(by_term.values()),
        "matmul": by_term["matmul"],
        "attention": by_term["attention"],
        "convolution": by_term["convolution"],
        "recurrence": by_term["recurrence"],
    }


def each_kind(work: WorkDict, change: Callable[[int], int]) -> WorkDict:
    """The same function applied to the total and to each kind."""
    return {
        "total": change(work["total"]),
        "matmul": change(work["matmul"]),
        "attention": change(work["attention"]),
        "convolution": change(work["convolution"]),
        "recurrence": change(work["recurrence"]),
    }


def workload_info(asked: Workload) -> SettingInfoDict:
    """`assumptions` of the report."""
    return {
        "tokens": asked.tokens,
        "context": asked.context,
        "source": asked.source,
        "batch": asked.batch,
        "causal": asked.causal,
        "counting": asked.counting,
    }


def workload_for(tree: Component, asked: Workload) -> Workload:
    """The setting for this model: without a decoder, the encoder reads the tokens themselves, and has no past."""
    text = language_model(tree)
    asked = asked.replace(source=asked.source or next(fixed_source_tokens(text), asked.context))
    roles = {"decoder" if stack.causal else stack.role for stack in stacks(text)}
    if "decoder" in roles or "encoder" not in roles:
        return asked
    if asked.past:
        raise ParamcalcError(
            "an encoder keeps no past: it reads all of the context at once", "leave out the context, or the tokens"
        )
    return asked.replace(alone=True)


def flops_status(model: Model) -> Status:
    """Whether the figures are those of the reference: of an exact model whose layers' work is told exactly."""
    told = not inexact_reasons(language_model(model.tree))
    return "exact" if told and model.status == "exact" else "approximate"


def inexact_reasons(tree: Component) -> list[str]:
    """Why some of its work is not quite what the reference multiplies, each reason once."""
    return list(dict.fromkeys(work.inexact for work in tree.ops() if work.inexact))


def flops_notes(tree: Component, asked: Workload) -> Iterator[str]:
    """What a reader of the figures must know."""
    text = language_model(tree)
    works = list(text.ops())
    if text is not tree or any(not work.per.for_tokens or work.category in TOWER_CATEGORIES for work in works):
        yield "towers and projectors are left out: they run for images and sounds, not for tokens"
    yield from inexact_reasons(text)
    limits = {int(w.size) for w in works if w.limit.masks and w.per.in_pairs and w.size < asked.context}
    limits |= {int(w.max_keys) for w in works if w.max_keys is not None and w.max_keys < asked.context // int(w.size)}
    if limits and asked.limited:
        sizes = ", ".join(f"{size:,}" for size in sorted(limits))
        yield f"windows limit attention to {sizes} tokens; eager attention multiplies all pairs (counting: reference)"
    notes = (work.per.note(asked) for work in works if work.per.note is not None)
    yield from dict.fromkeys(note for note in notes if note)
