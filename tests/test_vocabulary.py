"""The vocabulary of the tree: a new kind of state or of work needs a component and a row, and reports tell of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from math import floor, log2
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

import paramcalc
from paramcalc.families.registry import get_family
from paramcalc.tree import ops, pairs, state
from paramcalc.tree.component import Component
from paramcalc.tree.containers import per_in_stack
from paramcalc.tree.leaves import Linear
from paramcalc.tree.ops import IN_TOWERS, PER, FlopTerm, Per, PerWord
from paramcalc.tree.pairs import LIMITS, NO_LIMIT, Limit
from paramcalc.tree.state import ENTRY_KINDS, FLOAT32, GROWTHS, STATE, CacheEntry, EntryKind, Growth
from paramcalc.tree.weights import Category
from paramcalc.tree.workload import Workload
from tests.conftest import Run

# -- a mixer of a kind that the package does not have ------------------------------------------------------------

LEVELS = Growth("levels", lambda tokens, _size, _source: tokens.bit_length(), "floor(log2 T) + 1", "slower")


def levels_read(work: Workload, _term: FlopTerm) -> int:
    """The states that all new tokens read: the first one has 1, the second and third 2, the fourth to seventh 3."""
    return sum(token.bit_length() for token in range(work.past + 1, work.context + 1))


PER_LEVEL = Per("level", levels_read, note=lambda _: "each token reads all of its levels")


class LogLinear(Component):
    """Log-linear attention (2506.04761): a state of h d_h^2 numbers for each power of two within the sequence."""

    category: Category | None = "recurrent"
    width: int
    heads: int
    head_dim: int

    def parts(self) -> Mapping[str, Component]:
        inner = self.heads * self.head_dim
        names = ("q_proj", "k_proj", "v_proj")
        return {
            **{name: Linear(d_in=self.width, d_out=inner) for name in names},
            "o_proj": Linear(d_in=inner, d_out=self.width),
        }

    def own_ops(self) -> Iterator[FlopTerm]:
        yield FlopTerm("levels", 2 * self.heads * self.head_dim**2, "recurrence", PER_LEVEL)

    def own_state(self) -> Iterator[CacheEntry]:
        yield CacheEntry(STATE, self.heads * self.head_dim**2, LEVELS, shares=self.heads, dtype=FLOAT32)

    def label(self) -> str:
        return "log-linear attention"


CONFIG = {
    "model_type": "llama",
    "hidden_size": 8,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 32,
    "dtype": "bfloat16",
}


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A file of a Llama whose attention is log-linear: 2 heads of 4 channels in each of 3 layers."""

    def log_linear(c: Any, **_: Any) -> LogLinear:
        return LogLinear(width=c.hidden_size, heads=c.num_attention_heads, head_dim=4)

    monkeypatch.setitem(get_family("llama").recipe.__globals__, "gqa", log_linear)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return str(path)


def test_a_new_growth_is_cache(config: str) -> None:
    """After 1,000 tokens 10 states (512 is the last power of two) of 2 x 4 x 4 float32 in each of 3 layers."""
    report = paramcalc.memory(paramcalc.load(config), context=1000, batch=2)
    longer = paramcalc.memory(paramcalc.load(config), context=1024)

    assert report.kv_cache.per_sequence.bytes == 10 * 2 * 4 * 4 * 4 * 3
    assert report.kv_cache.bytes == 2 * 3840
    assert longer.kv_cache.bytes == 11 * 384
    assert (report.kv_cache.bytes_per_token, report.kv_cache.per_sequence.fixed, report.state.bytes) == (0, 0, 0)
    assert "state entries in each layer that has them: floor(log2 T) + 1, where T is the context" in report.notes
    assert report.per_device.kv_cache.bytes == report.kv_cache.bytes


def test_heads_of_a_new_state_are_divided(config: str) -> None:
    report = paramcalc.memory(paramcalc.load(config), context=1000, tensor_parallel=2)

    assert report.per_device.kv_cache.bytes == 3840 // 2


def test_the_table_says_how_a_new_state_grows(config: str, run: Run) -> None:
    _, out, _ = run("memory", config, "--context", "1000")
    lines = [" ".join(line.split()) for line in out.splitlines()]

    assert "slower growth 3,840 3.75 KiB at 1,000 tokens; see the notes" in lines
    assert "one sequence 3,840 3.75 KiB at 1,000 tokens" in lines
    assert "independent of the context" not in out


def test_the_explanation_of_a_new_state(config: str, run: Run) -> None:
    code, out, _ = run("memory", config, "--context", "1000", "--explain")
    lines = [" ".join(line.split()) for line in out.splitlines()]

    assert code == 0
    assert "state h 16 x float32 = 2 x 16 x 4 = 128" in lines
    assert "layers x (floor(log2 T) + 1) x entry" in out
    assert "3 x 10 x 128" in out
    assert "does not grow" not in out


