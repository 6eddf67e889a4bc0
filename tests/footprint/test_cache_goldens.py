"""What small models of transformers hold after some tokens, against what we say is kept. See goldens/cache/."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Any

import pytest

import paramcalc
import paramcalc.components as components
from paramcalc.assumptions import KvPolicy, assume
from paramcalc.components import SUBMODULES, Attention
from paramcalc.footprint import cache
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Stack, stacks
from paramcalc.tree.state import BUFFER, FIXED, CacheEntry
from tests.goldens.store import CACHE, COUNT

# Where a class holds other things than must be kept, which the report's notes say.
NO_CACHE = {"openai-gpt"}  # computes everything again for each token
FULL_WINDOWS = {"gpt_neo"}  # keeps all tokens of local layers too
UNCACHED_SOURCE = {"evolla"}  # computes the keys and values of the protein again for each token
# Submodules whose components keep a state between tokens, or state that they keep none.
MIXERS = ("attention", "special_attention", "mla", "linear_attention", "recurrent", "rwkv", "sparse")
ENCODERS_ONLY = {"GroupedAttention"}  # SqueezeBERT's


def config_of(name: str) -> dict[str, Any]:
    """The config itself, or that of the golden of this name."""
    return dict(CACHE[name].get("config") or COUNT[name]["config"])


def held(run: dict[str, Any], *, only: str | None) -> Counter[str]:
    """Elements that the model holds, by dtype. Integers are positions, counts and token ids, and left out."""
    found: Counter[str] = Counter()
    for _, dtype, shape, copies in run["held"]:
        if not dtype.startswith("int"):
            found[only or dtype] += prod(shape) * copies
    return found


def said(model: paramcalc.Model, tokens: int, source: int, *, dtype: str, only: str | None) -> Counter[str]:
    """The same as we say it, with the two things that transformers does its own way."""
    found: Counter[str] = Counter()
    policy: KvPolicy = "uniform" if model.family in FULL_WINDOWS else "windowed"
    for one in cache.cache_entries(model, assume(context=tokens, kv_policy=policy)):
        again = model.family in UNCACHED_SOURCE and one.growth is FIXED
        if one.dtype != "int64" and not again:
            entries = int(entries_as_held(one, tokens, source=source))
            found[only or one.dtype or dtype] += int(one.elements) * entries * one.copies
    return +found


def entries_as_held(one: CacheEntry, tokens: int, *, source: int) -> int:
    """Entries that transformers holds between two tokens.

    A window that is full holds one entry less than it has tokens: the next token brings its own. What waits to be
    merged is merged when there is enough of it; we reserve for the moment before.
    """
    if one.growth.evicts and tokens >= one.size:
        return one.size - 1
    if one.growth is BUFFER:
        return tokens % (one.size + 1)
    return one.entries(tokens, source=source)


def repeated_heads(config: dict[str, Any]) -> int:
    """How often Falcon's class keeps each key and value head: once for every query head."""
    if config["model_type"] != "falcon" or not config.get("new_decoder_architecture"):
        return 1
    return int(config["num_attention_heads"] // config["num_kv_heads"])


@pytest.mark.parametrize("family", CACHE.families)
def test_what_is_kept_is_what_transformers_holds(family: str) -> None:
    for name in CACHE.families[family]:
        record = CACHE[name]
        if "refused" in record:
            continue
        config = config_of(name)
        model, repeated = paramcalc.load(config), repeated_heads(config)
        only = "float32" if record["dtype"] == "float32" else None
        for run in record["runs"]:
            ours = said(model, run["tokens"], record["source"] or 0, dtype=record["dtype"], only=only)
            ours = Counter({dtype: elements * repeated for dtype, elements in ours.items()})
            theirs = Counter() if family in NO_CACHE else ours

            assert held(run, only=only) == theirs, f"{name} at {run['tokens']} tokens"


def test_buckets_of_reformer_are_kept_as_integers() -> None:
    """2 layers of 3 heads x 2 rounds of hashing, 8 bytes each, beside 3 layers of 64 hidden channels."""
    record = CACHE["reformer/extra-1"]
    longest = record["runs"][-1]
    report = paramcalc.memory(paramcalc.load(record["config"] | {"dtype": "bfloat16"}), context=longest["tokens"])

    assert ["buckets_cache", "int64", [1, 3, 2, longest["tokens"]], 2] in longest["held"]
    assert report.kv_cache.bytes_per_token == 2 * 3 * 2 * 8 + 3 * 64 * 2


# -- nothing is forgotten ----------------------------------------------------------------------------------------


def mixers() -> list[type[Component]]:
    """Every component class in these submodules."""
    return [getattr(components, name) for submodule in MIXERS for name in SUBMODULES[submodule]]


@pytest.mark.parametrize("mixer", mixers(), ids=lambda mixer: mixer.__name__)
def test_every_mixer_says_what_it_keeps(mixer: type[Component]) -> None:
    """Even if that is nothing: a new one must not keep nothing by omission."""
    assert any("own_state" in vars(cls) for cls in mixer.__mro__ if cls is not Component)


def parts(component: Component) -> Iterator[Component]:
    """A component and all below it."""
    yield component
    for part in component.children():
        yield from parts(part.component)


def test_every_mixer_is_in_a_model_that_was_run() -> None:
    found = {
        type(part).__name__
        for name, record in CACHE.items()
        if "runs" in record
        for stack in stacks(paramcalc.load(config_of(name)).tree)
        for run in stack.runs
        for part in parts(run.layer)
        if stack.causal
    }

    assert {mixer.__name__ for mixer in mixers()} - found == ENCODERS_ONLY


def silent(stack: Stack) -> list[str]:
    """Layers of a causal stack that attend or remember, and keep nothing although no other layer lends them keys."""
    return [
        run.layer.label()
        for run in stack.runs
        if stack.causal
        and run.layer.label()  # a part whose attention is left out, or replaced by one matrix, has no label
        and any(weight.category in ("attention", "recurrent") for weight in run.layer.weights())
        and not list(run.layer.state())
        and not any(isinstance(part, Attention) and part.kv.source == "borrowed" for part in parts(run.layer))
    ]


def test_no_layer_keeps_nothing_silently() -> None:
    """Families that transformers does not run have the same components: none of their layers is left out."""
    trees = {name: paramcalc.load(COUNT[name]["config"]).tree for name in COUNT if name.endswith("/odd-1")}

    assert [(name, found) for name, tree in trees.items() for stack in stacks(tree) for found in silent(stack)] == []
