"""Work: the terms of each component, how often they are done, and the published rules beside them."""

from __future__ import annotations

import csv
import importlib
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

import paramcalc
from paramcalc.base.errors import ParamcalcError
from paramcalc.components import SUBMODULES
from paramcalc.compute.workload import check_workload
from paramcalc.tree.component import Component
from paramcalc.tree.ops import PER, PER_CALL, PER_PAIR, FlopTerm
from paramcalc.tree.pairs import LIMITS, STRIDE_LIMIT
from paramcalc.tree.workload import Workload
from tests.conftest import Run

# GPT-3 as in Brown et al. 2020 (2005.14165), table 2.1.
GPT3 = {"model_type": "gpt2", "n_layer": 96, "n_embd": 12288, "n_head": 96, "n_positions": 2048, "vocab_size": 50257}
# PaLM 540B as in Chowdhery et al. 2022 (2204.02311), table 1: multi-query attention, SwiGLU, a tied head, no biases.
PALM = {
    "model_type": "transformer",
    "d_model": 18432,
    "n_layers": 118,
    "n_heads": 48,
    "n_kv_heads": 1,
    "head_dim": 256,
    "d_ff": 73728,
    "ffn": "gated",
    "bias": False,
    "vocab_size": 256000,
    "tie_embeddings": True,
}
MOE = {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}


def test_llama3_8b_by_hand() -> None:
    """2 x (8,030,261,248 - 525,336,576 looked up - 65 x 4,096 of norms), and 4 x 32 layers x 4,096 x 8,192 tokens."""
    report = paramcalc.flops(paramcalc.load("llama3-8b"), tokens=8192)

    assert report.per_token.matmul == 15_009_316_864
    assert report.per_token.attention == 4_294_967_296
    assert report.forward.total == 8192 * (15_009_316_864 + 4_294_967_296)
    assert report.backward.total == 16384 * (15_009_316_864 + 4_294_967_296)
    assert report.training.total == 3 * report.forward.total
    assert report.training.with_recomputation == 4 * report.forward.total


def test_causal_attention_is_the_triangle_with_its_diagonal() -> None:
    """4 x 32 layers x 4,096 for each of 8,192 x 8,193 / 2 pairs."""
    report = paramcalc.flops(paramcalc.load("llama3-8b"), tokens=8192, causal=True)

    assert report.forward.attention == 524_288 * 33_558_528
    assert report.per_token.matmul == 15_009_316_864


def test_one_token_more_sees_all_of_the_context() -> None:
    report = paramcalc.flops(paramcalc.load("llama3-8b"), tokens=1, context=8192, batch=3)

    assert report.forward.total == 3 * (15_009_316_864 + 4_294_967_296)
    assert (
        report.forward
        == paramcalc.flops(paramcalc.load("llama3-8b"), tokens=1, context=8192, batch=3, causal=True).forward
    )


def test_a_tied_head_multiplies_and_an_embedding_does_not() -> None:
    """GPT-2: 12 x 12 x 768^2 matrices and 50,257 x 768 of the head, which is the embedding."""
    report = paramcalc.flops(paramcalc.load("gpt2"), tokens=1)

    assert report.forward.matmul == 2 * (84_934_656 + 38_597_376)
    assert report.components["head"].total == 2 * 38_597_376
    assert "embedding" not in report.components


def test_experts_count_as_often_as_a_token_uses_them() -> None:
    """Mixtral 8x7B: 32 layers x (router 8 x 4,096, and 2 of the experts of 3 x 4,096 x 14,336)."""
    one = paramcalc.flops(paramcalc.load(MOE), tokens=1)
    none = paramcalc.flops(paramcalc.load(MOE | {"num_local_experts": 4}), tokens=1)

    assert one.components["router"].total == 2 * 32 * 8 * 4096
    assert one.components["experts"].total == 2 * 32 * 2 * 3 * 4096 * 14336
    assert none.components["experts"] == one.components["experts"]