def test_a_new_kind_of_work_is_counted(config: str) -> None:
    """Over 1,000 tokens 1 x 1 + 2 x 2 + 4 x 3 + ... + 256 x 9 + 489 x 10 states are read, of 32 numbers each."""
    report = paramcalc.flops(paramcalc.load(config), tokens=1000, batch=2)
    read = 1 + 4 + 12 + 32 + 80 + 192 + 448 + 1024 + 2304 + 4890

    assert report.components["recurrent"].recurrence == 3 * 2 * 2 * 32 * read
    assert "each token reads all of its levels" in report.notes
    assert paramcalc.flops(paramcalc.load(config), tokens=1, context=1000).forward.recurrence == 3 * 2 * 32 * 10


def test_the_trace_shows_the_work_and_the_bytes_of_a_new_state(config: str) -> None:
    report = paramcalc.trace(paramcalc.load(config), tokens=1, context=1000)
    (layer,) = (block for block in report.blocks if block.layers)
    (step,) = (step for step in layer.steps if step.name == "attn.levels")

    assert (step.flops, step.kept_bytes) == (2 * 32 * 10, 10 * 128)


def test_sweeps_add_up_a_new_state(config: str) -> None:
    (row,) = paramcalc.scale(paramcalc.load(config), {"depth": [6]}, context=1000).rows

    assert row.state is not None
    assert row.state.bytes == 6 * 10 * 128
    assert row.flops is not None
    assert row.flops.forward_per_token == 6 * (2 * 32 * 10 + 2 * 4 * 64 + 2 * 3 * 128) + 2 * 256


# -- the tables --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [GROWTHS, ENTRY_KINDS, LIMITS, tuple(PER.values())])
def test_every_row_has_a_name_of_its_own(table: tuple[Any, ...]) -> None:
    names = [row.name for row in table]

    assert len(names) == len(set(names)) > 4


@pytest.mark.parametrize(
    ("module", "row", "table"),
    [(state, Growth, GROWTHS), (state, EntryKind, ENTRY_KINDS), (pairs, Limit, LIMITS), (ops, Per, PER.values())],
)
def test_every_row_is_in_its_table(module: ModuleType, row: type, table: Collection[Any]) -> None:
    assert {id(one) for one in vars(module).values() if type(one) is row} == set(map(id, table))


@pytest.mark.parametrize("growth", [*GROWTHS, LEVELS], ids=lambda growth: growth.name)
@pytest.mark.parametrize("tokens", [1, 5, 64, 1000])
@pytest.mark.parametrize("size", [1, 4, 300])
def test_the_formula_gives_the_entries(growth: Growth, tokens: int, size: int) -> None:
    text = growth.formula.format(size=size).replace("log2 T", "log2(T)")
    value = eval(text, {"T": tokens, "S": 77, "min": min, "floor": floor, "log2": log2})

    assert growth.entries(tokens, size, 77) == value


@pytest.mark.parametrize("growth", [*GROWTHS, LEVELS], ids=lambda growth: growth.name)
def test_entries_grow_at_the_rate_that_is_stated(growth: Growth) -> None:
    """Entries of size 16 after 8, 64, 512 and 4,096 tokens, next to an encoder's output of 99."""
    entries = [growth.entries(8**power, 16, 99) for power in range(1, 5)]

    assert (
        entries
        in {
            "linear": [[8, 64, 512, 4096]],
            "limited": [[8, 16, 16, 16]],
            "strided": [[0, 4, 32, 256]],
            "fixed": [[16, 16, 16, 16], [99, 99, 99, 99]],
            "slower": [[4, 7, 10, 13]],  # log2
        }[growth.rate]
    )


def test_an_entry_that_follows_an_encoder_has_its_length() -> None:
    assert [growth.name for growth in GROWTHS if growth.entries(5, 7, 99) == 99] == [
        growth.name for growth in GROWTHS if growth.follows_source
    ]


def test_the_words_of_component_fields_are_rows() -> None:
    assert set(get_args(PerWord)) <= PER.keys()


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
@pytest.mark.parametrize("causal", [False, True])
def test_no_limit_has_more_pairs_than_there_are(limit: Limit, causal: bool) -> None:
    work = Workload(tokens=20, context=50, causal=causal)
    most = sum(range(31, 51)) if causal else 20 * 50

    assert 0 < limit.pairs(work, 3, None) <= most
    assert (limit.pairs(work.replace(counting="reference"), 3, None) == most) is (limit.masks or limit is NO_LIMIT)


@pytest.mark.parametrize("per", PER.values(), ids=lambda per: per.name)
def test_every_row_of_work_counts(per: Per) -> None:
    """Never less for more tokens, and in an encoder only what an encoder does."""
    term = FlopTerm("x", 1, per=per, size=4)
    times = [term.times(Workload(tokens=tokens, context=tokens)) for tokens in (4, 8, 16)]

    assert times == sorted(times)
    assert per_in_stack(per, "vision") is IN_TOWERS
    assert per_in_stack(per_in_stack(per, "encoder"), "encoder") is per_in_stack(per, "encoder")
