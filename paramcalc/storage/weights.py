"""Bytes of weights: the storage format of each tensor, and its size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from paramcalc.assumptions import Assumptions
from paramcalc.base.dtypes import DTYPES
from paramcalc.base.errors import ParamcalcError
from paramcalc.model import Model
from paramcalc.storage.formats.format import ALL_TENSORS, LAYER_MATRICES, ONLY_EXPERTS, Format, SideTensor, plain_format
from paramcalc.storage.formats.integers import exl2
from paramcalc.storage.formats.registry import format_named
from paramcalc.storage.gguf import GgufFile, GgufTensors, gguf_file, gguf_stage, is_gguf
from paramcalc.storage.quantization.linear_conversion import with_class_exceptions
from paramcalc.storage.quantization.placement import (
    PlacedTensor,
    QuantizationScheme,
    SchemeRule,
    place_tensors,
    quantization_scheme,
    unmatched_rule_warnings,
)
from paramcalc.storage.quantization.published_scales import with_published_scales
from paramcalc.tree.weights import CATEGORIES, Category, Weight

if TYPE_CHECKING:
    from paramcalc.reports.shapes.memory import FormatShareDict, WeightsPartDict


class StoredTensors(NamedTuple):
    """Equal tensors in one format."""

    format: str
    category: Category
    tensors: int
    parameters: int  # logical: elements of the unquantised tensors; 0 for buffers and for copies of counted tensors
    bytes: int
    weight: Weight  # one of the tensors
    records: int = 0  # bytes of their records, which only files have
    layout: Format | None = None  # the format of one of them; None in a GGUF file, whose types are blocks


class StoragePlan(NamedTuple):
    """Every tensor as it is stored, and the warnings."""

    stored: tuple[StoredTensors, ...]
    warnings: tuple[str, ...]
    estimate: bool  # the exact layout of a tensor is unknown


def stored_tensors(model: Model, assumed: Assumptions, *, whole: Model | None = None) -> Iterator[StoredTensors]:
    """Every tensor of the model, or of a pipeline stage of the `whole` model, as it is stored.

    A part in `dtype_of` that the stage does not have is not an error.
    """
    if assumed.dtype is not None and is_gguf(assumed.dtype):
        file = _gguf_file(whole or model, assumed).stored
        return iter(_stored_in_file(file if whole in (None, model) else gguf_stage(whole, model, assumed.dtype)))
    return iter(_store_tensors(model, assumed, whole or model)[0])


def storage_plan(model: Model, assumed: Assumptions) -> StoragePlan:
    """The format of every tensor: from `dtype_of`, else from `dtype`, else from the checkpoint.

    Raises ParamcalcError for unknown formats, with the choices, and for parts that match no tensor.
    """
    if assumed.dtype is not None and is_gguf(assumed.dtype):
        file = _gguf_file(model, assumed)
        reasons = (f"{file.ftype}: bytes are an estimate: {reason}" for reason in file.estimate_reasons)
        return StoragePlan(
            _stored_in_file(file.stored),
            tuple(f"{model.family}: {text}" for text in (*reasons, *file.notes)),
            not file.exact,
        )
    stored, scheme, dtype_of_rules, unused = _store_tensors(model, assumed, model)
    warnings = [
        *scheme.estimate_reasons,
        *_unmatched_dtype_of(model, [rule for rule in unused if rule in dtype_of_rules]),
    ]
    warnings += _mtp_warnings(model, stored) if assumed.include_mtp else ()
    if assumed.dtype is None:
        warnings += unmatched_rule_warnings(scheme, (rule for rule in unused if rule not in dtype_of_rules))
    estimate = bool(scheme.estimate_reasons) or REPEATED_TABLES in warnings
    return StoragePlan(stored, tuple(f"{model.family}: {text}" for text in warnings), estimate)


def depends_on_layer_index(model: Model, assumed: Assumptions) -> bool:
    """True if the format of a tensor may depend on its layer number: GGUF types, and rules with numbers."""
    if assumed.dtype is not None and is_gguf(assumed.dtype):
        return True
    texts = [rule.text for rule in _scheme(model, assumed).rules] + [part for part, _ in assumed.dtype_of]
    return any(character.isdigit() for text in texts for character in text)


def _gguf_file(model: Model, assumed: Assumptions) -> GgufFile:
    """The file that llama.cpp writes. Raises ParamcalcError for assumptions that a GGUF file does not support."""
    if assumed.dtype_of:
        raise ParamcalcError(
            f"--dtype-of cannot be combined with {assumed.dtype}", "llama-quantize chooses the type of each tensor"
        )
    if max(assumed.tensor_parallel, assumed.expert_parallel) > 1:
        raise ParamcalcError(
            f"{assumed.dtype}: tensor and expert parallelism are not available for GGUF files; --split-mode row of "
            "llama.cpp divides matrices differently, and keeps all caches on one device",
            "use --pipeline-parallel-size 2, which divides layers as llama.cpp does",
        )
    return gguf_file(model, str(assumed.dtype))


def _stored_in_file(file: Sequence[GgufTensors]) -> tuple[StoredTensors, ...]:
    """The tensors of a GGUF file, or of a stage of it. They are replicated: no device holds a part of one."""
    held = (Weight(tensors.format, (tensors.parameters,), tensors.category, copies=tensors.tensors) for tensors in file)
    return tuple(StoredTensors(*tensors, weight) for tensors, weight in zip(file, held, strict=True))


def _store_tensors(
    model: Model, assumed: Assumptions, whole: Model
) -> tuple[tuple[StoredTensors, ...], QuantizationScheme, tuple[SchemeRule, ...], Sequence[SchemeRule]]:
    """The tensors as they are stored, the scheme, the rules of `dtype_of`, and the rules that match no tensor."""
    weights = list(checkpoint_tensors(model, assumed))
    scheme = _scheme(whole, assumed)
    dtype_of_rules = tuple(_dtype_of_rule(part, name) for part, name in assumed.dtype_of)
    placed, unused = place_tensors(scheme._replace(rules=(*dtype_of_rules, *scheme.rules)), weights)
    unquantised = _unquantised_format(model, assumed)
    scale = scheme.kv_scale_bits
    return (
        tuple(_stored_tensors(one, unquantised, scale) for one in placed if one.copies),
        scheme,
        dtype_of_rules,
        unused,
    )


def checkpoint_tensors(model: Model, assumed: Assumptions) -> Iterator[Weight]:
    """The tensors of a checkpoint: parameters, buffers, and with `include_mtp` the MTP modules."""
    for weight in model.tree.weights():
        if weight.role != "mtp" or assumed.include_mtp:
            yield weight
    if assumed.include_mtp:
        yield from model.tree.duplicated_weights()


def _scheme(model: Model, assumed: Assumptions) -> QuantizationScheme:
    """The scheme of the assumed `dtype`, or that of the checkpoint."""
    if assumed.dtype is None:
        scheme = quantization_scheme(model.quantization, towers=model.quantised_towers)
        return (
            UNQUANTISED
            if scheme is None
            else with_class_exceptions(with_published_scales(scheme, model.checkpoint), model)
        )
    form = format_named(assumed.dtype)
    if form.applies_to == ALL_TENSORS:
        return UNQUANTISED
    applies_to = form.applies_to
    if applies_to == ONLY_EXPERTS and not any(map(applies_to.covers, model.tree.weights())):
        applies_to = LAYER_MATRICES
    rules = [SchemeRule("shared_gate")]  # it has one output; no library quantises it
    if form.name.startswith("exl2"):
        rules.append(SchemeRule("lm_head", exl2("6.0", head=True)))
    reasons = () if form.exact else (f"{form.name}: bytes are an estimate",)
    return QuantizationScheme(form.name, form, applies_to, tuple(rules), reasons)


UNQUANTISED = QuantizationScheme("unquantised", None)
REPEATED_TABLES = (
    "embedding and head are counted again for each multi-token-prediction module, as in the files of DeepSeek-V3; "
    "not all checkpoints repeat them; bytes are an estimate"
)


def _unquantised_format(model: Model, assumed: Assumptions) -> Format:
    """The format of unquantised tensors: the assumed dtype or the model's; 16 bits next to a quantised format."""
    if assumed.dtype is None:
        return plain_format(DTYPES[model.dtype])
    form = format_named(assumed.dtype)
    if form.applies_to == ALL_TENSORS:
        return form
    return plain_format(DTYPES[model.dtype if model.dtype in ("float16", "bfloat16") else "bfloat16"])


