"""Quantise small models with the tools that people use, and write down the config and the bytes of the files they make.

    python -m tests.goldens.quantised.make

Needs torch, transformers, bitsandbytes, torchao, compressed-tensors, auto-round and amd-quark (CPU is enough, no
network), and never imports paramcalc. What wants a GPU or calibration data is left out.
"""

import json
import os
import struct
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")

import quark.torch as quark  # noqa: E402
import torch  # noqa: E402
from auto_round import AutoRound  # noqa: E402
from compressed_tensors.compressors import ModelCompressor  # noqa: E402
from compressed_tensors.quantization import (  # noqa: E402
    QuantizationArgs,
    QuantizationConfig,
    QuantizationScheme,
    apply_quantization_config,
    preset_name_to_scheme,
)
from compressed_tensors.quantization.quant_scheme import PRESET_SCHEMES  # noqa: E402
from quark.torch.quantization.config import config as quark_config  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from tokenizers import Tokenizer, models  # noqa: E402
from torchao.quantization import (  # noqa: E402
    Float8WeightOnlyConfig,
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
)
from transformers import (  # noqa: E402
    AutoModelForCausalLM,
    BitsAndBytesConfig,
    LlamaConfig,
    PreTrainedTokenizerFast,
    Qwen3MoeConfig,
    TorchAoConfig,
)

from tests.goldens import store  # noqa: E402

TARGET = Path(__file__).resolve().parent / "quantised.jsonl"
TOOLS = ("transformers", "torch", "bitsandbytes", "torchao", "compressed-tensors", "auto-round", "amd-quark")
SIZES = dict(
    vocab_size=512,
    hidden_size=256,
    intermediate_size=512,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=64,
)
CONFIGS = {
    "llama": LlamaConfig(**SIZES),
    "qwen3_moe": Qwen3MoeConfig(**SIZES, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=128),
}
Case = Callable[[str], None]


def saved(kind: str) -> str:
    """A model with drawn weights, as a directory."""
    folder = tempfile.mkdtemp()
    AutoModelForCausalLM.from_config(CONFIGS[kind], dtype=torch.bfloat16).save_pretrained(folder)
    return folder


def tensors(folder: Path) -> Iterator[tuple[str, int]]:
    """Names and bytes in all safetensors files of a folder."""
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        for name, entry in header.items():
            if name != "__metadata__":
                yield name, entry["data_offsets"][1] - entry["data_offsets"][0]


def record(folder: Path) -> dict[str, Any]:
    """What a folder holds: its config, and bytes; text apart, in which bitsandbytes describes each matrix."""
    sizes = dict(tensors(folder))
    text = sum(size for name, size in sizes.items() if ".quant_state." in name)
    config = json.loads((folder / "config.json").read_text())
    return {"config": config, "bytes": sum(sizes.values()) - text, "text": text}


def on_the_fly(quantization: Any, kind: str) -> Case:
    """A quantiser of transformers."""

    def make(folder: str) -> None:
        model = AutoModelForCausalLM.from_pretrained(
            saved(kind), quantization_config=quantization, dtype=torch.bfloat16, device_map="cpu"
        )
        model.save_pretrained(folder)

    return make


def rounded(scheme: str, fmt: str, kind: str) -> Case:
    """AutoRound without any tuning."""

    def make(folder: str) -> None:
        words = {f"w{i}": i for i in range(500)} | {"<unk>": 500}
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="<unk>")))
        model = AutoModelForCausalLM.from_pretrained(saved(kind), dtype=torch.bfloat16)
        tool = AutoRound(model, tokenizer=tokenizer, iters=0, disable_opt_rtn=True, device_map="cpu", scheme=scheme)
        tool.quantize_and_save(folder, format=fmt)

    return make


def compressed(groups: dict[str, QuantizationScheme], *left: str) -> Case:
    """compressed-tensors, as llm-compressor uses it."""

    def make(folder: str) -> None:
        model = AutoModelForCausalLM.from_pretrained(saved("llama"), dtype=torch.bfloat16)
        ignore = ["lm_head", *left]
        apply_quantization_config(
            model, QuantizationConfig(config_groups=groups, ignore=ignore, quantization_status="frozen")
        )
        tool = ModelCompressor.from_pretrained_model(model)
        tool.compress_model(model)
        save_file({k: v.contiguous().clone() for k, v in model.state_dict().items()}, f"{folder}/model.safetensors")
        config = model.config.to_dict() | {"architectures": [type(model).__name__], "dtype": "bfloat16"}
        stated = tool.quantization_config.model_dump() | {"quant_method": "compressed-tensors", "ignore": ignore}
        text = json.dumps(config | {"quantization_config": stated}, default=str)
        Path(folder, "config.json").write_text(text)

    return make


def quarked(weight: Any, inputs: Any = None, outputs: Any = None) -> Case:
    """AMD's Quark; `outputs` of the projections of keys and values are what a cache holds."""

    def make(folder: str) -> None:
        model = AutoModelForCausalLM.from_pretrained(saved("llama"), dtype=torch.bfloat16)
        layer = quark_config.QLayerConfig(weight=weight, input_tensors=inputs)
        cached = quark_config.QLayerConfig(weight=weight, input_tensors=inputs, output_tensors=outputs)
        named = {name: cached for name in ("*k_proj", "*v_proj") if outputs is not None}
        config = quark_config.QConfig(
            global_quant_config=layer, layer_quant_config=named, kv_cache_quant_config=named, exclude=["lm_head"]
        )
        tool = quark.ModelQuantizer(config)
        with torch.no_grad():
            model = tool.freeze(tool.quantize_model(model, [torch.arange(16)[None]]))
            quark.export_safetensors(model, folder)

    return make


