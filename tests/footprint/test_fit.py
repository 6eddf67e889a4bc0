"""Verdicts on devices, derived by hand; what is called a change makes it fit, and one more does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

import paramcalc
from paramcalc.footprint.devices import find_device, known_devices
from paramcalc.footprint.fit import device_info, largest_fitting
from paramcalc.render.fit import fit_table
from paramcalc.render.listings import device_row, listing_table
from paramcalc.render.table import render_text
from paramcalc.reports.fit import DeviceInfo, FitReport
from tests.conftest import Run

GIB = 2**30
# Llama-3-8B for 8,192 tokens: weights, 131,072 bytes for each token, logits of one token in float32, activations of
# 51,200 channels (twice 4,096, three times 14,336) for 8,192 tokens in bf16, and an overhead of one GiB.
WEIGHTS, TOKEN, LOGITS, ACTIVATIONS = 16_060_522_496, 131_072, 128_256 * 4, 8192 * 51_200 * 2
USED = WEIGHTS + 8192 * TOKEN + LOGITS + ACTIVATIONS + GIB


def verdict(name: str, **asked: Any) -> FitReport:
    defaults: dict[str, Any] = {"gpu": "24GiB", "context": 8192}
    return paramcalc.fit(paramcalc.load(name), **defaults | asked)


def test_llama3_8b_on_24_gib() -> None:
    found = verdict("llama3-8b")

    assert found.fits
    assert found.used_bytes == USED == 19_047_379_968
    assert found.budget_bytes == 23_192_823_398  # nine tenths of 25,769,803,776, rounded down
    assert found.used_percent == 73.9
    assert found.free_bytes == 23_192_823_398 - USED
    assert found.changes == ()


def test_the_most_that_fits_on_24_gib() -> None:
    """39,819.2 tokens and 4.86 sequences have room beside what does not grow."""
    found, fixed = verdict("llama3-8b"), WEIGHTS + ACTIVATIONS + GIB

    assert found.largest_context == (23_192_823_398 - fixed - LOGITS) // TOKEN == 39_819
    assert found.largest_batch == (23_192_823_398 - fixed) // (8192 * TOKEN + LOGITS) == 4


@pytest.mark.parametrize(("memory", "fits"), [(USED, True), (USED - 1, False)])
def test_the_last_byte_decides(memory: int, fits: bool) -> None:
    assert verdict("llama3-8b", gpu=f"{memory}B", gpu_memory_utilization=1).fits is fits


@pytest.mark.parametrize("name", ["llama3-8b", "gpt-oss-20b", "mixtral-8x7b", "jamba-v0.1", "deepseek-v2-lite"])
@pytest.mark.parametrize("gpu", ["16GiB", "rtx-5090", "h100"])
def test_the_largest_fit_and_one_more_does_not(name: str, gpu: str) -> None:
    found = verdict(name, gpu=gpu, batch=2)

    if found.largest_context:
        assert verdict(name, gpu=gpu, batch=2, context=found.largest_context).fits
        assert not verdict(name, gpu=gpu, batch=2, context=found.largest_context + 1).fits
    if found.largest_batch:
        assert verdict(name, gpu=gpu, batch=found.largest_batch).fits
        assert not verdict(name, gpu=gpu, batch=found.largest_batch + 1).fits


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("llama3-8b", {"gpu": "16GiB"}),
        ("llama3-8b", {"gpu": "rtx-4090", "context": 131_072}),
        ("llama3-8b", {"gpu": "rtx-4090", "batch": 16}),
        ("llama3-70b", {"gpu": "h100", "context": 32_768, "batch": 8}),
        ("mixtral-8x7b", {"gpu": "h100", "expert_parallel": 2, "tensor_parallel": 2, "batch": 256}),
    ],
)
def test_each_change_makes_it_fit(name: str, asked: dict[str, Any]) -> None:
    found = verdict(name, **asked)

    assert not found.fits
    assert found.changes
    for change in found.changes:
        new = {change.change: change.to}
        if change.change == "devices":
            assert found.fewest_devices
            new = found.fewest_devices.model_dump(exclude={"devices", "used_bytes"})
        changed = verdict(name, **(asked | new))
        assert changed.fits
        assert changed.used_bytes == change.used_bytes


def test_llama3_70b_takes_four_h100() -> None:
    """141 GB of weights and 86 GB of cache: a half each is still too much for 77 GB, a quarter is not."""
    found = verdict("llama3-70b", gpu="h100", context=32_768, batch=8)

    assert not found.fits
    assert (found.largest_context, found.largest_batch) == (0, 0)
    assert found.fewest_devices
    assert (found.fewest_devices.devices, found.fewest_devices.tensor_parallel) == (4, 4)
    assert verdict("llama3-70b", gpu="h100", context=32_768, batch=8, tensor_parallel=4).fits


def test_a_state_of_fixed_size_has_no_limit() -> None:
    assert verdict("mamba-130m").largest_context is None


def test_the_best_format_is_the_largest_that_fits() -> None:
    assert verdict("llama3-8b").best_format.format == "bfloat16"  # type: ignore[union-attr]
    # Of 5.4 GiB that may be used 2.8 are for all else: weights of 2.38 bits (2.2 GiB) fit beside, of 3.16 (3.0) do not.
    assert verdict("llama3-8b", gpu="6GiB").best_format.format == "iq2_xxs"  # type: ignore[union-attr]
    assert verdict("llama3-8b", gpu="4GiB").best_format is None
    smaller = verdict("llama3-8b", gpu="16GiB").best_format
    assert smaller
    assert smaller.format not in ("bfloat16", "float32")


def test_warnings_are_those_of_memory() -> None:
    """What memory says of a format and of a part that is tied, a verdict says too."""
    asked = {"context": 8192, "dtype_of": (("lm_head", "float32"),)}
    model = paramcalc.load("gpt2-xl")
    found = paramcalc.fit(model, gpu="24GiB", **asked)  # type: ignore[arg-type]

    assert found.warnings == paramcalc.memory(model, **asked).warnings != ()  # type: ignore[arg-type]
    with pytest.raises(paramcalc.ParamcalcError, match="no tensor of the model has this name"):
        verdict("llama3-8b", dtype_of=(("no_such", "float32"),))


def test_bisection() -> None:
    asked: list[int] = []

    def fits(number: int) -> bool:
        asked.append(number)
        return number <= 1000

    assert largest_fitting(fits) == 1000
    assert len(asked) < 25
    assert largest_fitting(lambda number: number <= 1) == 1
    assert largest_fitting(lambda _: False) == 0
    assert largest_fitting(lambda _: True) is None


# -- devices ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("h100", 81_559),
        ("H100", 81_559),
        ("H100-NVL", 95_830),
        ("NVIDIA H200", 143_771),
        ("A100", 81_920),
        ("a100 40GB", 40_960),
        ("RTX 4090", 24_564),
        ("4090", 24_564),
        ("rtx_5090", 32_607),
        ("MI300X", 196_592),
        ("24GiB", 24_576),
        ("0.5 TiB", 524_288),
    ],
)
def test_names_and_sizes_in_any_case(text: str, mib: int) -> None:
    assert find_device(text).memory == mib * 2**20


def test_gigabytes_are_not_gibibytes() -> None:
    assert find_device("24GB").memory == 24_000_000_000


@pytest.mark.parametrize("text", ["rtx-5091", "gpu", "", "80", "0GiB", "24G", "-1GiB", "h100x2"])
def test_unknown_devices(text: str) -> None:
    with pytest.raises(paramcalc.ParamcalcError):
        find_device(text)


WANTED = (
    "a100-40gb a100-80gb h100-sxm h100-pcie h100-nvl h200 b200 b300 gb200 l4 l40s a10 rtx-3090 rtx-4090 rtx-5090 "
    "rtx-6000-ada rtx-pro-6000 mi250x mi300x mi325x mi355x gaudi-2 gaudi-3 tpu-v5e tpu-v5p tpu-v6e m2-ultra m3-ultra "
    "m4-max jetson-orin jetson-thor"
)


@pytest.mark.parametrize("name", WANTED.split())
def test_the_devices_that_people_have(name: str) -> None:
    one = find_device(name)

    assert one.source.startswith("https://")
    assert one.vendor
    assert one.bandwidth_gb_s
    assert one.memory % 2**20 == 0


def test_no_name_means_two_devices() -> None:
    names = [name for one in known_devices() for name in (one.name, *one.aliases)]

    assert len(set(names)) == len(names)
    assert all(find_device(name).name == one.name for one in known_devices() for name in (one.name, *one.aliases))


def test_a_quantised_checkpoint_is_its_own_best_format() -> None:
    """Nothing larger would hold more than what is in the file."""
    found = verdict("gpt-oss-20b", gpu="24GiB")

    assert found.best_format is not None
    assert (found.best_format.format, found.weights_format) == ("mxfp4", "mxfp4")
    assert found.best_format.used_bytes == found.used_bytes


def test_the_cache_of_the_checkpoint_is_named() -> None:
    scheme = {"num_bits": 8, "type": "float", "dynamic": False}
    stated = {"quant_method": "compressed-tensors", "config_groups": {}, "kv_cache_scheme": scheme}
    model = paramcalc.load("llama3-8b", overrides={"quantization_config": stated})

    assert paramcalc.fit(model, gpu="h100", context=8192).kv_cache_dtype == "float8_e4m3fn"


def test_layers_of_a_gguf_file_are_dealt_out_to_devices(run: Run) -> None:
    found = verdict("llama3-70b", dtype="q4_k_m")
    fewest = found.fewest_devices

    assert fewest is not None
    assert (fewest.devices, fewest.tensor_parallel, fewest.pipeline_parallel) == (4, 1, 4)
    assert verdict("llama3-70b", dtype="q4_k_m", pipeline_parallel=4).used_bytes == fewest.used_bytes
    assert run("fit", "llama3-70b", "--gpu", "24GiB", "--dtype", "q4_k_m", "--pp", "4")[0] == 0
    assert run("fit", "llama3-8b", "--gpu", "24GiB", "--dtype", "q4_k_m", "--tp", "2")[0] == 2


def test_the_largest_context_has_the_configs_own_beside_it(run: Run) -> None:
    assert "; the config states 8,192 positions" in run("fit", "llama3-8b", "--gpu", "h100")[1]
    assert verdict("llama3-8b", gpu="h100").stated_positions == 8192
    assert "the config states" not in run("fit", "llama3-8b", "--gpu", "17GiB", "-c", "128", "--overhead", "0")[1]


# -- the commands -------------------------------------------------------------------------------------------------


def test_exit_codes(run: Run) -> None:
    assert run("fit", "llama3-8b", "--gpu", "24GiB")[0] == 0
    assert run("fit", "llama3-8b", "--gpu", "16GiB")[0] == 1
    assert run("fit", "gpt2", "llama3-8b", "--gpu", "16GiB")[0] == 1
    code, out, err = run("fit", "llama3-8b", "--gpu", "h1000")
    assert (code, out) == (2, "")
    assert err.startswith("error: unknown GPU 'h1000'\nhint: ")
    assert "h100-sxm" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no GPU given"),
        (
            ["--gpu", "h100", "--gpu-memory-utilization", "1.1"],
            "gpu_memory_utilization must be above 0 and at most 1, not '1.1'",
        ),
        (
            ["--gpu", "h100", "--gpu-memory-utilization", "0"],
            "gpu_memory_utilization must be above 0 and at most 1, not '0'",
        ),
        (
            ["--gpu", "h100", "--gpu-memory-utilization", "all"],
            "gpu_memory_utilization must be above 0 and at most 1, not 'all'",
        ),
        (
            ["--gpu", "h100", "--gpu-memory-utilization", "nan"],
            "gpu_memory_utilization must be above 0 and at most 1, not 'nan'",
        ),
        (["--gpu", "h100", "--tp", "3"], "tensor_parallel 3 does not divide the 32 heads"),
    ],
)
def test_what_cannot_be_answered(run: Run, arguments: list[str], message: str) -> None:
    code, out, err = run("fit", "llama3-8b", *arguments)

    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")


def test_the_verdict_has_its_figures_beside_it(run: Run) -> None:
    lines = run("fit", "llama3-8b", "--gpu", "24GiB")[1].splitlines()

    assert "fits: yes, 74% of 24.0 GiB (24GiB); 21.60 GiB usable" in lines
    assert run("fit", "llama3-8b", "--gpu", "16GiB")[1].count("fits: no, 111% of 16.0 GiB") == 1


def test_json_is_the_report(run: Run) -> None:
    code, out, _ = run("fit", "llama3-8b", "--gpu", "rtx 4090", "--json")

    assert code == 0
    assert json.loads(out) == verdict("llama3-8b", gpu="rtx-4090").model_dump(mode="json")


@pytest.mark.parametrize("fmt", ["csv", "markdown"])
def test_other_formats(run: Run, fmt: str) -> None:
    code, out, _ = run("fit", "llama3-8b", "--gpu", "16GiB", "--format", fmt)

    assert code == 1
    assert "largest_context" in out.splitlines()[0]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    report = verdict("llama3-70b", gpu="h100", tensor_parallel=2, context=32_768, batch=8)
    lines = render_text(fit_table(report, width), width=width, color=False).splitlines()

    assert max(map(len, lines)) <= width
    # halves of weights and cache, norms whole, 59,392 channels for 8,192 tokens, eight times 128,256 logits, overhead
    assert any(line.startswith("total") and "115,555,622,912" in line for line in lines)


def test_what_a_narrow_list_has_no_room_for_is_said() -> None:
    rows = [device_row(DeviceInfo.model_validate(device_info(one))) for one in known_devices()]
    lines = render_text(listing_table("gpus", rows, 80), width=80, color=False).splitlines()
    h100 = render_text(
        listing_table("gpus", [row for row in rows if row["name"] == "h100-sxm"], 60), width=60, color=False
    )

    assert max(map(len, lines)) <= 80
    assert lines[-1] == "hidden columns: memory, also, note, source; use a wider terminal or --format csv"
    assert "85,520,809,984" in h100
    assert "https://www.nvidia.com/en-us/data-center/h100/" in h100
    assert "hidden columns" not in render_text(listing_table("gpus", rows, 400), width=400, color=False)


def test_warnings_of_several_models_name_them(run: Run) -> None:
    quantised = ("--set", 'quantization_config={"quant_method": "brandnew"}')
    err = run("fit", "llama3-8b", "llama3.2-1b", "--gpu", "h100", *quantised)[2]

    assert [line.split(":")[1] for line in err.splitlines()] == [" llama3-8b", " llama3.2-1b"]


def test_gpus(run: Run) -> None:
    code, out, _ = run("gpus", "--json")
    listed = json.loads(out)

    assert code == 0
    assert {"a100-40gb", "a100-80gb"} <= {one["name"] for one in listed}
    assert all(one["source"].startswith("https://") for one in listed)
    assert json.loads(run("gpus", "H100", "--json")[1])["memory_bytes"] == 81_559 * 2**20
    assert run("gpus", "nothing")[0] == 2


@pytest.mark.parametrize(
    ("written", "name", "mib"),
    [  # as nvidia-smi and rocm-smi report them, and as they are typed
        ("t4", "t4", 15_360),
        ("Tesla V100-SXM2-32GB", "v100-32gb", 32_768),
        ("NVIDIA GH200 480GB", "gh200-96gb", 97_871),
        ("NVIDIA A40", "a40", 46_068),
        ("NVIDIA RTX A6000", "rtx-a6000", 49_140),
        ("3080", "rtx-3080", 10_240),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "rtx-4070-ti-super", 16_376),
        ("5080", "rtx-5080", 16_303),
        ("AMD Instinct MI100", "mi100", 32_752),
        ("Radeon RX 7900 XTX", "rx-7900-xtx", 24_560),
    ],
)
def test_devices_by_the_names_they_report(written: str, name: str, mib: int) -> None:
    assert (find_device(written).name, find_device(written).memory) == (name, mib * 2**20)


@pytest.mark.parametrize("name", ["v100-16gb", "v100-32gb", "t4", "rtx-2080-ti"])
def test_what_has_no_bfloat16_has_no_speed_in_it(name: str) -> None:
    assert find_device(name).bf16_tflops is None
    assert "no bfloat16" in find_device(name).note


def test_no_two_devices_answer_to_one_name() -> None:
    for one in known_devices():
        assert {find_device(name).name for name in (one.name, *one.aliases)} == {one.name}


def test_a_card_that_is_not_known_is_no_size(run: Run) -> None:
    code, _, err = run("fit", "llama3-8b", "--gpu", "4060ti")

    assert code == 2
    assert err.startswith("error: unknown GPU '4060ti'\nhint: ")
