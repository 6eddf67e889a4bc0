"""One rule set for models of another depth or width: what grows with them, what stays.

Another width d: head_dim stays and heads grow in proportion, so that h = d / head_dim where heads fill the width;
key/value heads keep their ratio to the query heads, a single one stays single; feed-forward widths keep their ratio to
d, rounded to a multiple; embeddings as wide as the model stay so; experts, their number and top_k, low ranks, states
and vocabularies stay. Another depth: lists with an entry for each layer, and patterns of letters, go on in their
period. Nothing else changes, and what cannot be is an invalid point.

Key/value heads must divide the query heads, so of the divisors the one next to the ratio is taken, but none that is
more than twice or less than half of it: 43 heads in four groups would be multi-query attention, another design.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from math import gcd, lcm
from typing import Any, Literal, get_args

from paramcalc.config_fields import DEPTHS
from paramcalc.errors import ParamcalcError, nearest
from paramcalc.frozen import Frozen
from paramcalc.model import FieldValue

Follow = Literal["ratio", "kept"]
Values = Mapping[str, FieldValue]

PATTERNS = (
    "hybrid_override_pattern",
    "attn_layers",
)  # what is as long as the model is deep, where no field says how deep that is
WIDTH = "hidden_size"
HEADS = (
    "num_attention_heads",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "swa_num_attention_heads",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "mamba_n_heads",
    "mamba_num_heads",
    "n_mamba_heads",
    "linear_num_heads",
    "num_heads",
)
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "swa_num_key_value_heads", "num_global_key_value_heads")
HEAD_DIMS = ("head_dim", "mamba_head_dim", "mamba_d_head", "linear_key_head_dim", "linear_value_head_dim")
FFN = (
    "intermediate_size",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "shared_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_experts_intermediate_size",
    "dense_intermediate_size",
    "prefix_dense_intermediate_size",
    "intermediate_size_mlp",
    "ffn_dim",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "ffn_hidden_size",
    "n_inner",
    "hidden_dim",
    "inner_hidden_size",
    "expert_ffn_hidden_size",
    "d_ff",
    "d_inner",
    "moe.d_ff",
    "lru_width",
    "mamba_d_ssm",
    "attention_hidden_size",
)
# Embeddings of another width have projections; those that are as wide as the model have none.
EMBEDDINGS = ("word_embed_proj_dim", "embedding_size", "input_embedding_size", "output_embedding_size")
# What people call fields whatever the family calls them; the first one that the family has is meant.
WORDS = {
    "d_model": (WIDTH,),
    "n_layers": DEPTHS,
    "n_heads": HEADS,
    "n_kv_heads": KV_HEADS,
    "d_ff": FFN,
    "n_experts": ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "moe.experts"),
    "top_k": ("num_experts_per_tok", "num_experts_per_token", "moe.top_k"),
}
FURTHEST = 2  # times the ratio of key/value heads, or half of it, at most
COARSEST = 256  # multiple to which a feed-forward width is rounded at most


class ImpossibleError(ParamcalcError):
    """There is no such model under the rules; the message says which rule."""


class Rules(Frozen):
    """How fields follow the width: in proportion, or not at all."""

    heads: Follow = "ratio"  # kept: head_dim follows instead
    kv_heads: Follow = "ratio"
    ffn: Follow = "ratio"
    multiple_of: int | None = None  # of feed-forward widths; None: the power of two that divides the base's, up to 256


def rules(given: Mapping[str, str | int]) -> Rules:
    """Check rules as given: `{"heads": "kept", "multiple_of": 128}`. Raises ParamcalcError with the choices."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in Rules.fields:
            raise ParamcalcError(f"unknown rule {name!r}", nearest(name, Rules.fields, fallback=_known(Rules.fields)))
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
    return Rules(**found)


def _known(words: Sequence[str] | Mapping[str, Any]) -> str:
    return "known: " + ", ".join(words)


def field(values: Values, name: str) -> str:
    """The name under which a field can be changed: canonical, the family's own, or a word like d_ff.

    Raises ParamcalcError with the nearest names where the family has no such field.
    """
    if name in values:
        return values[name].key
    meant = next((word for word in WORDS.get(name, ()) if word in values and values[word].value is not None), None)
    if meant is not None:
        return values[meant].key
    keys = {one.key for one in values.values()}
    if name in keys or name.split(".")[0] in keys:
        return name
    raise ParamcalcError(f"the family has no field {name!r}", nearest(name, [*values, *WORDS], fallback=ABOUT_FIELDS))


ABOUT_FIELDS = "`paramcalc families NAME` lists the fields of a family"


# -- another depth ------------------------------------------------------------------------------------------------


def deepened(values: Values, depth: int) -> dict[str, Any]:
    """The fields that change for another depth. Raises ImpossibleError where a list of layers has no period."""
    changed: dict[str, Any] = {values[name].key: depth for name in DEPTHS if _is_size(values, name)}
    base = next((values[name].value for name in DEPTHS if _is_size(values, name)), None)
    if base is None:
        base = next((len(values[name].value) for name in _present(values, PATTERNS)), None)
    if base is None:
        raise ImpossibleError("this family has no field for its depth", "change a field of its own: --sweep FIELD=...")
    for name, (key, value) in values.items():
        if (groups := _unrolled(value)) and len(groups) == base:
            changed[key] = [[continued(groups, depth, name), 1]]
        elif isinstance(value, list | str) and len(value) == base and _per_layer(value):
            changed[key] = continued(value, depth, name)
    return changed


