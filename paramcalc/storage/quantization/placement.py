"""The scheme of a quantised checkpoint, and the fold of its rules over the tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paramcalc.base.errors import ConfigError
from paramcalc.storage.formats.format import ALL_TENSORS, LAYER_MATRICES, AppliesTo, Format
from paramcalc.storage.quantization.module_names import (
    NOT_A_MATRIX,
    ModuleNames,
    NamePattern,
    mentions_towers,
    module_names,
    name_pattern,
    pattern_matches,
    regex_matches,
)
from paramcalc.tree.weights import TOWER_CATEGORIES, Category, Weight


class SchemeRule(NamedTuple):
    """The format that a config gives to the modules of one name; None: they stay unquantised."""

    text: str
    format: Format | None = None
    exact: bool = False  # the text is the full name of a module
    category: Category | None = None  # the rule applies to all tensors of the category, and the text is not compared


class QuantizationScheme(NamedTuple):
    """The quantisation of a checkpoint: a default format, and rules for exceptions.

    The first rule that matches a tensor decides its format. A tensor without a rule has `format` if `applies_to` covers
    it, and stays unquantised otherwise.
    """

    method: str
    format: Format | None
    applies_to: AppliesTo = LAYER_MATRICES
    rules: tuple[SchemeRule, ...] = ()
    estimate_reasons: tuple[str, ...] = ()  # why bytes are an estimate
    kv_cache: str | None = None  # dtype of the KV cache, if the config states one
    kv_scale_bits: int = 0  # bits of the scale of each layer's keys, and of the scale of its values


TOWERS_UNCONVERTED = (SchemeRule("vision", category="vision"), SchemeRule("projector", category="projector"))


class PlacedTensor(NamedTuple):
    """`copies` of a tensor in one format; None: unquantised."""

    weight: Weight
    format: Format | None
    copies: int


def quantization_scheme(stated: Mapping[str, Any] | None, *, towers: bool = True) -> QuantizationScheme | None:
    """The scheme that a quantization_config describes, or None without one.

    `towers` False: the config belongs to the language model, and vision and audio towers stay unquantised. Raises
    ConfigError if a field has an unexpected type or value.
    """
    if not stated:
        return None
    from paramcalc.storage.quantization.methods.registry import read_method

    try:
        scheme = read_method(stated)
        for form in (scheme.format, *(rule.format for rule in scheme.rules)):
            if form is not None and (form.columns < 1 or any(extra.size < 0 for extra in form.extras)):
                raise ValueError("a group has at least one value")
        return scheme if towers else scheme._replace(rules=(*TOWERS_UNCONVERTED, *scheme.rules))
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, ArithmeticError) as error:
        method = str(stated.get("quant_method", "quantised"))
        raise ConfigError(
            f"quantization_config ({method}): a field has an unexpected value: {error}",
            "use --dtype to state the format of the weights instead",
        ) from error


# -- rules applied to tensors -----------------------------------------------------------------------------------------


class RuleGroup:
    """Rules that differ only in layer and expert numbers: one pattern, and the numbers that it applies to."""

    def __init__(self, pattern: NamePattern, rule: SchemeRule) -> None:
        self.pattern, self.rule = pattern, rule
        self.numbers: set[tuple[int, ...]] = set()
        self.used = False

    def decided_copies(self, weight: Weight, names: ModuleNames, left: Mapping[int, int]) -> dict[int, int]:
        """The number of copies in each layer that these rules decide, out of the copies `left` undecided."""
        if self.rule.category is not None:
            return dict(left) if weight.category == self.rule.category else {}
        if self.pattern.regex is not None and self.pattern.digits and names.layers:
            return {n: copies for n, copies in left.items() if regex_matches(self.pattern.regex, names, n)}
        if not pattern_matches(self.pattern, names):
            return {}
        if () in self.numbers or not names.layers:
            return dict(left)
        shift = names.first if self.pattern.parts[0] == "mtp" else 0
        layers = Counter(number[0] + shift for number in self.numbers)
        if names.experts > 1 and all(len(number) > 1 for number in self.numbers):  # the rules name single experts
            return {n: min(left[n], left[n] * layers[n] // names.experts) for n in layers if n in left}
        return {n: left[n] for n in layers if n in left}


def group_rules(rules: Iterable[SchemeRule]) -> list[RuleGroup]:
    """The rules in groups, in the order of the first rule of each group."""
    groups: dict[tuple[NamePattern, Format | None, Category | None], RuleGroup] = {}
    for rule in rules:
        pattern, numbers = name_pattern(rule.text, exact=rule.exact)
        groups.setdefault((pattern, rule.format, rule.category), RuleGroup(pattern, rule)).numbers.add(numbers)
    return list(groups.values())


def place_tensors(scheme: QuantizationScheme, weights: Sequence[Weight]) -> tuple[list[PlacedTensor], list[SchemeRule]]:
    """Every tensor with the format that the scheme gives it, and the rules that match no tensor."""
    groups = group_rules(scheme.rules)
    towers_unconverted = any(group.rule.format is None and mentions_towers(group.rule.text) for group in groups)
    depth = max((r.stop for w in weights if w.category not in TOWER_CATEGORIES for r in w.layers), default=0)
    placed = [
        one
        for weight in weights
        for one in _place_tensor(scheme, groups, weight, depth=depth, towers_unconverted=towers_unconverted)
    ]
    unused = [group for group in groups if not group.used]
    names = [module_names(weight, depth) for weight in weights] if unused else []
    return placed, [
        group.rule for group in unused if not any(_names_parent_module(group.pattern, one) for one in names)
    ]


def _names_parent_module(pattern: NamePattern, names: ModuleNames) -> bool:
    """True if the pattern is the full name of an enclosing module: configs list those too, without effect."""
    return pattern.exact and pattern_matches(pattern._replace(exact=False), names)


def _place_tensor(
    scheme: QuantizationScheme, groups: list[RuleGroup], weight: Weight, *, depth: int, towers_unconverted: bool
) -> Iterator[PlacedTensor]:
    names = module_names(weight, depth)
    numbers = [number for span in names.layers for number in span] or [0]
    left = dict.fromkeys(numbers, int(weight.copies) // len(numbers))
    for group in groups:
        decided = group.decided_copies(weight, names, left)
        if not decided:
            continue
        group.used = True
        yield PlacedTensor(weight, _applicable_format(group.rule.format, weight), sum(decided.values()))
        left = {n: copies - decided.get(n, 0) for n, copies in left.items() if copies > decided.get(n, 0)}
        if not left:
            return
    spared = towers_unconverted and weight.category in TOWER_CATEGORIES
    applies = not spared and scheme.format is not None and scheme.applies_to.covers(weight)
    yield PlacedTensor(weight, _applicable_format(scheme.format, weight) if applies else None, sum(left.values()))


def _applicable_format(form: Format | None, weight: Weight) -> Format | None:
    """The format, or None if the tensor cannot have it: most formats need a matrix of a suitable shape."""
    if form is None or form.applies_to == ALL_TENSORS:
        return form
    return form if weight.kind in ("matrix", "embedding") and form.fits(weight.shape) else None


def unmatched_rule_warnings(scheme: QuantizationScheme, unused: Iterable[SchemeRule]) -> Iterator[str]:
    """The warning about rules of the config that match no tensor of the model."""
    unused = (rule for rule in unused if rule.category is None)
    unmatched = [rule.text for rule in unused if not NOT_A_MATRIX.search(rule.text) and not mentions_towers(rule.text)]
    if unmatched:
        more = f" (and {len(unmatched) - 3} more)" if len(unmatched) > 3 else ""
        shown = ", ".join(map(repr, unmatched[:3]))
        yield f"quantization_config ({scheme.method}) refers to {shown}{more}, which match no tensor of the model"
