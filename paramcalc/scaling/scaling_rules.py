"""Rules for models of another depth or width: which fields scale and which stay.

Another width d: head_dim stays and heads grow in proportion, so that h = d / head_dim where heads fill the width;
key/value heads keep their ratio to the query heads, a single one stays single; feed-forward widths keep their ratio to
d, rounded to a multiple; embeddings as wide as the model stay so; experts, their number and top_k, low ranks, states
and vocabularies stay. Another depth, which an encoder and its decoder both get: lists with an entry for each
layer, and patterns of letters, go on in their period, after the first dense layers. Nothing else changes, and what
cannot be is an invalid point.

Key/value heads must divide the query heads, so of the divisors the one next to the ratio is taken, but none that is
more than twice or less than half of it: 43 heads in four groups would be multi-query attention, another design.
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

Follow = Literal["ratio", "kept"]
Values = Mapping[str, FieldValue]

NO_ENTRIES = FieldValue(NATIVE_LAYERS_FIELD, [])
FARTHEST_KV_HEADS = 2  # times the ratio of key/value heads, or half of it, at most
COARSEST = 256  # multiple to which a feed-forward width is rounded at most


class ImpossibleError(ParamcalcError):
    """No model satisfies the rules; the message names the rule."""


class ScalingRules(Frozen):
    """The fields that scale with the width: in proportion, or not at all."""

    heads: Follow = "ratio"  # kept: head_dim scales instead
    kv_heads: Follow = "ratio"
    ffn: Follow = "ratio"
    multiple_of: int | None = None  # of feed-forward widths; None: the power of two that divides the base's, up to 256


def scaling_rules(given: Mapping[str, str | int]) -> ScalingRules:
    """Check rules as given: `{"heads": "kept", "multiple_of": 128}`. Raises ParamcalcError with the choices."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in ScalingRules.fields:
            raise ParamcalcError(
                f"unknown rule {name!r}", nearest(name, ScalingRules.fields, fallback=_known(ScalingRules.fields))
            )
        if name != "multiple_of":
            if value not in get_args(Follow):
                raise ParamcalcError(f"rule {name}: unknown word {value!r}", _known(get_args(Follow)))
            found[name] = value
            continue
        if not str(value).isdigit() or int(value) < 1:
            raise ParamcalcError(
                f"rule {name}: {value!r} is not a whole number from 1 on", "write it like multiple_of=128"
            )
        found[name] = int(value)
    return ScalingRules(**found)


def _known(words: Sequence[str] | Mapping[str, Any]) -> str:
    return "known: " + ", ".join(words)


def field_key(values: Values, name: str, stated: StatedConfig) -> str:
    """The name under which a field can be changed: canonical, the family's own, or a word like d_ff.

    Raises ParamcalcError with the nearest names where the family has no such field.
    """
    if name in ("dtype", "torch_dtype"):
        raise ParamcalcError(f"{name} is the same at all points", "--dtype float32 is for all of them")
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


ABOUT_EXPERTS = '--preset mixtral-8x7b has some; a base of your own too with --set \'moe={"experts": 8, "top_k": 2}\''
ABOUT_FIELDS = "`paramcalc families NAME` lists the fields of a family"


# -- another depth ------------------------------------------------------------------------------------------------


def changes_for_depth(values: Values, depth: int) -> dict[str, Any]:
    """The fields that change for another depth. Raises ImpossibleError where a list of layers has no period."""
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
    """The error where no field is the width or the depth of the whole model: none at all, or one in each section."""
    several = [name for name in values if name.rpartition(".")[2] in names and is_size(values, name)]
    if several:
        return ImpossibleError(f"{axis}: the model has several: {', '.join(several)}", f"--sweep {several[0]}=...")
    return ImpossibleError(f"this family has no field for its {axis}", "change a field of its own: --sweep FIELD=...")


def _unrolled(value: Any) -> list[Any]:
    """A list of groups of layers and how often each is repeated (GPT-Neo's), layer by layer; else nothing."""
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
    raise ImpossibleError(
        f"{name} lists {size} layers without a period", f"give the list for {length} layers with --set"
    )


def changes_for_shape(wide: Mapping[str, Any], deep: Mapping[str, Any], depth: int | None) -> dict[str, Any]:
    """The fields that change for another width and depth at once: a list of sizes by layer has both from it.

    Raises ImpossibleError where such a list has no period.
    """
    both = [key for key in wide if key in deep and isinstance(wide[key], list)]
    return {**deep, **wide, **{key: extend_pattern(wide[key], depth or len(wide[key]), key) for key in both}}


# -- another width ------------------------------------------------------------------------------------------------


