"""What tools get wrong about the bytes of weights and caches: each kind once.

Numbers are published figures or worked out by hand.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

import paramcalc
from paramcalc.reports.memory import MemoryReport
from tests.conftest import Run

GIB = 2**30


def memory(source: Any, context: int = 8192, **assumptions: Any) -> MemoryReport:
    return paramcalc.memory(paramcalc.load(source), context=context, **assumptions)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        # 4 bits, and for each 128 inputs a 16-bit scale and a 4-bit zero; GPTQ has 32 bits of g_idx for each input
        ("gptq-int4-g128", Decimal("4.1640625")),
        ("awq-int4-g128", Decimal("4.15625")),
        ("w4a16-g128", Decimal("4.125")),
        ("nf4", Decimal("4.5")),
        ("nf4-dq", Decimal("4.126953125")),
        ("mxfp4", Decimal("4.25")),
        ("mlx-int4-g64", Decimal("4.5")),
        ("q4_0", Decimal("4.5")),
        ("q8_0", Decimal("8.5")),
    ],
)
def test_four_bits_are_not_four(run: Run, name: str, bits: Decimal) -> None:
    (found,) = [json.loads(run("dtypes", name, "--json")[1])]

    assert abs(Decimal(found["bits"]) - bits) < Decimal("0.0001")


def test_embeddings_head_norms_and_routers_stay_in_16_bits() -> None:
    report = memory("mixtral-8x7b", dtype="nf4")
    sixteen = 2 * 32_000 * 4_096 + 65 * 4_096 + 32 * 8 * 4_096

    assert report.weights.by_format["bfloat16"].bytes == 2 * sixteen


def test_what_a_layer_keeps() -> None:
    """Key/value heads, not heads; head_dim as read; values of another width; windows; borrowed caches; wide globals."""
    llama = dict(model_type="llama", hidden_size=64, num_attention_heads=8, num_key_value_heads=2, dtype="bfloat16")
    assert memory(llama | dict(head_dim=24, num_hidden_layers=3)).kv_cache.bytes_per_token == 3 * 2 * 2 * 24 * 2

    gemma = dict(model_type="gemma3_text", num_hidden_layers=6, num_key_value_heads=2, head_dim=8, dtype="bfloat16")
    found = memory(gemma | dict(sliding_window=512)).kv_cache.per_sequence
    assert (found.per_token, [(w.tokens, w.bytes_per_entry) for w in found.windows]) == (64, [(512, 5 * 64)])

    mimo = dict(model_type="mimo_v2_flash", num_hidden_layers=1, head_dim=24, v_head_dim=16, dtype="bfloat16")
    first = mimo | dict(num_key_value_heads=4, hybrid_layer_pattern=[0])
    assert memory(first).kv_cache.bytes_per_token == 4 * (24 + 16) * 2

    shared = dict(model_type="gemma4_text", num_hidden_layers=4, layer_types=["full_attention"] * 4, dtype="bfloat16")
    sizes = dict(num_key_value_heads=2, num_global_key_value_heads=1, head_dim=8, global_head_dim=32)
    own = memory(shared | sizes | dict(num_kv_shared_layers=0)).kv_cache.bytes_per_token
    assert memory(shared | sizes | dict(num_kv_shared_layers=1)).kv_cache.bytes_per_token * 4 == own * 3


def test_linear_attention_keeps_a_state_that_does_not_grow() -> None:
    short, long = (memory("mamba-130m", context) for context in (1, 100_000))

    assert short.state.bytes == long.state.bytes > 0
    assert long.kv_cache.bytes == 0


def test_latent_attention_keeps_one_latent_or_says_that_it_does_not(run: Run) -> None:
    assert memory("deepseek-v3").kv_cache.bytes_per_token == 70_272
    assert memory("deepseek-v3", mla="expanded").kv_cache.bytes_per_token == 61 * 128 * (192 + 128) * 2
    for form in ("latent", "expanded"):
        assert f"mla {form}" in run("memory", "deepseek-v3", "--mla", form)[1].splitlines()[1]


def test_windows_and_full_pages_are_two_policies(run: Run) -> None:
    windowed = memory("gpt-oss-20b", batch=32)
    uniform = memory("gpt-oss-20b", batch=32, kv_policy="uniform")

    assert (windowed.kv_cache.bytes, windowed.assumptions.kv_policy) == (6_543_114_240, "windowed")
    assert (uniform.kv_cache.bytes, uniform.assumptions.kv_policy) == (12 * GIB, "uniform")
    for policy in ("windowed", "uniform"):
        out = run("memory", "gpt-oss-20b", "--kv-policy", policy)[1]
        assert f"policy {policy}" in out.splitlines()[1]
        assert f"note: policy {policy}: " in out


@pytest.mark.parametrize(("devices", "heads"), [(1, 4), (2, 2), (4, 1), (8, 1), (16, 1)])
def test_key_value_heads_are_replicated_and_latents_always(devices: int, heads: int) -> None:
    """Qwen3-235B-A22B has 94 layers and 4 key/value heads of 128 channels."""
    qwen = memory("qwen3-235b-a22b", 1, tensor_parallel=devices).per_device
    latent = memory("deepseek-v3", 1, tensor_parallel=devices).per_device

    assert qwen.kv_cache.bytes == 94 * 2 * heads * 128 * 2
    assert latent.kv_cache.bytes == 70_272


def test_devices_divide_the_heads(run: Run) -> None:
    code, _, err = run("memory", "llama3-8b", "--tensor-parallel-size", "6")

    assert code == 2
    assert err.splitlines()[1] == "hint: use one of 1, 2, 4, 8, 16, 32"


def test_a_cache_grows_as_a_plus_b_times_tokens() -> None:
    """MiMo and its kin: windows are full after their size, so there are two rates; each sequence has its own."""
    found = memory("gpt-oss-20b", 1000, batch=3).kv_cache

    assert found.per_sequence.per_token == 24_576
    assert [(w.tokens, w.bytes_per_entry) for w in found.per_sequence.windows] == [(128, 24_576)]
    assert found.bytes == 3 * (128 * 24_576 + 1000 * 24_576)
    assert memory("mamba-130m", batch=3).state.bytes == 3 * memory("mamba-130m").state.bytes


def test_keys_and_values_have_dtypes_of_their_own() -> None:
    keys = memory("llama3-8b", 1, kv_cache_dtype="q8_0", v_cache_dtype="q4_0").kv_cache

    assert keys.bytes == 32 * (8 * 128 * 34 // 32 + 8 * 128 * 18 // 32)
    assert keys.dtype == "q8_0 / q4_0"


def test_auto_follows_the_checkpoint_then_the_activations() -> None:
    scheme = {"num_bits": 8, "type": "float", "dynamic": False}
    stated = {"quant_method": "compressed-tensors", "config_groups": {}, "kv_cache_scheme": scheme}
    model = paramcalc.load("llama3-8b", overrides={"quantization_config": stated})
    asked = paramcalc.memory(model, context=1, kv_cache_dtype="auto").kv_cache

    assert (asked.dtype, asked.bytes) == ("float8_e4m3fn", 65_536)
    assert memory("llama3-8b", 1, kv_cache_dtype="auto").kv_cache.bytes == 131_072


def test_128k_is_131072_tokens_and_is_printed_so(run: Run) -> None:
    for text, tokens in (("128k", "131,072"), ("128000", "128,000"), ("128K", "131,072")):
        assert f"context {tokens} tokens" in run("memory", "llama3-8b", "-c", text)[1].splitlines()[1]


def test_encoders_have_no_cache() -> None:
    report = memory("bert-base-uncased", 512)

    assert (report.kv_cache.bytes, report.state.bytes) == (0, 0)
    assert report.notes == ("no KV cache or state: the model reads all of the input at once",)


def test_gigabytes_are_not_gibibytes(run: Run) -> None:
    model = paramcalc.load("llama3-8b")
    sizes = {name: paramcalc.fit(model, gpu=name, context=1).gpu.memory_bytes for name in ("24GB", "24GiB", "a100")}

    assert sizes == {"24GB": 24 * 10**9, "24GiB": 24 * GIB, "a100": 81_920 * 2**20}
    assert "GB" not in run("memory", "llama3-8b")[1].replace("GiB", "")
