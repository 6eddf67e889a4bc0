"""What each device holds: derived by hand from the rules, tensor by tensor."""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc
from paramcalc.parallel.pipeline import layers_per_stage
from paramcalc.render.memory import memory_table
from paramcalc.render.table import render_text


def held(name: str, **assumptions: Any) -> Any:
    """The fullest device of a preset in bf16."""
    wanted: dict[str, Any] = {"context": 8192, "batch": 4, "dtype": "bfloat16"} | assumptions
    return paramcalc.memory(paramcalc.load(name), **wanted).per_device


# A layer of Llama-3-8B has q and o of 4096 x 4096, k and v of 1024 x 4096, three matrices of 14336 x 4096 and two norms
# of 4096; around the layers are two tables of 128256 x 4096 and a norm. With sixteen devices, two hold the same one of
# the eight key/value heads, 128 x 4096.
LLAMA = {
    1: 2 * (32 * (2 * 16_777_216 + 2 * 4_194_304 + 3 * 58_720_256 + 8_192) + 2 * 525_336_576 + 4_096),
    2: 2 * (32 * (2 * 8_388_608 + 2 * 2_097_152 + 3 * 29_360_128 + 8_192) + 2 * 262_668_288 + 4_096),
    4: 2 * (32 * (2 * 4_194_304 + 2 * 1_048_576 + 3 * 14_680_064 + 8_192) + 2 * 131_334_144 + 4_096),
    8: 2 * (32 * (2 * 2_097_152 + 2 * 524_288 + 3 * 7_340_032 + 8_192) + 2 * 65_667_072 + 4_096),
    16: 2 * (32 * (2 * 1_048_576 + 2 * 524_288 + 3 * 3_670_016 + 8_192) + 2 * 32_833_536 + 4_096),
}


@pytest.mark.parametrize(
    ("devices", "cache"),
    # 2 x 32 layers x heads on the device x 128 channels x 2 bytes, for 4 x 8192 tokens
    [(1, 4_294_967_296), (2, 2_147_483_648), (4, 1_073_741_824), (8, 536_870_912), (16, 536_870_912)],
)
def test_llama3_8b_under_tensor_parallelism(devices: int, cache: int) -> None:
    found = held("llama3-8b", tensor_parallel=devices)

    assert found.devices == devices
    assert found.weights.bytes == LLAMA[devices]
    assert found.kv_cache.bytes == cache


def test_the_rules_of_llama3_8b_on_two_devices() -> None:
    rules = held("llama3-8b", tensor_parallel=2).sharding

    assert {name: (share.tensors, share.bytes) for name, share in rules.items()} == {
        "column": (160, 2 * 32 * (8_388_608 + 2 * 2_097_152 + 2 * 29_360_128)),
        "row": (64, 2 * 32 * (8_388_608 + 29_360_128)),
        "vocab": (2, 2 * 2 * 262_668_288),
        "replicated": (65, 2 * 65 * 4_096),
    }


def test_the_rules_say_which_tensors_they_divide() -> None:
    rules = held("mixtral-8x7b", tensor_parallel=2).sharding

    assert {name: [path.split(".")[-2] for path in share.weights] for name, share in rules.items()} == {
        "column": ["q_proj", "k_proj", "v_proj"],
        "row": ["o_proj"],
        "vocab": ["embed_tokens", "lm_head"],
        "expert": ["gate_proj", "up_proj", "down_proj"],
        "replicated": ["input_norm", "post_norm", "gate", "norm"],
    }


def test_experts_of_mixtral_one_on_each_of_eight_devices() -> None:
    """Expert parallelism alone: attention, norms, routers and tables are on each device whole."""
    found = held("mixtral-8x7b", expert_parallel=8)
    expert = 3 * 4096 * 14336
    whole = 32 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 8 * 4096 + 2 * 4096) + 2 * 32000 * 4096 + 4096

    assert found.devices == 8
    assert found.weights.bytes == 2 * (whole + 32 * expert)
    assert found.sharding["expert"].tensors == 32 * 3
    assert found.kv_cache.bytes == 4 * 8192 * 131_072  # each device answers the whole batch


