"""Weights in bytes: which format each tensor is stored in, and what that takes."""

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
    parameters: int  # logical: what the unquantised tensors hold; none of buffers and of copies of what is counted
    bytes: int
    weight: Weight  # what is stored, in so many copies
    records: int = 0  # bytes of what only files keep beside them
    layout: Format | None = None  # how one of them is laid out; None in a GGUF file, whose types are blocks


class StoragePlan(NamedTuple):
    """Every tensor as it is stored, and what is to be said about that."""

    stored: tuple[StoredTensors, ...]
    warnings: tuple[str, ...]
    estimate: bool  # how some of it is stored is not known to the byte


def stored_tensors(model: Model, assumed: Assumptions, *, whole: Model | None = None) -> Iterator[StoredTensors]:
    """Every tensor of the model, or of a stage of a `whole` one, as it is stored.

    That `dtype_of` names others is no matter.
    """
    if assumed.dtype is not None and is_gguf(assumed.dtype):
        file = _gguf(whole or model, assumed).stored
        return iter(_of_file(file if whole in (None, model) else gguf_stage(whole, model, assumed.dtype)))
    return iter(_stored_so(model, assumed, whole or model)[0])


def storage_plan(model: Model, assumed: Assumptions) -> StoragePlan:
    """Decide for every tensor: what `dtype_of` says, then `dtype`, or where neither does the checkpoint itself.

    Raises ParamcalcError for unknown formats, with the choices, and for parts that no tensor has.
    """
    if assumed.dtype is not None and is_gguf(assumed.dtype):
        file = _gguf(model, assumed)
        doubts = (f"{file.ftype}: bytes are an estimate: {doubt}" for doubt in file.estimate_reasons)
        return StoragePlan(
            _of_file(file.stored), tuple(f"{model.family}: {text}" for text in (*doubts, *file.notes)), not file.exact
        )
    found, chosen, own, unused = _stored_so(model, assumed, model)
    said = [*chosen.estimate_reasons, *_missed(model, [rule for rule in unused if rule in own])]
    said += _of_mtp(model, found) if assumed.include_mtp else ()
    if assumed.dtype is None:
        said += unmatched_rule_warnings(chosen, (rule for rule in unused if rule not in own))
    unsure = bool(chosen.estimate_reasons) or TABLES_AGAIN in said
    return StoragePlan(found, tuple(f"{model.family}: {text}" for text in said), unsure)


def depends_on_layer_index(model: Model, assumed: Assumptions) -> bool:
    """Whether the format of a tensor may depend on its layer's number: GGUF's types, and rules that name layers."""
    if assumed.dtype is not None and is_gguf(assumed.dtype):
        return True
    texts = [rule.text for rule in _scheme(model, assumed).rules] + [part for part, _ in assumed.dtype_of]
    return any(character.isdigit() for text in texts for character in text)


def _gguf(model: Model, assumed: Assumptions) -> GgufFile:
    """The file that llama.cpp would write. Raises ParamcalcError for what such a file does not go with."""
    if assumed.dtype_of:
        raise ParamcalcError(
            f"--dtype-of does not go with {assumed.dtype}", "llama-quantize chooses each tensor's type"
        )
    if max(assumed.tensor_parallel, assumed.expert_parallel) > 1:
        raise ParamcalcError(
            f"{assumed.dtype}: matrices of a GGUF file are not divided: llama.cpp's --split-mode row does so its own "
            "way, and keeps all caches on one device",
            "--pipeline-parallel-size 2 gives each device some of the layers, as llama.cpp does",
        )
    return gguf_file(model, str(assumed.dtype))


def _of_file(file: Sequence[GgufTensors]) -> tuple[StoredTensors, ...]:
    """What is in a GGUF file or in a stage's part of it, held whole by one device."""
    held = (Weight(one.format, (one.parameters,), one.category, copies=one.tensors) for one in file)
    return tuple(StoredTensors(*one, weight) for one, weight in zip(file, held, strict=True))


def _stored_so(
    model: Model, assumed: Assumptions, whole: Model
) -> tuple[tuple[StoredTensors, ...], QuantizationScheme, tuple[SchemeRule, ...], Sequence[SchemeRule]]:
    """The tensors as they are stored, the scheme, the rules of `dtype_of`, and which rules no tensor followed."""
    weights = list(checkpoint_tensors(model, assumed))
    chosen = _scheme(whole, assumed)
    own = tuple(_rule(part, name) for part, name in assumed.dtype_of)
    placed, unused = place_tensors(chosen._replace(rules=(*own, *chosen.rules)), weights)
    rest = _rest(model, assumed)
    scale = chosen.kv_scale_bits
    return tuple(_stored(one, rest, scale) for one in placed if one.copies), chosen, own, unused


