"""Caches and states by policies, dtypes and published figures. What transformers holds: test_cache_goldens.py."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import paramcalc
from paramcalc.assumptions import assume
from paramcalc.footprint import cache
from paramcalc.reports.memory import MemoryReport

GIB = 2**30

# The fields of published config.json files that decide what is kept.
LLAMA2_70B = dict(
    model_type="llama", hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64
) | dict(num_key_value_heads=8, torch_dtype="bfloat16")
DEEPSEEK_V3 = dict(
    model_type="deepseek_v3", hidden_size=7168, num_hidden_layers=61, num_attention_heads=128, kv_lora_rank=512
) | dict(q_lora_rank=1536, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, torch_dtype="bfloat16")
GEMMA3_27B = dict(
    model_type="gemma3_text", hidden_size=5376, intermediate_size=21504, num_hidden_layers=62, num_attention_heads=32
) | dict(num_key_value_heads=16, head_dim=128, sliding_window=1024, sliding_window_pattern=6, torch_dtype="bfloat16")
GPT_OSS_20B = dict(
    model_type="gpt_oss", hidden_size=2880, num_hidden_layers=24, num_attention_heads=64, num_key_value_heads=8
) | dict(head_dim=64, sliding_window=128, num_local_experts=32, torch_dtype="bfloat16")
GEMMA4_31B = (
    dict(
        model_type="gemma4_text",
        hidden_size=5376,
        intermediate_size=21504,
        num_hidden_layers=60,
        num_attention_heads=32,
    )
    | dict(num_key_value_heads=16, head_dim=256, global_head_dim=512, num_global_key_value_heads=4)
    | dict(
        attention_k_eq_v=True, sliding_window=1024, hidden_size_per_layer_input=0, dtype="bfloat16", vocab_size=262144
    )
)
MIMO_V2_FLASH = dict(
    model_type="mimo_v2_flash", hidden_size=4096, intermediate_size=16384, num_hidden_layers=48, vocab_size=152576
) | dict(
    num_attention_heads=64,
    num_key_value_heads=4,
    head_dim=192,
    v_head_dim=128,
    swa_num_attention_heads=64,
    swa_num_key_value_heads=8,
    swa_head_dim=192,
    swa_v_head_dim=128,
    sliding_window=128,
    torch_dtype="bfloat16",
)
QWEN35_35B_A3B = dict(
    model_type="qwen3_5_moe_text", hidden_size=2048, num_hidden_layers=40, num_attention_heads=16, head_dim=256
) | dict(
    num_key_value_heads=2,
    linear_num_key_heads=16,
    linear_num_value_heads=32,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    linear_conv_kernel_dim=4,
    full_attention_interval=4,
    dtype="bfloat16",
)
NEMOTRON_H_8B = dict(
    model_type="nemotron_h", hidden_size=4096, intermediate_size=21504, num_hidden_layers=52, num_attention_heads=32
) | dict(
    num_key_value_heads=8,
    head_dim=128,
    mamba_num_heads=128,
    mamba_head_dim=64,
    ssm_state_size=128,
    n_groups=8,
    conv_kernel=4,
    torch_dtype="bfloat16",
    hybrid_override_pattern="M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
)


def memory(config: Any, *, context: int = 4096, **assumptions: Any) -> MemoryReport:
    return paramcalc.memory(paramcalc.load(config), context=context, **assumptions)


def tiny(**others: Any) -> dict[str, Any]:
    """A Llama whose every token keeps 2 x 3 x 2 x 64 numbers."""
    sizes = dict(vocab_size=97, hidden_size=128, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4)
    return dict(model_type="llama", num_key_value_heads=2, head_dim=64, torch_dtype="bfloat16") | sizes | others


# -- published figures -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "per_token"),
    [
        ("llama3-8b", 131_072),
        (LLAMA2_70B, 327_680),
        (DEEPSEEK_V3, 70_272),
        (GEMMA4_31B, 901_120),
        ("mixtral-8x7b", 131_072),
        ("qwen3-30b-a3b", 98_304),
        ("jamba-v0.1", 16_384),
        ("deepseek-v2-lite", 31_104),
    ],
)
def test_bytes_of_each_token(config: Any, per_token: int) -> None:
    assert memory(config).kv_cache.bytes_per_token == per_token


def test_gemma3_27b_at_128k() -> None:
    """10 layers keep all of it and 52 a window of 1024: 10.41 GiB; engines that reserve full pages: 62.0 GiB."""
    windowed = memory(GEMMA3_27B, context=131_072).kv_cache
    uniform = memory(GEMMA3_27B, context=131_072, kv_policy="uniform").kv_cache

    assert windowed.per_sequence.per_token == 81_920
    assert [limit.model_dump() for limit in windowed.per_sequence.windows] == [
        {"tokens": 1024, "bytes_per_entry": 425_984}
    ]
    assert windowed.bytes == 131_072 * 81_920 + 1024 * 425_984 == 11_173_625_856
    assert f"{windowed.bytes / GIB:.2f}" == "10.41"
    assert uniform.bytes == 131_072 * (81_920 + 425_984)
    assert f"{uniform.bytes / GIB:.1f}" == "62.0"


def test_gpt_oss_20b_with_32_sequences_of_8192() -> None:
    windowed = memory(GPT_OSS_20B, context=8192, batch=32).kv_cache
    uniform = memory(GPT_OSS_20B, context=8192, batch=32, kv_policy="uniform").kv_cache

    assert f"{windowed.bytes / GIB:.2f}" == "6.09"
    assert f"{uniform.bytes / GIB:.2f}" == "12.00"


def test_deepseek_v3_latent_and_expanded() -> None:
    """61 layers x (512 + 64), or 128 heads of 192 key and 128 value channels."""
    assert memory(DEEPSEEK_V3, context=16_384).kv_cache.bytes == 1098 * 2**20
    assert memory(DEEPSEEK_V3, mla="expanded").kv_cache.bytes_per_token == 4_997_120
    assert memory(DEEPSEEK_V3, mla="latent").kv_cache.latent


def test_gemma4_31b_at_256k() -> None:
    """10 global layers of 4 heads x 512, keys and values though one projection makes both; 50 of 16 x 256."""
    report = memory(GEMMA4_31B, context=262_144)

    assert report.kv_cache.bytes == 22_313_697_280
    assert memory(GEMMA4_31B, context=262_144, kv_policy="uniform").kv_cache.bytes == 236_223_201_280


def test_mimo_v2_flash_has_values_of_another_width() -> None:
    """9 full layers of 4 heads, 39 windows of 8 heads: 192 key and 128 value channels each."""
    kept = memory(MIMO_V2_FLASH).kv_cache.per_sequence

    assert kept.per_token == 23_040
    assert [(limit.tokens, limit.bytes_per_entry) for limit in kept.windows] == [(128, 199_680)]


def test_nemotron_h_8b_keeps_states_beside_4_layers_of_attention() -> None:
    """24 Mamba-2 layers of 128 heads x 64 x 128 in float32, and (8192 + 2 x 8 x 128) channels x 4 columns."""
    report = memory(NEMOTRON_H_8B)

    assert report.kv_cache.bytes_per_token == 16_384
    assert report.state.bytes == 24 * (128 * 64 * 128 * 4 + 10_240 * 4 * 2)


@pytest.mark.parametrize(("columns", "conv_bytes"), [("kernel", 1_966_080), ("kernel-1", 1_474_560)])
def test_qwen35_35b_a3b_has_a_fixed_state(columns: str, conv_bytes: int) -> None:
    """30 layers of 32 heads x 128 x 128 in float32, and 8192 channels behind a convolution."""
    report = memory(QWEN35_35B_A3B, batch=2, conv_columns=columns)

    assert report.kv_cache.bytes_per_token == 20_480
    assert report.state.per_sequence == 62_914_560 + conv_bytes
    assert report.state.bytes == 2 * report.state.per_sequence


def test_state_dtype_is_that_of_the_reference_unless_asked() -> None:
    assert memory(QWEN35_35B_A3B, state_dtype="bfloat16").state.per_sequence == 31_457_280 + 1_966_080


# Log lines of llama.cpp, "KV self size": (model, tokens, K, V, MiB). Sources in the pull requests of ik_llama.cpp.
@pytest.mark.parametrize(
    ("config", "context", "keys", "values", "mib"),
    [
        ("llama3.1-8b", 16_384, "f16", "f16", "2048.00"),
        ("llama3.1-8b", 1024, "iq4_nl", "f16", "82.00"),
        ("qwen3-32b", 16_896, "q8_0", "q8_0", "2244.00"),
        ("qwen3-235b-a22b", 4096, "q8_0", "q8_0", "399.50"),
        ("qwen3-235b-a22b", 8192, "q8_0", "f16", "1151.50"),
        ("qwen3-235b-a22b", 32_768, "q4_0", "q4_0", "1692.00"),
        (DEEPSEEK_V3, 16_384, "q8_0", "q8_0", "583.31"),
        (DEEPSEEK_V3, 163_840, "q8_0", "q8_0", "5833.12"),
        (GEMMA3_27B | {"sliding_window": 10**6}, 32_768, "f16", "f16", "15872.00"),
    ],
)
def test_logged_sizes(config: Any, context: int, keys: str, values: str, mib: str) -> None:
    report = memory(config, context=context, kv_cache_dtype=keys, v_cache_dtype=values)

    assert f"{report.kv_cache.bytes / 2**20:.2f}" == mib


# -- dtypes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "per_token"),
    [
        (None, 1536),
        ("auto", 1536),
        ("BF16", 1536),
        ("float32", 3072),
        ("fp8", 768),
        ("fp8_e5m2", 768),
        ("q8_0", 816),  # 8.5 bits
        ("q4_0", 432),  # 4.5 bits
    ],
)
def test_cache_dtypes(asked: str | None, per_token: int) -> None:
    assert memory(tiny(), kv_cache_dtype=asked).kv_cache.bytes_per_token == per_token


def test_values_may_have_a_dtype_of_their_own() -> None:
    report = memory(tiny(), kv_cache_dtype="q8_0", v_cache_dtype="q4_0")

    assert report.kv_cache.bytes_per_token == 408 + 216
    assert report.kv_cache.dtype == "q8_0 / q4_0"


@pytest.mark.parametrize(
    "stated",
    [{"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, {"quant_algo": "FP8", "kv_cache_quant_algo": "INT8"}],
)
def test_modelopt_names_an_algorithm_for_the_cache(stated: dict[str, Any]) -> None:
    config = tiny(quantization_config={"quant_method": "modelopt"} | stated)

    assert memory(config).kv_cache.bytes_per_token == 768


@pytest.mark.parametrize(
    ("scheme", "per_token"),
    [
        ({"kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": False}}, 768),
        ({"kv_cache_scheme": {"num_bits": 8, "type": "int"}}, 768),
        ({"kv_cache_scheme": None}, 1536),
        ({}, 1536),
    ],
)
def test_the_checkpoint_says_how_its_cache_is_quantised(scheme: dict[str, Any], per_token: int) -> None:
    config = tiny(quantization_config={"quant_method": "compressed-tensors", "config_groups": {}} | scheme)

    assert memory(config).kv_cache.bytes_per_token == per_token
    assert memory(config, kv_cache_dtype="bfloat16").kv_cache.bytes_per_token == 1536


def test_a_scheme_that_is_not_known_is_said() -> None:
    scheme = {"num_bits": 3, "type": "float"}
    report = memory(tiny(quantization_config={"quant_method": "modelopt", "kv_cache_scheme": scheme}))

    assert report.model.status == "approximate"
    assert any("KV-cache quantisation of the checkpoint" in warning for warning in report.warnings)
    assert report.kv_cache.bytes_per_token == 1536


def test_unknown_cache_dtypes_name_the_choices() -> None:
    with pytest.raises(paramcalc.ParamcalcError, match="unknown dtype 'q9_0'") as caught:
        memory(tiny(), kv_cache_dtype="q9_0")

    assert "q8_0" in str(caught.value.hint)


# -- kinds of caches ---------------------------------------------------------------------------------------------


def test_encoders_keep_nothing_and_say_so() -> None:
    report = memory("bert-base-uncased", context=512)

    assert report.kv_cache.bytes == report.state.bytes == 0
    assert report.notes == ("no KV cache or state: the model reads all of the input at once",)


def test_a_decoder_keeps_what_its_encoder_made_once() -> None:
    """T5-base: 12 layers x 2 x 768 channels of the decoder's tokens, and as many of the encoder's."""
    config = dict(model_type="t5", d_model=768, num_heads=12, num_layers=12, d_ff=3072, torch_dtype="bfloat16")
    kept = memory(config, context=100, source=512).kv_cache.per_sequence

    assert kept.per_token == 36_864
    assert kept.fixed == 512 * 36_864


def test_whisper_hears_1500_frames_whatever_is_asked() -> None:
    config = dict(model_type="whisper", d_model=384, decoder_layers=4, decoder_attention_heads=6, torch_dtype="float16")

    assert memory(config, context=448, source=3).kv_cache.per_sequence.fixed == 1500 * 4 * 2 * 384 * 2


def test_layers_that_borrow_keep_nothing() -> None:
    """Gemma 3n E4B: 20 of 35 layers have keys and values of their own, of which 4 keep all of 2 x 256 channels."""
    kept = memory(dict(model_type="gemma3n_text", torch_dtype="bfloat16")).kv_cache.per_sequence

    assert kept.per_token == 4 * 2 * 2 * 256 * 2
    assert [(limit.tokens, limit.bytes_per_entry) for limit in kept.windows] == [(512, 16 * 2 * 2 * 256 * 2)]


def test_shared_blocks_keep_something_at_every_pass() -> None:
    """Zamba-7B: one attention block, run 13 times, keeps 13 caches of 2 x 7424 channels, twice its width."""
    assert memory(dict(model_type="zamba", torch_dtype="bfloat16")).kv_cache.bytes_per_token == 13 * 2 * 7424 * 2


def test_learned_tokens_are_kept_beside_the_text() -> None:
    report = memory(dict(model_type="cpmant", torch_dtype="float16"), context=1)

    assert report.kv_cache.per_sequence.fixed == 32 * report.kv_cache.per_sequence.per_token


def test_hymba_keeps_its_memory_tokens_and_says_that_it_was_not_run() -> None:
    """2 layers of 2 heads, keys of 64 and values of 128 channels, 8 learned tokens before each text."""
    config = dict(model_type="hymba", hidden_size=256, intermediate_size=512, num_hidden_layers=2, vocab_size=97)
    config |= dict(num_attention_heads=4, num_key_value_heads=2, num_memory_tokens=8, torch_dtype="bfloat16")
    report = memory(config, context=1)

    assert report.kv_cache.per_sequence.per_token == 2 * 2 * (64 + 128) * 2
    assert report.kv_cache.per_sequence.fixed == 8 * report.kv_cache.per_sequence.per_token
    assert report.model.status == "approximate"
    assert any("was not run" in warning for warning in report.warnings)


def test_notes_name_the_option_that_gives_the_other_figure() -> None:
    notes = " ".join(memory(DEEPSEEK_V3).notes + memory(GPT_OSS_20B).notes + memory(QWEN35_35B_A3B).notes)

    for option in ("--mla expanded", "--kv-policy uniform", "--conv-columns kernel-1", "--state-dtype"):
        assert option in notes


def test_a_cache_that_is_not_known_is_no_silent_number() -> None:
    report = memory(dict(model_type="blt"))

    assert report.model.status == "approximate"
    assert any("patches" in warning for warning in report.warnings)


def test_a_window_on_what_is_written_alone_is_no_silent_number() -> None:
    """Unlimited-OCR keeps all that it reads: 12 layers x 2 x 1280 channels for each token, unless it wrote them."""
    report = memory(dict(model_type="unlimited_ocr_text", torch_dtype="bfloat16"), context=1000)

    assert report.kv_cache.bytes == 1000 * 12 * 2 * 1280 * 2
    assert report.model.status == "approximate"
    assert any("generated tokens" in warning and "last 128" in warning for warning in report.warnings)
    whole = memory(dict(model_type="unlimited_ocr_text", layer_types=["full_attention"] * 12))
    assert whole.model.status == "exact"


# -- properties --------------------------------------------------------------------------------------------------

MODELS: dict[str, paramcalc.Model] = {
    str(config["model_type"]): paramcalc.load(config)
    for config in (GEMMA3_27B, DEEPSEEK_V3, QWEN35_35B_A3B, GEMMA4_31B, dict(model_type="deepseek_v4"), tiny())
}
TOKENS = st.integers(1, 300_000)


def kept_bytes(name: str, **assumptions: Any) -> int:
    figures = cache.cache_figures(MODELS[name], assume(**assumptions))
    return int(figures["kv_cache"]["bytes"] + figures["state"]["bytes"])


@given(name=st.sampled_from(sorted(MODELS)), tokens=TOKENS, more=st.integers(0, 10_000))
def test_more_tokens_never_take_less(name: str, tokens: int, more: int) -> None:
    assert kept_bytes(name, context=tokens + more) >= kept_bytes(name, context=tokens)


@given(name=st.sampled_from(sorted(MODELS)), tokens=TOKENS)
def test_windows_never_take_more_than_full_pages(name: str, tokens: int) -> None:
    assert kept_bytes(name, context=tokens) <= kept_bytes(name, context=tokens, kv_policy="uniform")


@given(name=st.sampled_from(sorted(MODELS)), tokens=TOKENS, batch=st.integers(1, 1000))
def test_sequences_share_nothing(name: str, tokens: int, batch: int) -> None:
    assert kept_bytes(name, context=tokens, batch=batch) == batch * kept_bytes(name, context=tokens)


@given(name=st.sampled_from(sorted(MODELS)), tokens=TOKENS)
def test_latents_are_smaller_than_what_is_made_of_them(name: str, tokens: int) -> None:
    assert kept_bytes(name, context=tokens) <= kept_bytes(name, context=tokens, mla="expanded")


@given(name=st.sampled_from(sorted(MODELS)), tokens=TOKENS)
def test_the_parts_of_a_sequence_add_up(name: str, tokens: int) -> None:
    kept = cache.cache_figures(MODELS[name], assume(context=tokens))["kv_cache"]["per_sequence"]
    windows = sum(min(tokens, limit["tokens"]) * limit["bytes_per_entry"] for limit in kept["windows"])
    strides = sum(tokens // limit["tokens"] * limit["bytes_per_entry"] for limit in kept["strides"])

    assert kept["bytes"] == kept["fixed"] + kept["per_token"] * tokens + windows + strides
