"""Methods that convert every torch.nn.Linear of a class except its output matrix.

bitsandbytes, torchao, quanto and similar methods do not depend on the architecture: the class decides which matrices
they convert (replace_with_bnb_linear in the integrations of transformers). In transformers 4, experts and routers were
modules, and converted. Since transformers 5, experts are parameters, and stay unquantised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from paramcalc.model import Model
from paramcalc.storage.quantization.module_names import SYNONYMS, WRAPPERS
from paramcalc.storage.quantization.placement import QuantizationScheme, SchemeRule

CLASS_DEPENDENT_METHODS = (
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
# Names of modules that contain others.
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


def with_class_exceptions(scheme: QuantizationScheme, model: Model) -> QuantizationScheme:
    """The scheme with the exceptions of the model's class, if its method depends on the class."""
    if scheme.method not in CLASS_DEPENDENT_METHODS or scheme.format is None:
        return scheme
    applies_to, version = scheme.applies_to, model.facts.transformers_version
    experts = any(weight.category == "experts" for weight in model.tree.weights())
    fused = experts and _major(version) >= 5 and scheme.method not in model.checkpoint.convertible_experts
    if fused:
        applies_to = applies_to._replace(categories=applies_to.categories - {"experts"})
    reasons = (
        *scheme.estimate_reasons,
        *_estimate_reasons(scheme, model, version=version if experts and not fused else None),
    )
    return scheme._replace(applies_to=applies_to, estimate_reasons=reasons)


def _major(version: str) -> int:
    match = re.match(r"\d+", version)
    return int(match[0]) if match else 0


def _estimate_reasons(scheme: QuantizationScheme, model: Model, *, version: str | None) -> Iterator[str]:
    """Reasons why bytes are an estimate; `version` of transformers if experts depend on it, else None."""
    method = scheme.method
    if version is not None and _major(version) < 5:
        yield (
            f"{method}: experts are assumed to be quantised, as in transformers 4 but not in 5; the config states "
            f"{version or 'no version'}; bytes are an estimate"
        )
    inner = [rule.text for rule in scheme.rules if _names_inner_module(rule)]
    if inner:
        yield (
            f"{method}: {', '.join(inner)} is an inner module of a path; the version of transformers decides "
            "whether this excludes it; bytes are an estimate"
        )
    # The matrices of GPT-2 are of a separate class, Conv1D, which only bitsandbytes converts.
    conv1d = model.checkpoint.conv1d_matrices and method != "bitsandbytes"
    if not model.checkpoint.verified_linears or conv1d or not _has_vocabulary_head(model):
        yield (
            f"{method} converts every torch.nn.Linear; the matrices of {model.architecture} were not compared with "
            "its class; bytes are an estimate"
        )


def _names_inner_module(rule: SchemeRule) -> bool:
    """True if the rule names a module in the middle of a path, not one at its start or its end."""
    parts = rule.text.split(".")
    plain = rule.format is None and not rule.exact and not set(rule.text) & set("\\^$|()[]+*")
    return plain and parts[0] not in WRAPPERS and (parts[-1].isdigit() or parts[-1] in ENCLOSING_PARTS)


def _has_vocabulary_head(model: Model) -> bool:
    """True if the model has an output matrix over a vocabulary, possibly tied; other heads were not compared."""
    splits = (weight.split for weight in model.tree.weights() if weight.category == "head")
    tied = any(tie.category == "head" for tie in model.tree.ties())
    return tied or any(split is not None and split.unit_kind == "vocabulary" for split in splits)