def _dtype_of_rule(part: str, name: str) -> SchemeRule:
    """The rule of one entry of `dtype_of`: a category, a path or a part of a path."""
    word = part.lower().replace("-", "_")
    category = next((category for category in CATEGORIES if category == word), None)
    return SchemeRule(part, format_named(name), category=category)


def _unmatched_dtype_of(model: Model, unused: list[SchemeRule]) -> Iterator[str]:
    """Warnings for parts of `dtype_of` that match no tensor. Raises ParamcalcError unless categories or tied."""
    for rule in unused:
        tied = any(tie.name.endswith(rule.text) for tie in model.tree.ties())
        if rule.category is None and not tied:
            hint = "known categories: " + ", ".join(CATEGORIES)
            raise ParamcalcError(f"--dtype-of {rule.text}: no tensor of the model has this name", hint)
        yield f"--dtype-of {rule.text}: the model has no such tensor" + ("; it is tied" if tied else "")


def _mtp_warnings(model: Model, stored: Iterable[StoredTensors]) -> Iterator[str]:
    """Warnings about MTP modules, if the assumptions include them."""
    roles = {one.weight.role for one in stored}
    if "mtp" not in roles:
        yield "multi-token-prediction modules were requested, but none are known for this model"
    if "copy" in roles and not model.checkpoint.mtp_tables:
        yield REPEATED_TABLES