def spec(name: str, **fields: Any) -> Any:
    """How Quark quantises a tensor."""
    return getattr(quark_config, name)(is_dynamic=False, **fields).to_quantization_spec()


def quark_cases() -> dict[str, Case]:
    """Its kinds of weights."""
    fp8 = spec("FP8E4M3PerTensorSpec", observer_method="min_max")
    integers = dict(symmetric=True, scale_type="float", round_method="half_even")
    return {
        "quark fp8": quarked(fp8, fp8),
        "quark fp8-kv": quarked(fp8, fp8, fp8),
        "quark fp8-channel": quarked(spec("FP8E4M3PerChannelSpec", ch_axis=0)),
        "quark mxfp4": quarked(spec("OCP_MXFP4Spec", ch_axis=-1)),
        "quark mxfp6": quarked(spec("OCP_MXFP6E3M2Spec", ch_axis=-1)),
        "quark uint4": quarked(spec("Uint4PerGroupSpec", ch_axis=-1, group_size=128)),
        "quark int8": quarked(spec("Int8PerTensorSpec", observer_method="min_max", **integers)),
        "quark int8-channel": quarked(spec("Int8PerChannelSpec", ch_axis=0, **integers)),
    }


def group(weights: dict[str, Any], inputs: dict[str, Any] | None = None, *targets: str) -> QuantizationScheme:
    """A group of modules."""
    return QuantizationScheme(
        targets=[*targets] or ["Linear"],
        weights=QuantizationArgs(**weights),
        input_activations=QuantizationArgs(**inputs) if inputs else None,
    )


PER_TOKEN = dict(num_bits=8, type="int", strategy="token", dynamic=True)
CHANNELS = dict(num_bits=8, type="int", strategy="channel")
FOUR = dict(num_bits=4, type="int", strategy="group", group_size=128)
GROUPS = {
    "w4a16-channel-asym": [group(dict(num_bits=4, type="int", strategy="channel", symmetric=False))],
    "w8a8-static-asym": [group(CHANNELS, dict(num_bits=8, type="int", symmetric=False, dynamic=False))],
    "w8a8-asym": [group(CHANNELS | {"symmetric": False}, PER_TOKEN)],
    "w4a8-asym": [group(FOUR | {"symmetric": False}, PER_TOKEN)],
    "w4a8-channel": [group(dict(num_bits=4, type="int", strategy="channel"), PER_TOKEN)],
    "w8a8-tensor": [
        group(dict(num_bits=8, type="int", strategy="tensor"), dict(num_bits=8, type="int", dynamic=False))
    ],
    "fp8-group128": [group(dict(num_bits=8, type="float", strategy="group", group_size=128))],
    "two-groups": [
        group(FOUR, None, "re:.*(gate|up)_proj"),
        group(dict(num_bits=8, type="float", strategy="channel"), None, "re:.*self_attn.*"),
    ],
}


def cases() -> dict[str, Case]:
    """Everything that is made."""
    found: dict[str, Case] = {}
    for kind in CONFIGS:
        for name, quantization in {
            "nf4": BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4"),
            "nf4-dq": BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True),
            "fp4": BitsAndBytesConfig(load_in_4bit=True),
            "int8": BitsAndBytesConfig(load_in_8bit=True),
            "nf4-skips": BitsAndBytesConfig(
                load_in_4bit=True,
                bnb_4bit_quant_type="nf4",
                llm_int8_skip_modules=["lm_head", "q_proj", "model.layers.1"],
            ),
            "torchao-int8": TorchAoConfig(Int8WeightOnlyConfig()),
            "torchao-int8-dynamic": TorchAoConfig(Int8DynamicActivationInt8WeightConfig()),
            "torchao-float8": TorchAoConfig(Float8WeightOnlyConfig()),
        }.items():
            found[f"{kind}/{name}"] = on_the_fly(quantization, kind)
        found[f"{kind}/auto_round W4A16"] = rounded("W4A16", "auto_round", kind)
    for scheme in ("W2A16", "W3A16", "W8A16", "MXFP4", "MXFP8", "FP8_BLOCK"):
        found[f"llama/auto_round {scheme}"] = rounded(scheme, "auto_round", "llama")
    for fmt in ("auto_gptq", "auto_awq", "llm_compressor"):
        found[f"llama/{fmt} W4A16"] = rounded("W4A16", fmt, "llama")
    found["llama/llm_compressor MXFP4"] = rounded("MXFP4", "llm_compressor", "llama")
    for scheme in PRESET_SCHEMES:
        if scheme != "UNQUANTIZED":
            found[f"llama/{scheme}"] = compressed({"group_0": preset_name_to_scheme(scheme, ["Linear"])})
    for name, groups in GROUPS.items():
        found[f"llama/{name}"] = compressed({f"group_{i}": one for i, one in enumerate(groups)})
    fp8 = {"group_0": preset_name_to_scheme("FP8_DYNAMIC", ["Linear"])}
    found |= {f"llama/{name}": case for name, case in quark_cases().items()}
    found["llama/FP8_DYNAMIC-ignore"] = compressed(fp8, "re:.*down_proj", "model.layers.0.self_attn.q_proj")
    return found


def main() -> None:
    """Make the goldens."""
    versions = {tool: version(tool).partition("+")[0] for tool in TOOLS}
    made = {}
    for name, make in cases().items():
        folder = tempfile.mkdtemp()
        make(folder)
        config = next(Path(folder).rglob("config.json"))
        made[name] = {"versions": versions, **record(config.parent)}
    store.write(TARGET, made)


if __name__ == "__main__":
    main()
