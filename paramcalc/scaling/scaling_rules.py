"""Rules for models of another depth or width: which fields scale and which stay.

Another width d: head_dim is constant and the number of heads is proportional to d, so h = d / head_dim if heads fill
the width. Key/value heads keep their ratio to the query heads; a single one stays single. Feed-forward widths keep
their ratio to d, rounded to a multiple. Embeddings as wide as the model stay so. Experts, top_k, low ranks, states and
vocabularies are constant.

Another depth: an encoder and its decoder both get it. Lists with an entry for each layer, and patterns of letters, are
extended by their period, after leading dense layers. Nothing else changes, and an impossible model is an invalid point.

Key/value heads must divide the query heads, so they are rounded to the nearest divisor. A divisor more than twice or
less than half the ratio is rejected: 43 heads in four groups would become multi-query attention, another design.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from math import gcd, isqrt, lcm
from typing import Any, Literal, get_args

from paramcalc.base.errors import ParamcalcError, nearest
from paramcalc.base.value import Frozen
from paramcalc.config.field_roles import (
    BLOCK_COUNT_FIELDS,
    DENSE_PREFIX_LISTS,
    EMBEDDING_WIDTH_FIELDS,
    FFN_WIDTH_FIELDS,
    GENERIC_FIELD_NAMES,
    HEAD_COUNT_FIELDS,
    HEAD_DIM_FIELDS,
    KV_HEAD_COUNT_FIELDS,
    NATIVE_LAYERS_FIELD,
    PATTERN_FIELDS,
    PER_LAYER_FIELDS,
    QUERY_HEADS_OF,
    WIDTH_FIELD,
    resolve_generic_name,
)
from paramcalc.config.fields import DEPTH_FIELDS
from paramcalc.config.schema import FieldValue, StatedConfig

RuleValue = Literal["ratio", "kept"]
Values = Mapping[str, FieldValue]

NO_ENTRIES = FieldValue(NATIVE_LAYERS_FIELD, [])
FARTHEST_KV_HEADS = 2  # largest factor between the ratio of key/value heads and the divisor
COARSEST = 256  # largest multiple to which a feed-forward width is rounded by default


class ImpossibleError(ParamcalcError):
    """No model satisfies the rules; the message names the rule."""


class ScalingRules(Frozen):
    """The fields that scale with the width: in proportion, or not at all."""

    heads: RuleValue = "ratio"  # "kept": the number is constant, and head_dim scales
    kv_heads: RuleValue = "ratio"
    ffn: RuleValue = "ratio"
    multiple_of: int | None = (
        None  # of feed-forward widths; None: the largest power of two that divides the base's, up to 256
    )


def scaling_rules(given: Mapping[str, str | int]) -> ScalingRules:
    """Check rules as given: `{"heads": "kept", "multiple_of": 128}`. Raises ParamcalcError with the choices."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in ScalingRules.fields:
            raise ParamcalcError(
                f"unknown rule {name!r}", nearest(name, ScalingRules.fields, fallback=_known(ScalingRules.fields))
            )
        if name != "multiple_of":
            if value not in get_args(RuleValue):
                raise ParamcalcError(f"rule {name}: unknown value {value!r}", _known(get_args(RuleValue)))
            found[name] = value
            continue
        if not str(value).isdigit() or int(value) < 1:
            raise ParamcalcError(
                f"rule {name} must be a positive integer, not {value!r}", "write it like multiple_of=128"
            )
        found[name] = int(value)
    return ScalingRules(**found)


def _known(words: Sequence[str] | Mapping[str, Any]) -> str:
    return "known: " + ", ".join(words)


def field_key(values: Values, name: str, stated: StatedConfig) -> str:
    """The key of a field, from its canonical name, the family's own name, or a generic name like d_ff.

    Raises ParamcalcError with the nearest names if the family has no such field.
    """
    if name in ("dtype", "torch_dtype"):
        raise ParamcalcError(f"{name} cannot vary between points", "--dtype float32 applies to all points")
    if name in values:
        return values[name].key
    if (key := resolve_generic_name(values, name)) is not None:
        return key
    own = stated.canonical_name(name)
    if own in values:
        return values[own].key
    keys = {one.key for one in values.values()}
    if name in keys or name.split(".")[0] in keys:
        return name
    if name in ("n_experts", "top_k") and "moe" in keys:
        raise ParamcalcError(f"the base has no experts, so no {name}", ABOUT_EXPERTS)
    words = [word for word, fields in GENERIC_FIELD_NAMES.items() if not values.keys().isdisjoint(fields)]
    raise ParamcalcError(f"the family has no field {name!r}", nearest(name, [*values, *words], fallback=ABOUT_FIELDS))


ABOUT_EXPERTS = (
    'use --preset mixtral-8x7b, or add experts to a base of your own: --set \'moe={"experts": 8, "top_k": 2}\''
)
ABOUT_FIELDS = "`paramcalc families NAME` lists the fields of a family"