# The number of scales of a quantised KV cache next to a matrix: for keys, for values, for both if made from a latent.
CACHE_SCALES = {"k_proj": 1, "v_proj": 1, "kv_b_proj": 2}


def _stored_tensors(placed: PlacedTensor, unquantised: Format, kv_scale_bits: int = 0) -> StoredTensors:
    weight, copies = placed.weight, placed.copies
    fixed = plain_format(DTYPES[weight.dtype]) if weight.dtype else None
    form = placed.format or fixed or unquantised
    if kv_scale_bits and weight.category == "attention" and weight.kind == "matrix":
        scales = CACHE_SCALES.get(weight.name.split(".")[-2], 0)
        cache_scales = (SideTensor("k_scale, v_scale", "tensor", scales * kv_scale_bits),) if scales else ()
        form = form._replace(extras=(*form.extras, *cache_scales))
    return StoredTensors(
        form.name,
        weight.category,
        copies,
        copies * int(weight.elements) if weight.role in ("parameter", "mtp") else 0,
        copies * form.bytes(weight.shape),
        weight,
        copies * form.record_bytes(weight.shape),
        form,
    )


def weights_figures(plan: StoragePlan) -> WeightsPartDict:
    """`weights` of the report."""
    by_format: dict[str, FormatShareDict] = defaultdict(lambda: {"tensors": 0, "parameters": 0, "bytes": 0})
    by_category: dict[str, int] = defaultdict(int)
    records = 0
    for one in plan.stored:
        share = by_format[one.format]
        share["tensors"] += one.tensors
        share["parameters"] += one.parameters
        share["bytes"] += one.bytes
        by_category[one.category] += one.bytes
        records += one.records
    total, parameters = sum(by_category.values()), sum(share["parameters"] for share in by_format.values())
    return {
        "bytes": total,
        "by_format": dict(by_format),
        "by_category": {category: by_category[category] for category in CATEGORIES if category in by_category},
        "bits_per_weight": f"{Decimal(8 * total) / Decimal(parameters):.3f}" if parameters else "0",
        "file_records": records,
        "estimate": plan.estimate,
    }
