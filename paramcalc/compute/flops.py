"""The FLOPs fold over a component tree. It knows no families and no component types.

A multiply-add is 2 FLOPs, as in the FLOP counter of torch. Elementwise operations (norms, activations, softmax,
rotations) and lookups are not counted, as in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from paramcalc.base.errors import ParamcalcError
from paramcalc.base.version import SCHEMA_VERSION, __version__
from paramcalc.compute.rules_of_thumb import training_rules
from paramcalc.compute.workload import check_workload
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

BACKWARD = 2  # the gradient of each of the two operands of a product is one product


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
    """FLOPs of a model for `tokens` new tokens in each of `batch` sequences, forward and backward.

    `context` is the number of new and cached tokens of a sequence. `source` is the number of tokens that an encoder
    reads; the default is its fixed length (Whisper) or the context. Attention counts the full square unless `causal`.
    Sliding windows limit it unless `counting` is "reference", which counts every product of the eager code in
    transformers. Raises ParamcalcError for an invalid size or an unknown `counting`.
    """
    from paramcalc.reports.flops import FlopsReport

    if not isinstance(model, Model):
        raise ParamcalcError(f"flops wants a Model, not a {type(model).__name__}", "make one with paramcalc.load(...)")
    workload = check_workload(
        tokens=tokens, batch=batch, context=context, causal=causal, source=source, counting=counting
    )
    return FlopsReport.model_validate(flops_figures(model, workload))


def flops_figures(model: Model, workload: Workload) -> FlopsReportDict:
    """The FLOPs as a dict with the keys and the order of `FlopsReport`."""
    workload = workload_for(model.tree, workload)
    terms = list(term_figures(language_model(model.tree), workload))
    forward, tokens = flops_by_kind(terms), workload.tokens * workload.batch
    by_category = {c: flops_by_kind(term for term in terms if term["category"] == c) for c in CATEGORIES}
    total = forward["total"]
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "model": model_info(model),
        "status": flops_status(model),
        "warnings": list(model.warnings),
        "notes": [*model.context_notes(workload.context), *flops_notes(model.tree, workload)],
        "assumptions": workload_info(workload),
        "forward": forward,
        "per_token": each_kind(forward, lambda value: value // tokens),
        "backward": each_kind(forward, lambda value: BACKWARD * value),
        "training": {"total": (1 + BACKWARD) * total, "with_recomputation": (2 + BACKWARD) * total},
        "components": {category: share for category, share in by_category.items() if share["total"]},
        "terms": terms,
        "rules": training_rules(model, workload, unmasked_attention_flops(language_model(model.tree), workload)),
    }


def term_figures(tree: Component, workload: Workload) -> Iterator[TermDict]:
    """Every matrix term with FLOPs in this workload, for the whole batch and all of its layers."""
    terms = list(tree.ops())
    for term, total in zip(terms, term_flops(terms, workload), strict=True):
        if total:
            yield {
                "name": term.name,
                "category": term.category,
                "term": term.term,
                "copies": int(term.copies),
                "flops": total,
            }


def term_flops(terms: Iterable[FlopTerm], workload: Workload) -> Iterator[int]:
    """FLOPs of each matrix term for the whole batch and all of its layers; 0 in towers."""
    return (
        0 if term.category in TOWER_CATEGORIES else int(term.flops) * int(term.copies) * term.times(workload)
        for term in terms
    )


def unmasked_attention_flops(tree: Component, workload: Workload) -> int:
    """FLOPs of attention if every token attends to all of the context, without mask or window."""
    terms = [term for term in tree.ops() if term.term == "attention"]
    return sum(term_flops(terms, workload.replace(causal=False, counting="reference")))


def flops_by_kind(terms: Iterable[TermDict]) -> WorkDict:
    """Total FLOPs, and FLOPs by kind of term."""
    by_term: dict[str, int] = dict.fromkeys(TERM_KINDS, 0)
    for term in terms:
        by_term[term["term"]] += term["flops"]
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


def workload_info(workload: Workload) -> SettingInfoDict:
    """`assumptions` of the report."""
    return {
        "tokens": workload.tokens,
        "context": workload.context,
        "source": workload.source,
        "batch": workload.batch,
        "causal": workload.causal,
        "counting": workload.counting,
    }


def workload_for(tree: Component, workload: Workload) -> Workload:
    """The workload for this model, with `source` filled in. In an encoder-only model the encoder reads the tokens.

    Raises ParamcalcError for cached tokens in an encoder-only model.
    """
    text = language_model(tree)
    workload = workload.replace(source=workload.source or next(fixed_source_tokens(text), workload.context))
    roles = {"decoder" if stack.causal else stack.role for stack in stacks(text)}
    if "decoder" in roles or "encoder" not in roles:
        return workload
    if workload.past:
        raise ParamcalcError(
            "an encoder has no cache: it reads all of the context at once", "omit the context, or set it to the tokens"
        )
    return workload.replace(encoder_only=True)


def flops_status(model: Model) -> Status:
    """The status: "exact" if the model is exact and no term has an approximation reason."""
    exact = not inexact_reasons(language_model(model.tree))
    return "exact" if exact and model.status == "exact" else "approximate"


def inexact_reasons(tree: Component) -> list[str]:
    """The distinct reasons why FLOPs of a tree differ from the reference."""
    return list(dict.fromkeys(term.inexact for term in tree.ops() if term.inexact))


def flops_notes(tree: Component, workload: Workload) -> Iterator[str]:
    """Notes on the figures: excluded parts, approximations, windows, cached encoder output."""
    text = language_model(tree)
    terms = list(text.ops())
    if text is not tree or any(not term.per.for_tokens or term.category in TOWER_CATEGORIES for term in terms):
        yield "towers and projectors are not included: they run for images and audio, not for tokens"
    yield from inexact_reasons(text)
    limits = {
        int(term.size) for term in terms if term.limit.masks and term.per.in_pairs and term.size < workload.context
    }
    limits |= {
        int(term.max_keys)
        for term in terms
        if term.max_keys is not None and term.max_keys < workload.context // int(term.size)
    }
    if limits and workload.excludes_masked_pairs:
        sizes = ", ".join(f"{size:,}" for size in sorted(limits))
        yield f"windows limit attention to {sizes} tokens; eager attention computes all pairs (counting: reference)"
    notes = (term.per.note(workload) for term in terms if term.per.note is not None)
    yield from dict.fromkeys(note for note in notes if note)