# -- depth --------------------------------------------------------------------------------------------------------


def changes_for_depth(values: Values, depth: int) -> dict[str, Any]:
    """The fields that change for another depth. Raises ImpossibleError if a list of layers has no period."""
    stated = [name for name in DEPTH_FIELDS if is_size(values, name)]
    base = next((values[name].value for name in stated), None)
    if base is None:
        base = next((len(values[name].value) for name in _present(values, PATTERN_FIELDS)), None)
    if base is None:
        raise no_size(values, "depth", *DEPTH_FIELDS)
    blocks = [name for name in BLOCK_COUNT_FIELDS if stated and is_size(values, name)]
    changed: dict[str, Any] = {values[name].key: depth for name in (*stated, *blocks)}
    for name, (key, value, listed) in values.items():
        if (groups := _unrolled(value)) and len(groups) == base:
            changed[key] = [[extend_pattern(groups, depth, name), 1]]
        elif (listed or name in PER_LAYER_FIELDS) and isinstance(value, list | str) and len(value) == base:
            changed[key] = extend_pattern(value, depth, name)
    return changed


def no_size(values: Values, axis: str, *names: str) -> ImpossibleError:
    """The error for a family without a field for the width or depth of the whole model: none, or one per section."""
    several = [name for name in values if name.rpartition(".")[2] in names and is_size(values, name)]
    if several:
        return ImpossibleError(f"{axis}: the model has several: {', '.join(several)}", f"--sweep {several[0]}=...")
    return ImpossibleError(
        f"this family has no field for its {axis}", "sweep one of its own fields: --sweep FIELD=VALUES"
    )


def _unrolled(value: Any) -> list[Any]:
    """A list of [group, repeats] pairs (GPT-Neo), expanded layer by layer; empty for any other value."""
    pairs = value if isinstance(value, list) else []
    if not all(isinstance(pair, list) and list(map(type, pair)) == [list, int] for pair in pairs):
        return []
    return [entry for group, times in pairs for entry in group * times]