def _unrolled(value: Any) -> list[Any]:
    """A list of groups of layers and how often each is repeated (GPT-Neo's), layer by layer; else nothing."""
    pairs = value if isinstance(value, list) else []
    if not all(isinstance(pair, list) and list(map(type, pair)) == [list, int] for pair in pairs):
        return []
    return [entry for group, times in pairs for entry in group * times]


def _per_layer(value: list[Any] | str) -> bool:
    """Whether an entry may stand for a layer: words and numbers do, and letters of a pattern, not a model's name."""
    return isinstance(value, list) or not value.isalnum()


def continued(entries: Any, length: int, name: str) -> Any:
    """A list (or a text) that goes on in its period, or ends earlier. Raises ImpossibleError where there is none."""
    size = len(entries)
    if length <= size:
        return entries[:length]
    for period in range(1, size // 2 + 1):
        if entries[period:] == entries[:-period]:
            return (entries[:period] * (length // period + 1))[:length]
    raise ImpossibleError(
        f"{name} lists {size} layers without a period", f"give the list for {length} layers with --set"
    )


def reshaped(wide: Mapping[str, Any], deep: Mapping[str, Any], depth: int | None) -> dict[str, Any]:
    """The fields that change for another width and depth at once: a list of sizes by layer has both from it.

    Raises ImpossibleError where such a list has no period.
    """
    both = [key for key in wide if key in deep and isinstance(wide[key], list)]
    return {**deep, **wide, **{key: continued(wide[key], depth or len(wide[key]), key) for key in both}}


# -- another width ------------------------------------------------------------------------------------------------


def widened(values: Values, width: int, follow: Rules) -> dict[str, Any]:
    """The fields that change for another width. Raises ImpossibleError where heads do not come out whole."""
    if not _is_size(values, WIDTH):
        raise ImpossibleError("this family has no field for its width", "change a field of its own: --sweep FIELD=...")
    base = values[WIDTH].value
    changed: dict[str, Any] = {values[WIDTH].key: width}
    if follow.heads == "ratio":
        changed |= _heads(values, width, base, follow)
    else:
        for name in HEAD_DIMS:
            if _is_size(values, name):
                changed[values[name].key] = whole(values[name].key, values[name].value, width=width, base=base)
    if follow.ffn == "ratio":
        grown = partial(rounded, width=width, base=base, multiple_of=follow.multiple_of)
        for name in _present(values, FFN):
            changed[values[name].key] = _each(values[name].value, grown)
    return changed | {values[name].key: width for name in _present(values, EMBEDDINGS) if values[name].value == base}


def _heads(values: Values, width: int, base: int, follow: Rules) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name in _present(values, HEADS):
        changed[values[name].key] = _each(values[name].value, partial(whole, values[name].key, width=width, base=base))
    queries = changed.get(values["num_attention_heads"].key) if "num_attention_heads" in values else None
    heads = queries if isinstance(queries, int) else None
    for name in _present(values, KV_HEADS) if follow.kv_heads == "ratio" else ():
        changed[values[name].key] = _each(values[name].value, partial(kv_heads, width=width, base=base, heads=heads))
    return changed


def _present(values: Values, names: Sequence[str]) -> list[str]:
    return [name for name in names if name in values and values[name].value]


def whole(name: str, size: int, *, width: int, base: int) -> int:
    """A number in proportion to the width. Raises ImpossibleError where it is no whole number."""
    if size * width % base:
        raise ImpossibleError(f"width {width} does not give whole {name}: {size} x {width} / {base}", _step(size, base))
    return size * width // base


def width_step(values: Values, follow: Rules) -> int:
    """The smallest step of widths that gives whole heads. Raises ImpossibleError where the family has no width."""
    if not _is_size(values, WIDTH):
        raise ImpossibleError("this family has no field for its width", "solve for a field of its own: --solve FIELD")
    base = int(values[WIDTH].value)
    names = _present(values, HEADS) if follow.heads == "ratio" else [n for n in HEAD_DIMS if _is_size(values, n)]
    sizes = [size for name in names for size in _listed(values[name].value)]
    return lcm(*(base // gcd(size, base) for size in sizes))


def _listed(value: Any) -> list[int]:
    return value if isinstance(value, list) else [value]


def _step(size: int, base: int) -> str:
    return f"widths are multiples of {base // gcd(size, base)}"


def kv_heads(size: int, *, width: int, base: int, heads: int | None) -> int:
    """Key/value heads in proportion: of the numbers that divide the query heads the one next to the ratio.

    A single one stays single. Raises ImpossibleError where none is near.
    """
    if size == 1:
        return 1
    wanted = max(Fraction(size * width, base), Fraction(1))
    if heads is None:
        return int(wanted)
    divisors = (Fraction(n) for n in range(1, heads + 1) if heads % n == 0)
    off, found = min((max(n / wanted, wanted / n), n) for n in divisors)
    if off > FURTHEST:
        raise ImpossibleError(
            f"width {width} gives {heads} heads, and no number of key/value heads near {float(wanted):g} divides them",
            "--rule kv_heads=kept, or another width",
        )
    return int(found)


def rounded(size: int, *, width: int, base: int, multiple_of: int | None) -> int:
    """A size in proportion to the width, to the nearest multiple; a half goes up."""
    multiple = multiple_of or min(size & -size, COARSEST)
    return max(1, (2 * size * width + base * multiple) // (2 * base * multiple)) * multiple


def _each(value: Any, change: Callable[[int], int]) -> Any:
    return [change(size) for size in value] if isinstance(value, list) else change(value)


def _is_size(values: Values, name: str) -> bool:
    return name in values and isinstance(values[name].value, int) and not isinstance(values[name].value, bool)