def test_an_indexer_limits_attention_to_what_it_keeps() -> None:
    """DeepSeek-V3.2's 61 layers of 128 heads: 192 + 128 channels for each of 2,048 tokens, not of 8,192.

    The indexer itself scores all: 64 heads of 128 channels, and their weighted sum.
    """
    report = paramcalc.flops(paramcalc.load({"model_type": "deepseek_v32"}), tokens=1, context=8192)

    attended = 2 * 61 * 128 * (192 + 128) * 2048
    assert report.forward.attention == attended + 2 * 61 * 64 * (128 + 1) * 8192
    assert "limit attention to 2,048 tokens" in report.notes[0]


def test_a_choice_limits_the_layers_that_share_it_too() -> None:
    """Two layers of 4 heads, 20 + 10 channels for each of 8 tokens; an indexer of 2 heads of 24 channels scores 100."""
    latent = dict(kv_lora_rank=16, q_lora_rank=24, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=10)
    index = dict(index_n_heads=2, index_head_dim=24, index_topk=8, indexer_types=["full", "shared"])
    sizes = dict(vocab_size=97, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4)
    model = paramcalc.load(dict(model_type="glm_moe_dsa", **sizes, **latent, **index))
    report = paramcalc.flops(model, tokens=1, context=100)

    assert report.forward.attention == 2 * 2 * 4 * (20 + 10) * 8 + 2 * 2 * (24 + 1) * 100


def test_blocks_that_an_indexer_picks_limit_attention() -> None:
    """MiniMax M3: one layer of 64 heads, 2 x 128 channels for 16 blocks of 128 keys; 4 heads of 128 score them all."""
    model = paramcalc.load(
        dict(model_type="minimax_m3_vl_text", num_hidden_layers=1, layer_types=["minimax_m3_sparse"])
    )
    report = paramcalc.flops(model, tokens=1, context=8192)

    assert report.forward.attention == 2 * 64 * 2 * 128 * 2048 + 2 * 4 * 128 * 8192
    assert "limit attention to 2,048 tokens" in report.notes[0]


def test_an_encoder_reads_its_source_once() -> None:
    model = paramcalc.load("t5-small")
    first, later = (paramcalc.flops(model, tokens=1, context=n, source=100).forward for n in (1, 2))

    # 6 layers of 4 x 512 x 512 and 2 x 512 x 2,048 for 100 tokens, their 100 x 100 scores and mixings of 512 channels,
    # and keys and values for the cross attention of 6 layers.
    assert (
        first.total - later.total == 100 * 2 * 6 * (3_145_728 + 2 * 262_144) + 4 * 6 * 512 * (100 * 100) - 4 * 6 * 512
    )


def test_encoders_have_no_past() -> None:
    with pytest.raises(ParamcalcError, match="an encoder has no cache"):
        paramcalc.flops(paramcalc.load("bert-base-uncased"), tokens=1, context=8)


def test_a_class_of_encoders_that_is_made_a_decoder_has_a_past() -> None:
    """Three layers of width 64, and a head that transforms and scores 97 tokens, for one token that sees twenty."""
    sizes = dict(vocab_size=97, hidden_size=64, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4)
    bert = dict(model_type="bert", is_decoder=True, architectures=["BertLMHeadModel"], **sizes)
    report = paramcalc.flops(paramcalc.load(bert), tokens=1, context=20)

    assert report.forward.attention == 3 * 2 * 2 * 20 * 64
    assert report.forward.matmul == 2 * (3 * (4 * 64 * 64 + 2 * 64 * 48) + 64 * 64 + 97 * 64)


def test_towers_are_left_out_and_that_is_said() -> None:
    whole = {
        "model_type": "llava",
        "text_config": {"model_type": "llama"},
        "vision_config": {"model_type": "clip_vision_model"},
    }
    text = paramcalc.flops(paramcalc.load({"model_type": "llama"}), tokens=7)
    report = paramcalc.flops(paramcalc.load(whole), tokens=7)

    assert report.components["ffn"] == text.components["ffn"]
    assert set(report.components) == {"attention", "ffn", "head"}
    assert "towers and projectors are not included" in report.notes[0]