def test_experts_are_dealt_out_to_all_data_parallel_groups() -> None:
    """Two groups of four: attention divided by four, experts by eight, half of the batch for each group."""
    found = held("mixtral-8x7b", tensor_parallel=4, data_parallel=2, expert_parallel=8)
    layer = (2 * 4096 * 4096 + 2 * 1024 * 4096) // 4 + 8 * 4096 + 2 * 4096 + 3 * 4096 * 14336

    assert found.devices == 8
    assert found.weights.bytes == 2 * (32 * layer + 2 * 32000 * 4096 // 4 + 4096)
    assert found.kv_cache.bytes == 2 * 8192 * 131_072 // 4


def test_without_expert_parallelism_every_device_has_a_slice_of_every_expert() -> None:
    both = [held("mixtral-8x7b", tensor_parallel=8, expert_parallel=experts) for experts in (1, 8)]

    assert both[0].weights.bytes == both[1].weights.bytes
    assert [one.sharding["expert"].tensors for one in both] == [32 * 8 * 3, 32 * 3]


# DeepSeek-V3 on eight devices, experts whole. Of a layer's attention each has q_a (1536 x 7168), kv_a (576 x 7168) and
# four norms whole; of q_b (24576 x 1536), kv_b (32768 x 512) and o (7168 x 16384) an eighth. 3 layers have an FFN of
# 18432, 58 a router of 256, 256 experts of 2048, of which the device has 32, and a shared one. The routers'
# corrections, one float32 for each expert, are buffers, held whole.
ATTENTION = (1536 + 576) * 7168 + 1536 + 512 + 2 * 7168 + (24576 * 1536 + 32768 * 512 + 7168 * 16384) // 8
DENSE, SPARSE = 3 * 7168 * 18432 // 8, 256 * 7168 + (8 * 32 + 1) * 3 * 7168 * 2048 // 8
DEEPSEEK = 61 * ATTENTION + 3 * DENSE + 58 * SPARSE + 2 * 129280 * 7168 // 8 + 7168


def test_deepseek_v3_on_eight_devices() -> None:
    assert DEEPSEEK == 84_780_342_272
    assert held("deepseek-v3", tensor_parallel=8, expert_parallel=8).weights.bytes == 2 * DEEPSEEK + 4 * 58 * 256


@pytest.mark.parametrize("experts", [1, 8])
def test_deepseek_v3_with_attention_on_every_device(experts: int) -> None:
    """Data-parallel attention: all of it on each of eight devices, an eighth of the batch, an eighth of the experts."""
    found = held("deepseek-v3", data_parallel=8, expert_parallel=experts, batch=20)
    attention = (1536 + 576) * 7168 + 1536 + 512 + 2 * 7168 + 24576 * 1536 + 32768 * 512 + 7168 * 16384
    sparse = 256 * 7168 + (32 + 1) * 3 * 7168 * 2048
    around = 3 * 3 * 7168 * 18432 + 2 * 129280 * 7168 + 7168

    assert found.devices == 8
    corrections = 58 * 256 * 4  # a buffer of each router, in float32
    assert found.weights.bytes == 2 * (61 * attention + 58 * sparse + around) + corrections
    assert found.working.logits.tokens == 3  # of twenty sequences


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_the_latent_is_on_every_device(devices: int) -> None:
    """DeepSeek-V3 keeps 61 x (512 + 64) x 2 bytes a token on each device; keys and values of heads are divided."""
    latent, heads = (held("deepseek-v3", tensor_parallel=devices, mla=form) for form in ("latent", "expanded"))

    assert latent.kv_cache.bytes == 4 * 8192 * 70_272
    assert heads.kv_cache.bytes == 4 * 8192 * 61 * 128 * (192 + 128) * 2 // devices


@pytest.mark.parametrize(("devices", "kv_heads"), [(1, 2), (2, 1), (4, 1)])
def test_states_are_divided_by_heads(devices: int, kv_heads: int) -> None:
    """Qwen3-Next: 36 layers keep 32 x 128 x 128 in float32 and four columns of 2 x 2048 and 4096 channels in bf16."""
    found = held("qwen3-next-80b-a3b", tensor_parallel=devices)

    assert found.state.bytes == 4 * 36 * (32 * 128 * 128 * 4 + 4 * (2 * 2048 + 4096) * 2) // devices
    assert found.kv_cache.bytes == 4 * 8192 * 12 * 2 * kv_heads * 256 * 2


def test_a_vocabulary_that_does_not_divide_is_padded_to_64() -> None:
    """50257 tokens become 50304, 6288 on each of eight devices; a table of positions is held whole."""
    found = held("gpt2-xl", tensor_parallel=5)

    assert found.sharding["vocab"].bytes == 2 * 10_061 * 1600  # 50304 / 5, rounded up
    assert held("gpt2-xl").sharding["vocab"].bytes == 2 * 50_257 * 1600


def test_mamba2_holds_its_one_group_on_every_device() -> None:
    """Of in_proj, 2 x 4096 inner channels and 64 heads are divided, B and C of one group of 128 are not."""
    config = dict(
        model_type="mamba2",
        architectures=["Mamba2ForCausalLM"],
        vocab_size=50288,
        hidden_size=2048,
        num_hidden_layers=1,
        num_heads=64,
        head_dim=64,
        expand=2,
        state_size=128,
        n_groups=1,
        conv_kernel=4,
        use_conv_bias=True,
        tie_word_embeddings=True,
    )
    found = paramcalc.memory(paramcalc.load(config), context=1, dtype="bfloat16", tensor_parallel=4).per_device

    in_proj = 2048 * ((2 * 4096 + 64) // 4 + 2 * 128)
    conv, per_head, norm = 5 * (4096 // 4 + 2 * 128), 3 * 64 // 4, 4096 // 4
    assert found.sharding["column"].bytes == 2 * (in_proj + conv + per_head + norm)
    assert found.sharding["row"].bytes == 2 * 2048 * 4096 // 4
    # the state by heads, four columns of the convolution as in_proj; float32, because the config names no dtype
    assert found.state.bytes == 64 * 64 * 128 * 4 // 4 + 4 * (4096 // 4 + 2 * 128) * 4


@pytest.mark.parametrize(
    ("layers", "stages", "each"),
    [
        (32, 4, [8, 8, 8, 8]),
        (22, 4, [5, 6, 6, 5]),  # vLLM's get_pp_indices
        (5, 3, [2, 2, 1]),
        (3, 2, [2, 1]),
        (61, 2, [31, 30]),
    ],
)
def test_layers_are_dealt_out_to_stages_as_vllm_does(layers: int, stages: int, each: list[int]) -> None:
    assert layers_per_stage(layers, stages) == each


def test_the_fullest_stage_decides() -> None:
    """Llama-3-8B in three stages: 11 and 11 layers, then 10 with norm and head; the first has the embedding."""
    found = held("llama3-8b", pipeline_parallel=3)
    layer, table = 2 * 218_112_000, 2 * 525_336_576

    assert [(s.first_layer, s.layers) for s in found.stages] == [(0, 11), (11, 11), (22, 10)]
    assert [s.weights_bytes for s in found.stages] == [
        11 * layer + table,
        11 * layer,
        10 * layer + table + 2 * 4096,
    ]
    assert [s.kv_cache_bytes for s in found.stages] == [8192 * 4 * 4096 * n for n in (11, 11, 10)]
    assert found.stage == 0
    assert found.weights.bytes == 11 * layer + table


def test_a_tied_head_is_held_twice() -> None:
    """The embedding of GPT-2 is in the first stage, and once more in the last."""
    found = held("gpt2-xl", pipeline_parallel=2, context=1024)
    table, positions, layer = 2 * 50_257 * 1600, 2 * 1024 * 1600, 2 * 30_740_800

    assert [s.weights_bytes for s in found.stages] == [
        table + positions + 24 * layer,
        table + 24 * layer + 2 * 2 * 1600,
    ]


def test_formats_of_parts_that_only_one_stage_has() -> None:
    """The head of Llama-3-8B in float32 is in the last of two stages, the embedding in bf16 in the first."""
    found = held("llama3-8b", pipeline_parallel=2, dtype_of=(("lm_head", "float32"),))
    layers, table = 16 * 2 * 218_112_000, 2 * 525_336_576

    assert [s.weights_bytes for s in found.stages] == [layers + table, layers + 2 * table + 2 * 4096]


def test_stages_of_an_interleave_keep_its_order() -> None:
    """gpt-oss-20b: windows of 128 in every other layer, twelve layers in each stage."""
    found = held("gpt-oss-20b", pipeline_parallel=2, batch=1)

    assert [s.kv_cache_bytes for s in found.stages] == [2 * 8 * 64 * 2 * 6 * (8192 + 128)] * 2


@pytest.mark.parametrize(
    ("name", "assumptions", "message"),
    [
        ("llama3-8b", {"tensor_parallel": 3}, "tensor_parallel 3 does not divide the 32 heads of"),
        ("llama3-8b", {"tensor_parallel": 64}, "tensor_parallel 64 does not divide the 32 heads of"),
        ("llama3-8b", {"pipeline_parallel": 33}, r"pipeline_parallel 33 is more than the number of layers \(32\)"),
        ("llama3-8b", {"expert_parallel": 2}, "the model has no experts"),
        ("mixtral-8x7b", {"tensor_parallel": 4, "expert_parallel": 3}, "do not divide each other"),
        ("albert-base-v2", {"pipeline_parallel": 2}, "share weights"),
        ("llama3-8b", {"tensor_parallel": 0}, "tensor_parallel must be a positive integer"),
        ("llama3-8b", {"overhead": -1}, "overhead must be a non-negative integer"),
    ],
)
def test_what_cannot_be_divided_is_an_error(name: str, assumptions: dict[str, Any], message: str) -> None:
    with pytest.raises(paramcalc.ParamcalcError, match=message):
        held(name, **assumptions)


def test_key_value_heads_that_do_not_divide_are_an_error() -> None:
    config = dict(model_type="llama", hidden_size=768, num_attention_heads=12, num_key_value_heads=4)

    with pytest.raises(paramcalc.ParamcalcError, match="tensor_parallel 6 does not divide the 4 key/value heads of"):
        paramcalc.memory(paramcalc.load(config), context=1, tensor_parallel=6)


@pytest.mark.parametrize("name", ["llama3-8b", "mixtral-8x7b", "deepseek-v3", "qwen3-next-80b-a3b", "t5-small"])
def test_one_device_holds_everything(name: str) -> None:
    report = paramcalc.memory(paramcalc.load(name), context=4096, batch=3)
    device = report.per_device

    for part in ("weights", "kv_cache", "state", "working", "overhead", "total"):
        assert getattr(device, part).bytes == getattr(report, part).bytes
    assert sum(share.bytes for share in device.sharding.values()) == device.weights.bytes


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_table_shows_devices_rules_and_stages(width: int) -> None:
    assumed: dict[str, Any] = {"context": 8192, "tensor_parallel": 2, "pipeline_parallel": 2, "dtype": "bfloat16"}
    report = paramcalc.memory(paramcalc.load("llama3-8b"), **assumed)
    lines = render_text(memory_table(report, width), width=width, color=False).splitlines()

    assert max(map(len, lines)) <= width
    assert "per device (fullest of 4):" in lines
    assert any(line.startswith("vocab") and "525,336,576" in line for line in lines)
    assert any(line.split()[:2] == ["1", "16-31"] for line in lines)
    assert any("q_proj k_proj v_proj gate_proj up_proj" in line for line in lines) is (width > 60)


def test_a_gate_on_the_heads_is_divided_as_they_are() -> None:
    """Qwen3-Next: in 12 of 48 layers, 4096 x 2048 beside q, k and v; what is left whole is norms, routers, a gate."""
    found = held("qwen3-next-80b-a3b", tensor_parallel=2).sharding["replicated"]

    assert found.bytes == 2 * (48 * (2 * 2048 + 512 * 2048 + 2048) + 36 * 128 + 12 * 2 * 256 + 2048)


# -- GGUF files ------------------------------------------------------------------------------------------------------


def stage_weights(name: str, dtype: str, stages: int) -> list[int]:
    report = paramcalc.memory(paramcalc.load(name), context=1, dtype=dtype, pipeline_parallel=stages)
    return [stage.weights_bytes for stage in report.per_device.stages]


def test_layers_of_a_gguf_file_are_dealt_out() -> None:
    """Llama-3.1-8B in Q8_0, 34 bytes for 32 values: layers of 218,103,808, tables of 525,336,576, norms in F32."""
    layers = 8 * (218_103_808 * 34 // 32 + 2 * 4096 * 4)
    table, norm, frequencies = 525_336_576 * 34 // 32, 4096 * 4, 64 * 4

    assert stage_weights("llama3.1-8b", "q8_0", 4) == [
        table + layers + frequencies,
        layers + frequencies,
        layers + frequencies,
        layers + norm + table + frequencies,
    ]


@pytest.mark.parametrize("dtype", ["q4_k_m", "q3_k_l", "iq4_xs", "gguf-f16"])
def test_types_of_a_gguf_file_are_those_of_the_whole(dtype: str) -> None:
    """Which layers have more bits is a matter of all of them: stages hold the file, and each 64 frequencies."""
    whole = paramcalc.memory(paramcalc.load("llama3.1-8b"), context=1, dtype=dtype)

    assert whole.per_device.weights.bytes == whole.weights.bytes
    for stages in (2, 3, 8):
        assert sum(stage_weights("llama3.1-8b", dtype, stages)) == whole.weights.bytes + (stages - 1) * 256


def test_a_tied_table_of_a_gguf_file_is_held_twice() -> None:
    """Llama-3.2-1B: 128,256 x 2,048 values in Q6_K, 210 bytes for 256."""
    whole = paramcalc.memory(paramcalc.load("llama3.2-1b"), context=1, dtype="q4_k_m").weights.bytes

    assert sum(stage_weights("llama3.2-1b", "q4_k_m", 2)) == whole + 128_256 * 2048 * 210 // 256 + 32 * 4


def test_modules_for_multi_token_prediction_are_in_the_last_stage_of_a_gguf_file() -> None:
    fields = dict(model_type="glm4_moe", num_hidden_layers=8, num_nextn_predict_layers=1, torch_dtype="bfloat16")
    found = [
        paramcalc.memory(
            paramcalc.load(fields | {"num_nextn_predict_layers": n}), context=1, dtype="q8_0", pipeline_parallel=2
        )
        for n in (0, 1)
    ]
    without, with_one = ([stage.weights_bytes for stage in one.per_device.stages] for one in found)

    assert with_one[0] == without[0]
    assert with_one[1] - without[1] == found[1].weights.bytes - found[0].weights.bytes > 0


@pytest.mark.parametrize("stages", [2, 3])
def test_an_encoder_is_in_one_stage_of_a_gguf_file(stages: int) -> None:
    """T5, an estimate: its table is tied to the head, and held twice, 144 bytes for 256 values."""
    whole = paramcalc.memory(paramcalc.load("t5-small"), context=1, dtype="q4_k_m").weights.bytes

    assert 60_506_624 * 4.5 / 8 < whole < 60_506_624 * 5 / 8  # each of its parameters once
    assert sum(stage_weights("t5-small", "q4_k_m", stages)) == whole + 32_128 * 512 * 144 // 256