def checkpoint_tensors(model: Model, assumed: Assumptions) -> Iterator[Weight]:
    """What a checkpoint holds: parameters, buffers, and if wanted the modules for multi-token prediction."""
    for weight in model.tree.weights():
        if weight.role != "mtp" or assumed.include_mtp:
            yield weight
    if assumed.include_mtp:
        yield from model.tree.duplicated_weights()


def _scheme(model: Model, assumed: Assumptions) -> QuantizationScheme:
    """The format that is assumed for all it is meant for, or the checkpoint's own scheme."""
    if assumed.dtype is None:
        own = quantization_scheme(model.quantization, towers=model.quantised_towers)
        return (
            UNQUANTISED if own is None else with_class_exceptions(with_published_scales(own, model.checkpoint), model)
        )
    form = format_named(assumed.dtype)
    if form.applies_to == ALL_TENSORS:
        return UNQUANTISED
    reach = form.applies_to
    if reach == ONLY_EXPERTS and not any(map(reach.covers, model.tree.weights())):
        reach = LAYER_MATRICES
    rules = [SchemeRule("shared_gate")]  # one output: no library quantises it
    if form.name.startswith("exl2"):
        rules.append(SchemeRule("lm_head", exl2("6.0", head=True)))
    doubts = () if form.exact else (f"{form.name}: bytes are an estimate",)
    return QuantizationScheme(form.name, form, reach, tuple(rules), doubts)


UNQUANTISED = QuantizationScheme("unquantised", None)
TABLES_AGAIN = (
    "embedding and head are counted once more with each module for multi-token prediction, as in DeepSeek-V3's files; "
    "not all checkpoints repeat them: bytes are an estimate"
)


def _rest(model: Model, assumed: Assumptions) -> Format:
    """What is not quantised: in the dtype that is assumed, or the model's; beside an assumed format in 16 bits."""
    if assumed.dtype is None:
        return plain_format(DTYPES[model.dtype])
    form = format_named(assumed.dtype)
    if form.applies_to == ALL_TENSORS:
        return form
    return plain_format(DTYPES[model.dtype if model.dtype in ("float16", "bfloat16") else "bfloat16"])


def _rule(part: str, name: str) -> SchemeRule:
    """What `dtype_of` says of a category, or of a path or a part of one."""
    word = part.lower().replace("-", "_")
    category = next((category for category in CATEGORIES if category == word), None)
    return SchemeRule(part, format_named(name), category=category)


def _missed(model: Model, unused: list[SchemeRule]) -> Iterator[str]:
    """Parts that no tensor has: an error, unless the model could have had them."""
    for rule in unused:
        tied = any(tie.name.endswith(rule.text) for tie in model.tree.ties())
        if rule.category is None and not tied:
            hint = "known categories: " + ", ".join(CATEGORIES)
            raise ParamcalcError(f"--dtype-of {rule.text}: no tensor of the model is called so", hint)
        yield f"--dtype-of {rule.text}: the model has no such tensor" + (" of its own: it is tied" if tied else "")


def _of_mtp(model: Model, found: Iterable[StoredTensors]) -> Iterator[str]:
    """What is to be said of modules for multi-token prediction that are asked for."""
    roles = {one.weight.role for one in found}
    if "mtp" not in roles:
        yield "modules for multi-token prediction are asked for, and none are known of this model"
    if "copy" in roles and not model.checkpoint.mtp_tables:
        yield TABLES_AGAIN


# Scales of a quantised cache that stand beside a matrix: of keys, of values, of both where they are made of a latent.
CACHE_SCALES = {"k_proj": 1, "v_proj": 1, "kv_b_proj": 2}


def _stored(one: PlacedTensor, rest: Format, kv_scale_bits: int = 0) -> StoredTensors:
    weight, copies = one.weight, one.copies
    fixed = plain_format(DTYPES[weight.dtype]) if weight.dtype else None
    form = one.format or fixed or rest
    if kv_scale_bits and weight.category == "attention" and weight.kind == "matrix":
        scales = CACHE_SCALES.get(weight.name.split(".")[-2], 0)
        beside = (SideTensor("k_scale, v_scale", "tensor", scales * kv_scale_bits),) if scales else ()
        form = form._replace(extras=(*form.extras, *beside))
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