@pytest.mark.parametrize(
    ("limit", "size", "asked", "pairs"),
    [
        ("none", 1, dict(tokens=4), 16),
        ("none", 1, dict(tokens=4, causal=True), 10),
        ("none", 1, dict(tokens=2, context=5), 10),
        ("none", 1, dict(tokens=2, context=5, causal=True), 9),  # 4 + 5
        ("window", 2, dict(tokens=4), 8),
        ("window", 2, dict(tokens=4, causal=True), 7),  # 1 + 2 + 2 + 2
        ("window", 4, dict(tokens=3, context=5, causal=True), 11),  # 3 + 4 + 4
        ("window", 9, dict(tokens=4), 16),
        ("window", 2, dict(tokens=4, counting="reference"), 16),
        ("chunk", 3, dict(tokens=5), 13),  # 3 x 3 + 2 x 2
        ("chunk", 3, dict(tokens=5, causal=True), 9),  # 1 + 2 + 3 + 1 + 2
        ("chunk", 3, dict(tokens=2, context=4), 4),  # the third sees three, the fourth itself
        ("chunk", 3, dict(tokens=2, context=4, causal=True), 4),
        ("chunk", 3, dict(tokens=5, counting="reference"), 25),
        ("stride", 4, dict(tokens=10), 20),  # two whole groups each
        ("stride", 4, dict(tokens=10, causal=True), 10),  # 3 x 0 + 4 x 1 + 3 x 2
        ("preceding stride", 4, dict(tokens=10), 10),
        ("preceding stride", 4, dict(tokens=2, context=8), 3),
    ],
)
def test_pairs(limit: str, size: int, asked: dict[str, Any], pairs: int) -> None:
    (row,) = (row for row in LIMITS if row.name == limit)

    assert FlopTerm("scores", 1, "attention", PER_PAIR, limit=row, size=size).times(check_workload(**asked)) == pairs


@pytest.mark.parametrize(
    ("asked", "pairs"),
    [
        (dict(tokens=20), 40),
        (dict(tokens=20, causal=True), 30),  # 3 x 0 + 4 x 1 + 13 x 2
        (dict(tokens=1, context=20), 2),
        (dict(tokens=20, counting="reference"), 100),
    ],
)
def test_an_indexer_picks_two_merged_keys(asked: dict[str, Any], pairs: int) -> None:
    work = FlopTerm("scores", 1, "attention", PER_PAIR, limit=STRIDE_LIMIT, size=4, max_keys=2)

    assert work.times(check_workload(**asked)) == pairs


@pytest.mark.parametrize(
    ("per", "asked", "times"),
    [
        ("chunk", dict(tokens=65), 2),
        ("chunk pair", dict(tokens=65), 9),
        ("block pair", dict(tokens=65), 64 * 64 + 1),
        ("step", dict(tokens=65), 0),
        ("chunk", dict(tokens=1, context=9), 0),
        ("step", dict(tokens=1, context=9), 1),
        ("call", dict(tokens=65), 1),
    ],
)
def test_recurrences_go_in_chunks_or_step_by_step(per: str, asked: dict[str, Any], times: int) -> None:
    assert FlopTerm("state", 1, "recurrence", PER[per], size=64).times(check_workload(**asked)) == times


def test_batches_multiply() -> None:
    assert FlopTerm("x", 1).times(check_workload(tokens=5, batch=3)) == 15
    assert FlopTerm("x", 1, per=PER_CALL).times(check_workload(tokens=5, batch=3)) == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (dict(tokens=0), "tokens must be a whole number"),
        (dict(tokens=True), "tokens must be a whole number"),
        (dict(tokens=5, context=4), "less than the new tokens"),
        (dict(tokens=5, counting="all"), "unknown counting"),
        (dict(tokens=5, causal="yes"), "causal must be"),
    ],
)
def test_settings_that_are_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ParamcalcError, match=said):
        check_workload(**asked)


# -- published rules ---------------------------------------------------------------------------------------------