def changes_for_width(values: Values, width: int, follow: ScalingRules) -> dict[str, Any]:
    """The fields that change for another width. Raises ImpossibleError where heads do not come out whole."""
    if not is_size(values, WIDTH_FIELD):
        raise no_size(values, "width", WIDTH_FIELD)
    base = values[WIDTH_FIELD].value
    changed: dict[str, Any] = {values[WIDTH_FIELD].key: width}
    if follow.heads == "ratio":
        changed |= _heads(values, width, base, follow)
    else:
        for name in HEAD_DIM_FIELDS:
            if is_size(values, name):
                changed[values[name].key] = whole_in_proportion(
                    values[name].key, values[name].value, width=width, base=base
                )
    if follow.ffn == "ratio":
        grown = partial(rounded_to_multiple, width=width, base=base, multiple_of=follow.multiple_of)
        for name in _present(values, FFN_WIDTH_FIELDS):
            changed[values[name].key] = _each(values[name].value, grown)
    if entries := [one for one in values.get(NATIVE_LAYERS_FIELD, NO_ENTRIES).value if isinstance(one, Mapping)]:
        changed[NATIVE_LAYERS_FIELD] = [_entry(one, values, width, follow) for one in entries]
    return changed | {
        values[name].key: width for name in _present(values, EMBEDDING_WIDTH_FIELDS) if values[name].value == base
    }


def _entry(entry: Mapping[str, Any], values: Values, width: int, follow: ScalingRules) -> dict[str, Any]:
    """The entry of one layer under the same rules; fields it leaves out are the model's."""
    experts = entry.get("moe") or {}
    own = {
        **{name: FieldValue(name, entry.get(name)) for name in ("head_dim", "d_ff")},
        "num_key_value_heads": FieldValue("n_kv_heads", entry.get("n_kv_heads")),
        "moe.d_ff": FieldValue("moe.d_ff", experts.get("d_ff")),
        WIDTH_FIELD: values[WIDTH_FIELD],
    }
    heads = entry.get("n_heads", values["num_attention_heads"].value)
    changed = changes_for_width({**own, "num_attention_heads": FieldValue("n_heads", heads)}, width, follow)
    found = {**entry, **{key: size for key, size in changed.items() if key in entry}}
    return found | ({"moe": {**experts, "d_ff": changed["moe.d_ff"]}} if "moe.d_ff" in changed else {})


def _heads(values: Values, width: int, base: int, follow: ScalingRules) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name in _counted_heads(values):
        changed[values[name].key] = _each(
            values[name].value, partial(whole_in_proportion, values[name].key, width=width, base=base)
        )
    queries = changed.get(values["num_attention_heads"].key) if "num_attention_heads" in values else None
    heads = queries if isinstance(queries, int) else None
    grouped = [name for name in _present(values, KV_HEAD_COUNT_FIELDS) if values[name].key not in changed]
    for name in grouped if follow.kv_heads == "ratio" else ():
        own = changed.get(values[QUERY_HEADS_OF[name]].key) if QUERY_HEADS_OF.get(name) in values else None
        shared = own if isinstance(own, int) else heads
        changed[values[name].key] = _each(
            values[name].value, partial(kv_heads_in_proportion, width=width, base=base, heads=shared)
        )
    return changed


def _counted_heads(values: Values) -> list[str]:
    """Fields with numbers of heads; key/value heads where a family counts no others (JetMoE)."""
    return _present(values, HEAD_COUNT_FIELDS) or _present(values, KV_HEAD_COUNT_FIELDS)


def _present(values: Values, names: Sequence[str]) -> list[str]:
    return [name for name in names if name in values and values[name].value]


def whole_in_proportion(name: str, size: int, *, width: int, base: int) -> int:
    """A number in proportion to the width. Raises ImpossibleError unless it is whole."""
    if size * width % base:
        why, step = f"{size} x {width} / {base}", base // gcd(size, base)
        raise ImpossibleError(
            f"width {width} does not give whole {name}: {why}; multiples of {step} do",
            "--rule says what follows",
        )
    return size * width // base


def width_step(values: Values, follow: ScalingRules) -> int:
    """The smallest step of widths that gives whole heads. Raises ImpossibleError where the family has no width."""
    if not is_size(values, WIDTH_FIELD):
        raise no_size(values, "width", WIDTH_FIELD)
    base = int(values[WIDTH_FIELD].value)
    names = _counted_heads(values) if follow.heads == "ratio" else [n for n in HEAD_DIM_FIELDS if is_size(values, n)]
    sizes = [size for name in names for size in _listed(values[name].value)]
    return lcm(*(base // gcd(size, base) for size in sizes))


def _listed(value: Any) -> list[int]:
    return list(value) if isinstance(value, list | tuple) else [value]


def kv_heads_in_proportion(size: int, *, width: int, base: int, heads: int | None) -> int:
    """Key/value heads in proportion: of the numbers that divide the query heads the one next to the ratio.

    A single one stays single. Raises ImpossibleError where none is near.
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
            f"width {width} gives {heads} heads, and no number of key/value heads near {float(wanted):g} divides them",
            "--rule kv_heads=kept, or another width",
        )
    return int(found)


def rounded_to_multiple(size: int, *, width: int, base: int, multiple_of: int | None) -> int:
    """A size in proportion to the width, to the nearest multiple; a half goes up."""
    multiple = multiple_of or min(size & -size, COARSEST)
    return max(1, (2 * size * width + base * multiple) // (2 * base * multiple)) * multiple


def _each(value: Any, change: Callable[[int], int]) -> Any:
    return [change(size) for size in value] if isinstance(value, list | tuple) else change(value)


def is_size(values: Values, name: str) -> bool:
    """True if the model has a field of that name with one whole number."""
    return name in values and isinstance(values[name].value, int) and not isinstance(values[name].value, bool)