def extend_pattern(entries: Any, length: int, name: str) -> Any:
    """A list (or string) extended by its period, or cut. Raises ImpossibleError if it has no period.

    In lists of dense and sparse layers, the leading dense ones are not part of the period.
    """
    size = len(entries)
    if length <= size:
        return entries[:length]
    first = DENSE_PREFIX_LISTS.get(name.rpartition(".")[2])
    for start in (0, next((i for i, entry in enumerate(entries) if entry != first), size)):
        for period in range(1, (size - start) // 2 + 1):
            if entries[start + period :] == entries[start:-period]:
                more = entries[start : start + period] * (length // period + 1)
                return (entries[:start] + more)[:length]
    raise ImpossibleError(f"{name} lists {size} layers without a period", f"give a list for {length} layers with --set")


def changes_for_shape(wide: Mapping[str, Any], deep: Mapping[str, Any], depth: int | None) -> dict[str, Any]:
    """The fields that change for another width and depth together; a list of sizes by layer depends on both.

    Raises ImpossibleError if such a list has no period.
    """
    both = [key for key in wide if key in deep and isinstance(wide[key], list)]
    return {**deep, **wide, **{key: extend_pattern(wide[key], depth or len(wide[key]), key) for key in both}}


# -- width --------------------------------------------------------------------------------------------------------


def changes_for_width(values: Values, width: int, rules: ScalingRules) -> dict[str, Any]:
    """The fields that change for another width. Raises ImpossibleError if the number of heads is not whole."""
    if not is_size(values, WIDTH_FIELD):
        raise no_size(values, "width", WIDTH_FIELD)
    base = values[WIDTH_FIELD].value
    changed: dict[str, Any] = {values[WIDTH_FIELD].key: width}
    if rules.heads == "ratio":
        changed |= _heads(values, width, base, rules)
    else:
        for name in HEAD_DIM_FIELDS:
            if is_size(values, name):
                changed[values[name].key] = whole_in_proportion(
                    values[name].key, values[name].value, width=width, base=base
                )
    if rules.ffn == "ratio":
        grown = partial(rounded_to_multiple, width=width, base=base, multiple_of=rules.multiple_of)
        for name in _present(values, FFN_WIDTH_FIELDS):
            changed[values[name].key] = _each(values[name].value, grown)
    if entries := [one for one in values.get(NATIVE_LAYERS_FIELD, NO_ENTRIES).value if isinstance(one, Mapping)]:
        changed[NATIVE_LAYERS_FIELD] = [_entry(one, values, width, rules) for one in entries]
    return changed | {
        values[name].key: width for name in _present(values, EMBEDDING_WIDTH_FIELDS) if values[name].value == base
    }


def _entry(entry: Mapping[str, Any], values: Values, width: int, rules: ScalingRules) -> dict[str, Any]:
    """The entry of one layer, scaled by the same rules; absent fields are those of the model."""
    experts = entry.get("moe") or {}
    own = {
        **{name: FieldValue(name, entry.get(name)) for name in ("head_dim", "d_ff")},
        "num_key_value_heads": FieldValue("n_kv_heads", entry.get("n_kv_heads")),
        "moe.d_ff": FieldValue("moe.d_ff", experts.get("d_ff")),
        WIDTH_FIELD: values[WIDTH_FIELD],
    }
    heads = entry.get("n_heads", values["num_attention_heads"].value)
    changed = changes_for_width({**own, "num_attention_heads": FieldValue("n_heads", heads)}, width, rules)
    found = {**entry, **{key: size for key, size in changed.items() if key in entry}}
    return found | ({"moe": {**experts, "d_ff": changed["moe.d_ff"]}} if "moe.d_ff" in changed else {})


def _heads(values: Values, width: int, base: int, rules: ScalingRules) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name in _counted_heads(values):
        changed[values[name].key] = _each(
            values[name].value, partial(whole_in_proportion, values[name].key, width=width, base=base)
        )
    queries = changed.get(values["num_attention_heads"].key) if "num_attention_heads" in values else None
    heads = queries if isinstance(queries, int) else None
    grouped = [name for name in _present(values, KV_HEAD_COUNT_FIELDS) if values[name].key not in changed]
    for name in grouped if rules.kv_heads == "ratio" else ():
        own = changed.get(values[QUERY_HEADS_OF[name]].key) if QUERY_HEADS_OF.get(name) in values else None
        shared = own if isinstance(own, int) else heads
        changed[values[name].key] = _each(
            values[name].value, partial(kv_heads_in_proportion, width=width, base=base, heads=shared)
        )
    return changed


def _counted_heads(values: Values) -> list[str]:
    """Fields with numbers of heads; those of key/value heads if a family has no others (JetMoE)."""
    return _present(values, HEAD_COUNT_FIELDS) or _present(values, KV_HEAD_COUNT_FIELDS)


def _present(values: Values, names: Sequence[str]) -> list[str]:
    return [name for name in names if name in values and values[name].value]


def whole_in_proportion(name: str, size: int, *, width: int, base: int) -> int:
    """A number in proportion to the width. Raises ImpossibleError unless it is whole."""
    if size * width % base:
        why, step = f"{size} x {width} / {base}", base // gcd(size, base)
        raise ImpossibleError(
            f"width {width} does not give whole {name}: {why}; multiples of {step} do",
            "use one of these widths, or change the rule with --rule",
        )
    return size * width // base


def width_step(values: Values, rules: ScalingRules) -> int:
    """The smallest step of widths that gives whole heads. Raises ImpossibleError if the family has no width."""
    if not is_size(values, WIDTH_FIELD):
        raise no_size(values, "width", WIDTH_FIELD)
    base = int(values[WIDTH_FIELD].value)
    names = _counted_heads(values) if rules.heads == "ratio" else [n for n in HEAD_DIM_FIELDS if is_size(values, n)]
    sizes = [size for name in names for size in _listed(values[name].value)]
    return lcm(*(base // gcd(size, base) for size in sizes))


def _listed(value: Any) -> list[int]:
    return list(value) if isinstance(value, list | tuple) else [value]


def kv_heads_in_proportion(size: int, *, width: int, base: int, heads: int | None) -> int:
    """Key/value heads in proportion to the width, rounded to the nearest divisor of the query heads.

    A single one stays single. Raises ImpossibleError if no divisor is near.
    """
    if size == 1:
        return 1
    wanted = max(Fraction(size * width, base), Fraction(1))
    if heads is None:
        return int(wanted)
    small = [n for n in range(1, isqrt(heads) + 1) if heads % n == 0]
    divisors = (Fraction(n) for n in sorted({*small, *(heads // n for n in small)}))
    off, found = min((max(n / wanted, wanted / n), n) for n in divisors)
    if off > FARTHEST_KV_HEADS:
        raise ImpossibleError(
            f"width {width} gives {heads} heads; none of their divisors is near {float(wanted):g} key/value heads",
            "--rule kv_heads=kept, or another width",
        )
    return int(found)


def rounded_to_multiple(size: int, *, width: int, base: int, multiple_of: int | None) -> int:
    """A size in proportion to the width, to the nearest multiple, halves up."""
    multiple = multiple_of or min(size & -size, COARSEST)
    return max(1, (2 * size * width + base * multiple) // (2 * base * multiple)) * multiple


def _each(value: Any, change: Callable[[int], int]) -> Any:
    return [change(size) for size in value] if isinstance(value, list | tuple) else change(value)


def is_size(values: Values, name: str) -> bool:
    """True if the model has a field of that name with one whole number."""
    return name in values and isinstance(values[name].value, int) and not isinstance(values[name].value, bool)