def test_narayanan_counts_the_head_once_less() -> None:
    """2104.04473, section 5.1: 96 B s l h^2 (1 + s / 6h + V / 16 l h) for GPT-3 with B 1,536, s 2,048 and V 51,200.

    It is four passes of all but the head, of which it has three: 2 B s V h less than four passes of everything.
    """
    report = paramcalc.flops(paramcalc.load(GPT3 | {"vocab_size": 51200}), tokens=2048, batch=1536)

    assert report.training.with_recomputation - 4_510_970_753_323_106_304 == 2 * 1536 * 2048 * 51200 * 12288


def test_six_nd_of_gpt3() -> None:
    """2005.14165, table D.1: 174,600 million parameters, 300 billion tokens, 3.14e23 FLOPs; no attention in it."""
    report = paramcalc.flops(paramcalc.load(GPT3), tokens=2048)

    assert f"{report.rules.six_nd / 2048 * 300e9:.2e}" == "3.14e+23"
    # 6 for each of: positions 2,048 x 12,288, norms 96 x 4 x 12,288 + 2 x 12,288, biases 96 x 9 x 12,288.
    vectors = 25_165_824 + 4_718_592 + 24_576 + 10_616_832
    assert report.rules.six_nd == 2048 * (3 * report.per_token.matmul + 6 * vectors)


def test_palm_540b_as_its_appendix_has_it() -> None:
    """2204.02311, appendix B: 6N + 12 L H Q T; 238.3K tokens a second are 46.2 % of 6,144 x 275 TFLOPs."""
    model = paramcalc.load(PALM)
    report = paramcalc.flops(model, tokens=2048)

    assert paramcalc.count(model).parameters.total == 540_358_649_856
    assert report.rules.palm == 2048 * (6 * 540_358_649_856 + 12 * 118 * 48 * 256 * 2048)
    assert f"{report.rules.palm / 2048 * 238.3e3 / (6144 * 275e12):.3f}" == "0.462"


def test_llama2_7b_at_4096() -> None:
    """6ND has 6 x (32,000 x 4,096 looked up + 65 x 4,096 of norms) a token too much, and no attention."""
    report = paramcalc.flops(paramcalc.load("llama2-7b"), tokens=4096)

    assert report.per_token.matmul == 13_214_154_752
    assert report.per_token.attention == 2_147_483_648
    assert report.rules.six_nd == 4096 * (3 * 13_214_154_752 + 6 * 131_338_240)
    assert report.rules.palm == report.rules.six_nd + 4096 * 3 * 2_147_483_648


def test_the_palm_rule_has_the_whole_square_whatever_is_asked() -> None:
    """Gemma 3 1B at 8,192 tokens: 12 x 26 layers x 4 heads x 256 channels x 8,192, windows and masks or not."""
    model = paramcalc.load("gemma3-1b")
    report = paramcalc.flops(model, tokens=8192, causal=True)

    assert report.rules.palm - report.rules.six_nd == 8192 * 12 * 26 * 4 * 256 * 8192


# -- the command -------------------------------------------------------------------------------------------------


def test_the_command_takes_sizes_as_people_write_them(run: Run) -> None:
    code, out, _ = run("flops", "--preset", "llama3-8b", "--context", "8k", "--json")

    assert code == 0
    answer = json.loads(out)
    assert answer["assumptions"] == {
        "tokens": 8192,
        "context": 8192,
        "source": 8192,
        "batch": 1,
        "causal": False,
        "counting": "needed",
    }
    assert answer["per_token"]["total"] == 19_304_284_160
    assert answer == paramcalc.flops(paramcalc.load("llama3-8b"), tokens=8192).model_dump(mode="json")


def test_one_token_at_the_end_of_a_context(run: Run) -> None:
    _, out, _ = run("flops", "llama3-8b", "-c", "8k", "--tokens", "1", "--format", "csv")

    (row,) = csv.DictReader(io.StringIO(out))
    assert row["forward_total"] == row["forward_per_token"] == "19304284160"
    assert row["attention"] == "full"


