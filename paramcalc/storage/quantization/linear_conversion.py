"""Methods that convert each torch.nn.Linear of a class but its output matrix, and what that depends on.

bitsandbytes, torchao, quanto and their like know no architecture: which matrices they take is a matter of the class
(replace_with_bnb_linear in transformers' integrations). Experts were modules of their own in transformers 4, with
routers beside them that were modules too; since transformers 5 experts are parameters, which stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from paramcalc.model import Model
from paramcalc.storage.quantization.module_names import SYNONYMS, WRAPPERS
from paramcalc.storage.quantization.placement import QuantizationScheme, SchemeRule

BY_CLASS = (
    "bitsandbytes",
    "torchao",
    "quanto",
    "hqq",
    "eetq",
    "fbgemm-fp8",
    "aqlm",
    "vptq",
    "spqr",
    "higgs",
    "bitnet",
    "metal",
    "sinq",
    "fp-quant",
)
# Words for modules that hold others.
ENCLOSING_PARTS = frozenset(
    word
    for part in (
        "layers",
        "attn",
        "recurrent",
        "cross_attn",
        "mixer",
        "mamba",
        "ffn",
        "moe",
        "experts",
        "shared_experts",
    )
    for word in SYNONYMS[part]
)


def with_class_exceptions(plan: QuantizationScheme, model: Model) -> QuantizationScheme:
    """The scheme of such a method with what is known of the model's class; any other as it is."""
    if plan.method not in BY_CLASS or plan.format is None:
        return plan
    reach, version = plan.applies_to, model.facts.transformers_version
    experts = any(weight.category == "experts" for weight in model.tree.weights())
    fused = experts and _major(version) >= 5 and plan.method not in model.checkpoint.convertible_experts
    if fused:
        reach = reach._replace(categories=reach.categories - {"experts"})
    doubts = (*plan.estimate_reasons, *_doubts(plan, model, version=version if experts and not fused else None))
    return plan._replace(applies_to=reach, estimate_reasons=doubts)


def _major(version: str) -> int:
    found = re.match(r"\d+", version)
    return int(found[0]) if found else 0


def _doubts(plan: QuantizationScheme, model: Model, *, version: str | None) -> Iterator[str]:
    """Why bytes are an estimate; `version` of transformers where it decides about experts."""
    method = plan.method
    if version is not None and _major(version) < 5:
        yield (
            f"{method}: experts are taken to be converted, as transformers 4 does and 5 does not; the config names "
            f"{version or 'no version'}: bytes are an estimate"
        )
    loose = [rule.text for rule in plan.rules if _within(rule)]
    if loose:
        yield (
            f"{method}: {', '.join(loose)} names a module within a path, which leaves it out or does nothing, as the "
            "version of transformers will have it: bytes are an estimate"
        )
    # GPT's matrices are of a class of its own, Conv1D, which bitsandbytes alone converts.
    conv1d = model.checkpoint.conv1d_matrices and method != "bitsandbytes"
    if not model.checkpoint.verified_linears or conv1d or not _predicts(model):
        yield (
            f"{method} converts each torch.nn.Linear; which of {model.architecture}'s matrices are none was not "
            "compared: bytes are an estimate"
        )


def _within(rule: SchemeRule) -> bool:
    """Whether it names a module in the middle of a path, neither by its beginning nor by its end."""
    parts = rule.text.split(".")
    plain = rule.format is None and not rule.exact and not set(rule.text) & set("\\^$|()[]+*")
    return plain and parts[0] not in WRAPPERS and (parts[-1].isdigit() or parts[-1] in ENCLOSING_PARTS)


def _predicts(model: Model) -> bool:
    """Whether it has an output matrix over a vocabulary, its own or a table: other heads were not compared."""
    splits = (weight.split for weight in model.tree.weights() if weight.category == "head")
    tied = any(tie.category == "head" for tie in model.tree.ties())
    return tied or any(split is not None and split.unit_kind == "vocabulary" for split in splits)