def test_parts_add_up_to_the_total(run: Run) -> None:
    _, out, _ = run("flops", "mixtral-8x7b", "-t", "3", "--by-part", "--format", "csv")

    rows = list(csv.DictReader(io.StringIO(out)))
    expected = paramcalc.flops(paramcalc.load("mixtral-8x7b"), tokens=3).forward.total
    assert sum(int(row["flops"]) for row in rows) == expected


def test_the_table_shows_passes_and_rules(run: Run) -> None:
    _, out, _ = run("flops", "llama2-7b", "-t", "4k", "--explain")

    assert "188,763,812,659,200" in out  # forward + backward
    assert "165,603,302,178,816" in out  # 6ND
    assert "191,991,581,245,440" in out  # PaLM
    assert "full attention" in out


def test_several_models_are_one_row_each(run: Run) -> None:
    _, out, _ = run("flops", "llama3-8b", "gemma3-1b", "-c", "8k", "--causal", "--format", "markdown")

    assert out.count("\n") == 4
    assert "| gemma3-1b | exact |" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tokens", "9", "--context", "8"), "error: context (8) is less than the new tokens (9)"),
        (("--tokens", "many"), "error: 'many' is not a number of tokens"),
        (("--counting", "all"), "error: unknown counting 'all'"),
    ],
)
def test_what_is_not_understood_is_an_error(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, _, err = run("flops", "llama3-8b", *arguments)

    assert code == 2
    assert err.startswith(said)


# -- every component states its work -----------------------------------------------------------------------------


def components() -> Iterator[type[Component]]:
    """Every class of component, wherever it is."""
    for room in SUBMODULES:
        importlib.import_module(f"paramcalc.components.{room}")
    waiting = [Component]
    while waiting:
        below = waiting.pop().__subclasses__()
        waiting += below
        yield from (cls for cls in below if cls.__module__.startswith("paramcalc."))


@pytest.mark.parametrize("cls", list(components()), ids=lambda cls: cls.__name__)
def test_every_component_states_its_work(cls: type[Component]) -> None:
    assert cls.own_ops is not Component.own_ops or cls.ops is not Component.ops


def test_a_component_without_a_statement_fails() -> None:
    class Silent(Component):
        pass

    with pytest.raises(NotImplementedError, match="Silent states no operations"):
        list(Silent().ops())


def test_depth_and_experts_cost_nothing() -> None:
    def terms(fields: dict[str, Any]) -> int:
        return len(paramcalc.flops(paramcalc.load(MOE | fields), tokens=2).terms)

    assert terms({"num_hidden_layers": 10_000, "num_local_experts": 512}) == terms({"num_hidden_layers": 1})


def test_terms_and_categories_add_up() -> None:
    report = paramcalc.flops(paramcalc.load("qwen3-next-80b-a3b"), tokens=100)

    assert sum(term.flops for term in report.terms) == report.forward.total
    assert sum(share.total for share in report.components.values()) == report.forward.total


def test_a_setting_is_plain_data() -> None:
    assert Workload(tokens=2, context=3, source=3).past == 1


def test_an_encoder_that_always_reads_as_much_does_so_here_too() -> None:
    """Whisper's is of 1,500 positions: cross attention of one token scores and mixes 20 heads of 64 with each of them,
    in 32 layers; the cache says the same."""
    model = paramcalc.load("whisper-large-v3")
    first, longer = (paramcalc.flops(model, tokens=1, context=448, source=source) for source in (None, 1501))

    assert first.assumptions.source == 1500
    assert longer.forward.total - first.forward.total == 2 * 2 * 20 * 64 * 32
    step = paramcalc.scale(model, {"vocab_size": [51_866]}, context=448).rows[0].flops
    assert step is not None
    assert step.forward_per_token == first.forward.total


def test_more_tokens_than_positions_are_told() -> None:
    notes = paramcalc.flops(paramcalc.load("gpt2"), tokens=1, context=2048).notes

    assert "a context of 2,048 tokens is beyond the config's n_positions of 1,024" in notes
    assert not any("beyond" in note for note in paramcalc.flops(paramcalc.load("gpt2"), tokens=1024).notes)
